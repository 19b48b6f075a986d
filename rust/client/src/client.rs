//! Clients: a document that was read and checked, and the reports that it makes of values.

use bitldp_core::{Ids, Key, KeyedRandomness};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroize;

use crate::fields::{Fields, base64, hex, text, wrong};
use crate::json::{Json, sha256_without};
use crate::keys::{GiveKeys, derived, fresh_key};
use crate::message::Message;
use crate::program::Program;
use crate::refused::{Kind, Refused, Result};
use crate::update::Update;
use crate::values::{ValueType, Values};

/// The version of the schema that is read.
const VERSION: i64 = 1;

/// Records of a document's own test at most.
const MOST_GOLDEN: usize = 64;

/// Letters of a text that is shown at most.
const MOST_SHOWN: usize = 4096;

/// The most that a host allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Epsilon of one report.
    pub epsilon: f64,
    /// Delta of one report.
    pub delta: f64,
}

impl Default for Limits {
    /// Any finite epsilon, and any delta below 1: what the document states is checked all the same.
    fn default() -> Limits {
        Limits { epsilon: f64::MAX, delta: 1.0 }
    }
}

/// How many reports a document allows, and the name that they are counted under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The name of the ledger.
    pub ledger: String,
    /// Reports at most.
    pub most: u64,
}

/// The record of the reports that a client has sent, in the host's storage.
pub trait Ledger {
    /// Charges one report of the client, durably: only then is it drawn.
    ///
    /// # Errors
    /// [`Kind::Budget`] where it would be more than is allowed, [`Kind::Ledger`] where that cannot be written down.
    fn charge(&mut self, client: &Client) -> Result<()>;
}

/// A function that charges.
impl<F: FnMut(&Client) -> Result<()>> Ledger for F {
    fn charge(&mut self, client: &Client) -> Result<()> {
        self(client)
    }
}

/// The name of a record, for reports that stay the same.
#[derive(Clone, Copy)]
pub enum Id<'a> {
    /// A number.
    Number(u64),
    /// A digest.
    Digest(&'a [u8; 32]),
    /// A text, of which SHA-256 makes a digest.
    Text(&'a str),
}

/// The kind of the id alone: it says who is in the data.
impl std::fmt::Debug for Id<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Id::Number(_) => "Number(..)",
            Id::Digest(_) => "Digest(..)",
            Id::Text(_) => "Text(..)",
        })
    }
}

/// A key that stays with a client. It is never shown, and overwritten when it is dropped.
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret of 32 random bytes.
    ///
    /// # Errors
    /// [`Kind::Keyed`] for zeros, which nobody drew.
    pub fn new(bytes: [u8; 32]) -> Result<Secret> {
        if bytes == [0; 32] { Err(Kind::Keyed.into()) } else { Ok(Secret(bytes)) }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How reports follow from a secret of the client's.
struct KeyedForm {
    context: Vec<u8>,
    column: u32,
    /// "u64", "digest" or "text".
    id: String,
    /// True where each part of a record is a value by itself, from its own column on.
    apart: bool,
}

/// A mechanism that a document describes, whose claims were checked.
///
/// Opening reads the document strictly, computes epsilon from its integers, and repeats its own test; a document that fails
/// any of it is refused. Then the client makes reports: [`randomize`](Self::randomize) with fresh keys of the operating
/// system, [`randomize_charged`](Self::randomize_charged) where a budget is kept, and
/// [`randomize_keyed`](Self::randomize_keyed) where a record is to be answered alike for ever.
pub struct Client {
    program: Program,
    /// The header and checksum before the codes; nothing where the codes are all that is sent.
    message: Option<Message>,
    epsilon: f64,
    delta: f64,
    fingerprint: [u8; 16],
    keyed: Option<KeyedForm>,
    budget: Option<Budget>,
    given: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("epsilon", &self.epsilon)
            .field("delta", &self.delta)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The client of a document, whatever its epsilon is.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub fn open(document: &str) -> Result<Client> {
        Client::open_with(document, Limits::default())
    }

    /// The client of a document that keeps within the host's limits.
    ///
    /// # Errors
    /// A text that is no canonical document of version 1, a checksum, an epsilon or a test that is not that of its fields, and
    /// an epsilon or delta above the limits. [`Refused::place`] is the byte where it can be told.
    pub fn open_with(document: &str, limits: Limits) -> Result<Client> {
        let json = Json::read(document)?;
        let fields = Fields::of(&json)?;
        let version = fields.integer("bitldp", 0, i64::MAX)?;
        if version != VERSION {
            return Err(Kind::Version.into());
        }
        let stated = fields.get("sha256")?;
        let digest = sha256_without(document, stated.at);
        if text(stated)?.len() != 64 || digest.map(Vec::from) != hex(text(stated)?) {
            return Err(Refused::at(Kind::Checksum, stated.at));
        }
        for name in ["mechanism", "given"] {
            if fields.maybe(name).map_or(Ok(""), text)?.chars().count() > MOST_SHOWN {
                return Err(fields.wrong());
            }
        }
        fields.text("mechanism")?;
        if !matches!(fields.text("unit")?, "record" | "feature") {
            return Err(fields.wrong());
        }
        let (epsilon, delta) = (fields.double("epsilon")?, fields.double("delta")?);
        if !(0.0..1.0).contains(&delta) || epsilon.is_sign_negative() {
            return Err(Kind::Epsilon.into());
        }
        let (fingerprint, golden) = (fields.hex("fingerprint")?, fields.get("golden")?);
        let keyed = fields.maybe("keyed").map(keyed_form).transpose()?;
        let budget = fields.maybe("spends").map(budget).transpose()?;
        let program = Program::read(&fields)?;
        let message = Message::read(&fields, &program, &fingerprint)?;
        if keyed.is_some() && message.as_ref().is_some_and(|message| message.update.is_some()) {
            return Err(fields.wrong());
        }
        let given = fields.maybe("given").map_or(Ok(""), text)?.into();
        fields.finish()?;
        let epsilon = program.epsilon(epsilon, delta, message.as_ref().map_or(1, Message::records))?;
        // Written so that NaN fails.
        let within = epsilon <= limits.epsilon && delta <= limits.delta;
        if !within {
            return Err(Kind::Limit.into());
        }
        let client = Client { program, message, epsilon, delta, fingerprint, keyed, budget, given };
        client.try_golden(golden)?;
        Ok(client)
    }

    /// Repeats the document's own test.
    fn try_golden(&self, json: &Json<'_>) -> Result<()> {
        let fields = Fields::of(json)?;
        let golden = Refused::at(Kind::Golden, json.at);
        let mut keys =
            hex(fields.text("key")?).filter(|keys| keys.len() == 32 * self.program.keys).ok_or(golden)?;
        let input = base64(fields.get("input")?, usize::MAX - 2)?;
        let report = base64(fields.get("report")?, usize::MAX - 2)?;
        fields.finish()?;
        let records = self.program.records(Values::Bytes(&input)).map_err(|_| golden)?;
        if records > MOST_GOLDEN || self.program.report_bytes(records) != Some(report.len()) {
            return Err(golden);
        }
        let mut made = vec![0; report.len()];
        let done = self.program.randomize(Values::Bytes(&input), &mut made, &mut given_keys(&keys));
        keys.zeroize();
        if done.is_ok() && made == report { Ok(()) } else { Err(golden) }
    }

    /// Epsilon of one report: between any two records, from the integers that are sampled, rounded up.
    #[must_use]
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Delta of one report: the chance with which epsilon may fail; 0 for all but noise that is cut off.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The server's name of the mechanism: reports of different ones must not be mixed.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 16] {
        self.fingerprint
    }

    /// How many reports the document allows, where it says so.
    #[must_use]
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// The way of a vector to records, where the document is of a model's update.
    fn update(&self) -> Option<&Update> {
        self.message.as_ref().and_then(|message| message.update.as_ref())
    }

    /// Type and number of the values that each part of a record has; most documents have one part. Of an update, those of
    /// its vector, which is a record here.
    pub fn record(&self) -> impl ExactSizeIterator<Item = (ValueType, usize)> + '_ {
        let vector = self.update().map(|update| update.coordinates);
        let every = self.program.inputs().map(|record| (record.kind, vector.unwrap_or(record.columns)));
        every.collect::<Vec<_>>().into_iter()
    }

    /// Bytes of a record, where values are given as their bytes.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.update().map_or_else(|| self.program.record_bytes(), Update::bytes)
    }

    /// Bytes of the reports of so many records in one call; `usize::MAX` where that is more than memory holds. Where there
    /// is a header, a message is about one record.
    #[must_use]
    pub fn report_bytes(&self, records: usize) -> usize {
        let bytes = match &self.message {
            None => self.program.report_bytes(records),
            Some(message) => message.bytes(&self.program).filter(|_| records == 1),
        };
        bytes.unwrap_or(usize::MAX)
    }

    /// One sentence for the person whose values they are.
    #[must_use]
    pub fn sentence(&self) -> String {
        let bytes = self.report_bytes(1);
        let unit = if bytes == 1 { "byte" } else { "bytes" };
        let epsilon = decimal(self.epsilon, 6);
        let epsilon = epsilon.trim_end_matches('0').trim_end_matches('.');
        let times = decimal(self.epsilon.exp(), 2);
        let but = if self.delta > 0.0 {
            format!(" (but for a chance of {})", scientific(self.delta))
        } else {
            String::new()
        };
        let given = if self.given.is_empty() { String::new() } else { format!(", given {}", self.given) };
        format!(
            "A report of {bytes} {unit} is at most {times} times as likely with your values as with any others{but}{given}: \
             epsilon is {epsilon} for one report between any two records, and reports add up."
        )
    }

    /// Writes the report of a record, or of several, with fresh keys of the operating system.
    ///
    /// # Errors
    /// Values that the document does not allow, an `out` that is not [`report_bytes`](Self::report_bytes) long, no random
    /// bytes, and [`Kind::Budget`] where the document states a budget: then a ledger is needed. `out` is zeros then.
    pub fn randomize(&self, x: Values<'_>, out: &mut [u8]) -> Result<()> {
        if self.budget.is_some() {
            out.fill(0);
            return Err(Kind::Budget.into());
        }
        self.with_fresh(x, out)
    }

    /// Writes the report of a record, or of several, once the ledger has charged it, before anything is drawn.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize), and what the ledger refuses. Values that are refused are not charged.
    pub fn randomize_charged(&self, ledger: &mut dyn Ledger, x: Values<'_>, out: &mut [u8]) -> Result<()> {
        out.fill(0);
        let records = self.check(x, out.len())?;
        for _ in 0..records {
            ledger.charge(self)?;
        }
        self.with_fresh(x, out)
    }

    /// The same, where the host has charged the report already.
    #[cfg(target_family = "wasm")]
    pub(crate) fn randomize_paid(&self, x: Values<'_>, out: &mut [u8]) -> Result<()> {
        self.with_fresh(x, out)
    }

    /// Refuses another number of values, and an output of another length; says how many records they are.
    fn fits(&self, x: Values<'_>, out: usize) -> Result<usize> {
        let records = match self.update() {
            Some(update) => update.check(x).map(|()| 1)?,
            None => self.program.records(x)?,
        };
        if self.message.is_some() && records != 1 {
            return Err(Kind::Shape.into());
        }
        if out == usize::MAX || self.report_bytes(records) != out {
            return Err(Kind::Output.into());
        }
        Ok(records)
    }

    /// Refuses values that the document does not allow, too.
    pub(crate) fn check(&self, x: Values<'_>, out: usize) -> Result<usize> {
        let records = self.fits(x, out)?;
        if self.update().is_none() {
            self.program.check(x, records)?;
        }
        Ok(records)
    }

    fn with_fresh(&self, x: Values<'_>, out: &mut [u8]) -> Result<()> {
        self.with(x, out, &mut |_, _, keys| {
            for key in keys {
                *key = fresh_key()?;
            }
            Ok(())
        })
    }

    /// Writes the report of a record with keys of the caller's, for tests alone: whoever has them has the record.
    ///
    /// `keys` are 32 bytes for each stream that the document takes.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize); [`Kind::Keyed`] for keys of another length. No ledger is asked.
    #[cfg(feature = "golden")]
    pub fn randomize_with_key(&self, keys: &[u8], x: Values<'_>, out: &mut [u8]) -> Result<()> {
        if keys.len() != 32 * self.program.keys {
            out.fill(0);
            return Err(Kind::Keyed.into());
        }
        self.with(x, out, &mut given_keys(keys))
    }

    fn with(&self, x: Values<'_>, out: &mut [u8], keys: &mut GiveKeys<'_>) -> Result<()> {
        let done = self.fits(x, out.len()).and_then(|_| match &self.message {
            None => self.program.randomize(x, out, keys),
            Some(message) => message.around(out, |codes| match &message.update {
                None => self.program.randomize(x, codes, keys),
                Some(update) => update.with(x, &mut |x| self.program.randomize(x, codes, keys)),
            }),
        });
        if done.is_err() {
            out.fill(0);
        }
        done
    }

    /// The id that bytes are, as the document names records: a number of eight bytes, little-endian, a digest of 32, or a text.
    ///
    /// # Errors
    /// [`Kind::Keyed`] where the document has no keyed release, and for bytes that are none of its ids.
    pub fn id<'a>(&self, bytes: &'a [u8]) -> Result<Id<'a>> {
        let id = match self.keyed.as_ref().map(|form| form.id.as_str()) {
            Some("u64") => bytes.try_into().ok().map(|bytes| Id::Number(u64::from_le_bytes(bytes))),
            Some("digest") => bytes.try_into().ok().map(Id::Digest),
            Some("text") => std::str::from_utf8(bytes).ok().map(Id::Text),
            _ => None,
        };
        id.ok_or(Kind::Keyed.into())
    }

    /// Writes the report of one record that stays the same: a function of the secret, the document's context, the id and the
    /// values, so that repeating it tells nothing more. Whoever has the secret can test values.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize), [`Kind::Keyed`] where the document has no keyed release or names records in another
    /// way, and [`Kind::Shape`] for more than one record.
    pub fn randomize_keyed(&self, secret: &Secret, id: Id<'_>, x: Values<'_>, out: &mut [u8]) -> Result<()> {
        out.fill(0);
        let takes =
            |form: &&KeyedForm| self.program.is_plain() && (form.apart || self.program.single().is_some());
        let Some(form) = self.keyed.as_ref().filter(takes) else {
            return Err(Kind::Keyed.into());
        };
        if self.check(x, out.len())? != 1 {
            return Err(Kind::Shape.into());
        }
        let (numbers, digests);
        let ids = match (id, form.id.as_str()) {
            (Id::Number(number), "u64") => {
                numbers = [number];
                Ids::Numbers(&numbers)
            }
            (Id::Digest(digest), "digest") => {
                digests = [*digest];
                Ids::Digests(&digests)
            }
            (Id::Text(text), "text") => {
                digests = [Sha256::digest(text.as_bytes()).into()];
                Ids::Digests(&digests)
            }
            _ => return Err(Kind::Keyed.into()),
        };
        let key = Key::from_bytes(secret.0);
        let randomness =
            KeyedRandomness { column: form.column, ..KeyedRandomness::new(&key, &form.context, ids) };
        let write = |codes: &mut [u8]| self.program.randomize_keyed(x, codes, randomness);
        let done = match &self.message {
            None => write(out),
            Some(message) => message.around(out, write),
        };
        if done.is_err() {
            out.fill(0);
        }
        done
    }
}

/// Gives keys of 32 bytes each that stand behind each other.
fn given_keys(bytes: &[u8]) -> impl FnMut(usize, usize, &mut [Key]) -> Result<()> {
    let (bytes, _) = bytes.as_chunks::<32>();
    move |first, times, keys| {
        let own = bytes.get(first..first + keys.len()).ok_or(Kind::Keyed)?;
        for (key, &bytes) in keys.iter_mut().zip(own) {
            *key = Key::from_bytes(bytes);
            for _ in 0..times {
                *key = derived(key)?;
            }
        }
        Ok(())
    }
}

/// A number with so many decimal places, rounded up; [`scientific`] where it is large. The formatting of floats by the
/// standard library would be as much code as a mechanism.
fn decimal(x: f64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    if x >= 1e6 {
        return scientific(x);
    }
    let shares = (x * unit as f64).ceil() as u64;
    format!("{}.{:0width$}", shares / unit, shares % unit, width = digits as usize)
}

/// A positive number with two digits, rounded up but for a share of 10^-10, and its exponent.
fn scientific(x: f64) -> String {
    if !x.is_finite() {
        return "any number of".into();
    }
    let (mut lead, mut exponent) = (x, 0);
    while lead >= 10.0 {
        (lead, exponent) = (lead / 10.0, exponent + 1);
    }
    while lead < 1.0 {
        (lead, exponent) = (lead * 10.0, exponent - 1);
    }
    let mut tenths = (lead * 10.0 - 1e-9).ceil() as u32;
    if tenths == 100 {
        (tenths, exponent) = (10, exponent + 1);
    }
    format!("{}.{}e{exponent}", tenths / 10, tenths % 10)
}

fn keyed_form(json: &Json<'_>) -> Result<KeyedForm> {
    let fields = Fields::of(json)?;
    let context =
        hex(fields.text("context")?).filter(|context| context.len() <= 1024).ok_or_else(|| wrong(json))?;
    let (column, id) = (fields.count("column", u32::MAX)?, fields.text("id")?.to_string());
    if !matches!(id.as_str(), "u64" | "digest" | "text") {
        return Err(wrong(json));
    }
    let apart = fields.flag("apart")?;
    fields.finish()?;
    Ok(KeyedForm { context, column, id, apart })
}

fn budget(json: &Json<'_>) -> Result<Budget> {
    let fields = Fields::of(json)?;
    let ledger = fields.text("ledger")?;
    if ledger.chars().count() > 256 {
        return Err(wrong(json));
    }
    let budget = Budget { ledger: ledger.into(), most: fields.integer("most", 1, i64::MAX)? as u64 };
    fields.finish()?;
    Ok(budget)
}
