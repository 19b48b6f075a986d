//! Ledgers in files: what was sent is counted across processes, and nothing is sent beyond it.

mod common;

use std::fs;
use std::io::Write;

use bitldp_client::{Client, FileLedger, Kind, Values};
use common::documents;

fn client() -> Client {
    let (_, text) = documents().into_iter().find(|(name, _)| name == "grr").unwrap();
    Client::open(&text).unwrap()
}

/// An empty file of this test's own.
fn path(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bitldp-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn send(client: &Client, ledger: &mut FileLedger) -> Result<(), Kind> {
    let mut out = [0];
    client.randomize_charged(ledger, Values::U8(&[1]), &mut out).map_err(|refused| refused.kind)
}

#[test]
fn no_more_reports_than_the_document_allows_are_sent() {
    let (client, path) = (client(), path("most"));
    let most = client.budget().unwrap().most;
    for _ in 0..most {
        // Opened anew each time, as by another process.
        assert_eq!(send(&client, &mut FileLedger::open(&path, 1e6).unwrap()), Ok(()));
    }
    assert_eq!(send(&client, &mut FileLedger::open(&path, 1e6).unwrap()), Err(Kind::Budget));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count() as u64, most);
    fs::remove_file(path).unwrap();
}

#[test]
fn the_sum_of_epsilons_stays_within_the_limit_of_the_host() {
    let (client, path) = (client(), path("sum"));
    let mut ledger = FileLedger::open(&path, 3.5 * client.epsilon()).unwrap();
    assert_eq!([(); 4].map(|()| send(&client, &mut ledger)), [Ok(()), Ok(()), Ok(()), Err(Kind::Budget)]);
    assert_eq!(send(&client, &mut FileLedger::open(&path, f64::NAN).unwrap()), Err(Kind::Budget));
    // What is refused by its value is not charged.
    let mut out = [0];
    let mut free = FileLedger::open(&path, 1e6).unwrap();
    assert_eq!(
        client.randomize_charged(&mut free, Values::U8(&[4]), &mut out).unwrap_err().kind,
        Kind::Value
    );
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_torn_or_strange_ledger_is_spent() {
    let (client, path) = (client(), path("torn"));
    for line in ["73", "x 3ff0000000000000", " bfff000000000000\n", " 7ff8000000000000\n", "\n"] {
        fs::File::create(&path).unwrap().write_all(line.as_bytes()).unwrap();
        assert_eq!(send(&client, &mut FileLedger::open(&path, 1e6).unwrap()), Err(Kind::Budget), "{line:?}");
    }
    fs::remove_file(path).unwrap();
    assert_eq!(FileLedger::open("/nowhere/ledger", 1.0).unwrap_err().kind, Kind::Ledger);
}

#[test]
fn threads_that_share_a_ledger_spend_no_more() {
    let (client, path) = (client(), path("threads"));
    let sent: usize = std::thread::scope(|scope| {
        let worker = || {
            let mut ledger = FileLedger::open(&path, 5.0 * client.epsilon()).unwrap();
            (0..5).filter(|_| send(&client, &mut ledger).is_ok()).count()
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(sent, 5);
    fs::remove_file(path).unwrap();
}
