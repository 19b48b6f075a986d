//! Ledgers: a report is charged before it is drawn, and refused where the budget is spent.

#[cfg(not(target_family = "wasm"))]
mod file;

#[cfg(not(target_family = "wasm"))]
pub use file::FileLedger;

use crate::client::Client;
use crate::refused::Result;

/// The record of the reports that a client has sent, in the host's storage.
pub trait Ledger {
    /// Charges one report of the client, durably: only then is it drawn.
    ///
    /// # Errors
    /// [`Kind::Budget`](crate::Kind::Budget) where it would be more than is allowed, [`Kind::Ledger`](crate::Kind::Ledger) where that cannot be written down.
    fn charge(&mut self, client: &Client) -> Result<()>;
}

/// A function that charges.
impl<F: FnMut(&Client) -> Result<()>> Ledger for F {
    fn charge(&mut self, client: &Client) -> Result<()> {
        self(client)
    }
}
