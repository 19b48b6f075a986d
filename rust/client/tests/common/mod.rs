//! The documents that the tests of Python write and read, too.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Names and texts of all documents: of the repository, and of the folder that `BITLDP_DOCUMENTS` names.
pub fn documents() -> Vec<(String, String)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/client/documents");
    let more = std::env::var_os("BITLDP_DOCUMENTS").map(PathBuf::from);
    let mut documents: Vec<_> = [Some(own), more]
        .into_iter()
        .flatten()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder of documents"))
        .map(|entry| entry.expect("a file").path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into(), fs::read_to_string(&path).unwrap()))
        .collect();
    documents.sort();
    assert!(documents.len() >= 5);
    documents
}

/// The text with the checksum that it should have; as it is where it has none.
#[allow(dead_code, reason = "not every test signs")]
pub fn signed(text: &str) -> String {
    const NAME: &str = "\"sha256\":\"";
    let Some(start) = text.find(NAME) else { return text.into() };
    let (from, to) = (start + NAME.len(), start + NAME.len() + 64);
    if text.get(to..to + 2) != Some("\",") {
        return text.into();
    }
    let rest = format!("{}{}", &text[..start], &text[to + 2..]);
    let digest = Sha256::digest(rest.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{digits}{}", &text[..from], &text[to..])
}
