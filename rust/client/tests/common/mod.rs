//! The documents that the tests of Python write and read, too.

use std::fs;
use std::path::Path;

/// Names and texts of all documents.
pub fn documents() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/client/documents");
    let mut documents: Vec<_> = fs::read_dir(folder)
        .expect("the documents of the repository")
        .map(|entry| entry.expect("a file").path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into(), fs::read_to_string(&path).unwrap()))
        .collect();
    documents.sort();
    assert!(documents.len() >= 5);
    documents
}
