//! Ledgers in files: a report is charged before it is drawn, and refused where the budget is spent.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use bitldp_core::add_up;

use crate::client::{Client, Ledger};
use crate::refused::{Kind, Result};

/// A ledger in a file, which is locked while it is read and written.
///
/// Every report is a line: the name that the document counts under, in hexadecimal digits, and the bits of its epsilon. The
/// epsilons of all lines are added up, whatever document they are of, and must stay within the host's limit; lines of the
/// same name must stay within the document's. A line that is torn (the machine stopped while it was written) counts as a
/// report that spent everything.
#[derive(Debug)]
pub struct FileLedger {
    file: File,
    epsilon: f64,
}

/// Bytes of a ledger at most: a million reports or so.
const MOST_BYTES: u64 = 64 << 20;

impl FileLedger {
    /// The ledger in a file, which is made where it does not exist; `epsilon` is the limit of the sum of all reports.
    ///
    /// # Errors
    /// [`Kind::Ledger`] where the file cannot be opened.
    pub fn open(path: impl AsRef<Path>, epsilon: f64) -> Result<FileLedger> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).map_err(|_| Kind::Ledger)?;
        Ok(FileLedger { file, epsilon })
    }

    fn charge_locked(&mut self, client: &Client) -> Result<()> {
        let failed = |_| Kind::Ledger;
        let (name, most) = client.budget().map_or(("", u64::MAX), |budget| (&budget.ledger, budget.most));
        if self.file.metadata().map_err(failed)?.len() > MOST_BYTES {
            return Err(Kind::Ledger.into());
        }
        let mut lines = String::new();
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.file.read_to_string(&mut lines).map_err(failed)?;
        let name: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        let (mut sum, mut reports) = (client.epsilon(), 1u64);
        for line in lines.split_inclusive('\n') {
            let (own, bits) =
                line.strip_suffix('\n').and_then(|line| line.split_once(' ')).ok_or(Kind::Budget)?;
            let spent = u64::from_str_radix(bits, 16).map(f64::from_bits).ok().filter(|spent| *spent >= 0.0);
            sum = add_up(sum, spent.ok_or(Kind::Budget)?);
            reports += u64::from(own == name);
        }
        // Written so that NaN fails.
        let within = sum <= self.epsilon && reports <= most;
        if !within {
            return Err(Kind::Budget.into());
        }
        let line = format!("{name} {:016x}\n", client.epsilon().to_bits());
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        Ok(())
    }
}

impl Ledger for FileLedger {
    fn charge(&mut self, client: &Client) -> Result<()> {
        self.file.lock().map_err(|_| Kind::Ledger)?;
        let charged = self.charge_locked(client);
        self.file.unlock().map_err(|_| Kind::Ledger)?;
        charged
    }
}
