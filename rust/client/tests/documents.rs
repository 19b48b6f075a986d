//! Documents of the repository: each is opened, and what was changed in one is refused.

mod common;

use bitldp_client::Client;
use common::documents;

#[test]
fn every_document_is_opened_and_repeats_its_own_test() {
    for (name, text) in documents() {
        let client = Client::open(&text).unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
        assert!(client.epsilon() > 0.0 && client.report_bytes(1) > 0, "{name}");
        assert!(client.sentence().contains("epsilon is"), "{name}");
    }
}
