//! The functions of `include/bitldp.h` for C and what calls C, beside those of [`exports`](crate::exports).
//!
//! What their arguments must be is said, and checked, in [`pointers`](crate::pointers).
#![allow(unsafe_code, reason = "the caller of C gives pointers and lengths")]

use std::ffi::{c_char, c_void};

use crate::client::{Client, Ledger, Limits};
use crate::ledger::FileLedger;
use crate::pointers::{bytes_mut, keyed, open, text, with};
use crate::refused::{Kind, Refused, Result};
use crate::values::Values;

/// The answer of a function: 0 and no position where it is done.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Status {
    kind: i32,
    place: u64,
}

impl From<Result<()>> for Status {
    fn from(result: Result<()>) -> Status {
        match result {
            Ok(()) => Status { kind: 0, place: u64::MAX },
            Err(Refused { kind, place }) => Status { kind: kind as i32, place: place.unwrap_or(u64::MAX) },
        }
    }
}

/// Charges a report of the host's: 0 where it may be drawn.
type Charge = unsafe extern "C" fn(
    context: *mut c_void,
    name: *const c_char,
    name_len: usize,
    most: u64,
    epsilon: f64,
    delta: f64,
) -> i32;

/// The host's function as a ledger.
struct HostLedger {
    charge: Charge,
    context: *mut c_void,
}

impl Ledger for HostLedger {
    fn charge(&mut self, client: &Client) -> Result<()> {
        let (name, most) = client.budget().map_or(("", u64::MAX), |budget| (&budget.ledger, budget.most));
        // SAFETY: the caller gave a function of this signature, and the context that it takes.
        let answer = unsafe {
            (self.charge)(
                self.context,
                name.as_ptr().cast(),
                name.len(),
                most,
                client.epsilon(),
                client.delta(),
            )
        };
        if answer == 0 { Ok(()) } else { Err(Kind::Budget.into()) }
    }
}

/// Opens a document whose epsilon and delta are at most these; the client is null where it is refused.
///
/// # Safety
/// `json` has `len` bytes, and `client` is a pointer to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_open_with(
    json: *const c_char,
    len: usize,
    epsilon: f64,
    delta: f64,
    client: *mut *mut Client,
) -> Status {
    if client.is_null() {
        return Err(Kind::Pointer.into()).into();
    }
    // SAFETY: the caller's promise.
    let (made, status) = unsafe { open(json.cast(), len, Limits { epsilon, delta }) };
    // SAFETY: it is not null, and the caller's promise.
    unsafe { *client = made };
    status.into()
}

/// Opens a document, whatever its epsilon is.
///
/// # Safety
/// As [`bitldp_open_with`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_open(json: *const c_char, len: usize, client: *mut *mut Client) -> Status {
    let Limits { epsilon, delta } = Limits::default();
    // SAFETY: the caller's promise.
    unsafe { bitldp_open_with(json, len, epsilon, delta, client) }
}

/// Writes what one report reveals, as a sentence that ends with a zero byte, cut to `len`; gives the bytes of the whole
/// sentence without that.
///
/// # Safety
/// The client is open, or null; `out` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_sentence(client: *const Client, out: *mut c_char, len: usize) -> usize {
    // SAFETY: the caller's promise.
    let Some(client) = (unsafe { client.as_ref() }) else { return 0 };
    let sentence = client.sentence();
    // SAFETY: the caller's promise.
    if let Ok(out) = unsafe { bytes_mut(out.cast(), len) }
        && let Some(most) = len.checked_sub(1)
    {
        let cut = (0..=most.min(sentence.len())).rev().find(|&at| sentence.is_char_boundary(at)).unwrap_or(0);
        out[..cut].copy_from_slice(&sentence.as_bytes()[..cut]);
        out[cut] = 0;
    }
    sentence.len()
}

/// Randomizes with fresh keys of the operating system; refused where the document states a budget.
///
/// # Safety
/// The client is open; `x` has `x_bytes` bytes and `out` has `out_bytes`, and they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize(
    client: *const Client,
    x: *const c_void,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { with(client, (x.cast(), x_bytes), (out, out_bytes), &mut Client::randomize) }.into()
}

/// Randomizes once `charge` has allowed it, which is asked before anything is drawn.
///
/// # Safety
/// As [`bitldp_randomize`]; `charge` is a function of that signature, or null, and `context` is what it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize_charged(
    client: *const Client,
    charge: Option<Charge>,
    context: *mut c_void,
    x: *const c_void,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> Status {
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| match charge {
        Some(charge) => client.randomize_charged(&mut HostLedger { charge, context }, x, out),
        None => Err(Kind::Pointer.into()),
    };
    // SAFETY: the caller's promise.
    unsafe { with(client, (x.cast(), x_bytes), (out, out_bytes), &mut work) }.into()
}

/// Randomizes once a ledger in a file has charged it; `epsilon` is the limit of the sum of all reports in the file.
///
/// # Safety
/// As [`bitldp_randomize`]; `path` has `path_len` bytes of UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize_from_file(
    client: *const Client,
    path: *const c_char,
    path_len: usize,
    epsilon: f64,
    x: *const c_void,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> Status {
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path.cast(), path_len) }.map_err(|_| Kind::Ledger)?;
        client.randomize_charged(&mut FileLedger::open(path, epsilon)?, x, out)
    };
    // SAFETY: the caller's promise.
    unsafe { with(client, (x.cast(), x_bytes), (out, out_bytes), &mut work) }.into()
}

/// Randomizes one record as a function of a secret and of the record's id, so that repeating it tells nothing more.
///
/// The id is the 8 bytes of a number, 32 bytes of a digest, or a text, as the document says.
///
/// # Safety
/// As [`bitldp_randomize`]; `secret` has 32 bytes and `id` has `id_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize_keyed(
    client: *const Client,
    secret: *const u8,
    id: *const u8,
    id_len: usize,
    x: *const c_void,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> Status {
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| {
        // SAFETY: the caller's promise.
        unsafe { keyed(client, secret, (id, id_len), x, out) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(client, (x.cast(), x_bytes), (out, out_bytes), &mut work) }.into()
}

/// Randomizes with keys of the caller's, 32 bytes for each stream: for tests alone.
///
/// # Safety
/// As [`bitldp_randomize`]; `keys` has `keys_len` bytes.
#[cfg(feature = "golden")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize_with_key(
    client: *const Client,
    keys: *const u8,
    keys_len: usize,
    x: *const c_void,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> Status {
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| {
        // SAFETY: the caller's promise.
        let keys = unsafe { crate::pointers::bytes(keys, keys_len) }?;
        client.randomize_with_key(keys, x, out)
    };
    // SAFETY: the caller's promise.
    unsafe { with(client, (x.cast(), x_bytes), (out, out_bytes), &mut work) }.into()
}

/// A sentence for the kind of a status, which stays as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn bitldp_reason(kind: i32) -> *const c_char {
    Kind::c_reason(kind).as_ptr()
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::exports::{
        bitldp_close, bitldp_delta, bitldp_epsilon, bitldp_record_bytes, bitldp_report_bytes,
    };

    const DOCUMENT: &str = include_str!("../../../tests/client/documents/oue.json");

    fn opened() -> *mut Client {
        let mut client = ptr::null_mut();
        // SAFETY: the text is as long as is said, and the pointer is this test's own.
        let status = unsafe { bitldp_open(DOCUMENT.as_ptr().cast(), DOCUMENT.len(), &mut client) };
        assert!(status.kind == 0 && status.place == u64::MAX && !client.is_null());
        client
    }

    #[test]
    fn null_is_refused_and_leaves_zeros() {
        let client = opened();
        let mut out = [255; 3];
        let null: *const c_void = ptr::null();
        // SAFETY: null is what is tried, and every other pointer is this test's own.
        unsafe {
            let pointer = Kind::Pointer as i32;
            assert_eq!(bitldp_open(null.cast(), 0, ptr::null_mut()).kind, pointer);
            assert_eq!(bitldp_randomize(client, null, 1, out.as_mut_ptr(), 3).kind, pointer);
            assert_eq!(out, [0; 3]);
            assert_eq!(
                bitldp_randomize(null.cast(), [1u8].as_ptr().cast(), 1, out.as_mut_ptr(), 3).kind,
                pointer
            );
            assert_eq!(bitldp_randomize(client, [1u8].as_ptr().cast(), 1, ptr::null_mut(), 3).kind, pointer);
            let (x, room) = ([1u8].as_ptr().cast(), out.as_mut_ptr());
            assert_eq!(bitldp_randomize_charged(client, None, ptr::null_mut(), x, 1, room, 3).kind, pointer);
            assert!(bitldp_epsilon(null.cast()).is_nan() && bitldp_delta(null.cast()).is_nan());
            assert_eq!((bitldp_record_bytes(null.cast()), bitldp_report_bytes(null.cast(), 1)), (0, 0));
            bitldp_close(ptr::null_mut());
            bitldp_close(client);
        }
    }

    #[test]
    fn a_sentence_is_cut_at_a_letter_and_ends_with_zero() {
        let client = opened();
        let mut out = [1; 20];
        // SAFETY: the pointers are this test's own, and the room is as long as is said.
        unsafe {
            let whole = bitldp_sentence(client, out.as_mut_ptr().cast(), out.len());
            assert!(whole > 100 && out[19] == 0 && out[..19].starts_with(b"A report of 3 bytes"));
            assert_eq!(bitldp_sentence(client, ptr::null_mut(), 0), whole);
            bitldp_close(client);
        }
    }

    #[test]
    fn the_host_charges_or_refuses() {
        unsafe extern "C" fn charge(
            context: *mut c_void,
            _: *const c_char,
            name_len: usize,
            most: u64,
            epsilon: f64,
            delta: f64,
        ) -> i32 {
            assert!((name_len, most, delta) == (0, u64::MAX, 0.0) && epsilon > 1.9);
            // SAFETY: the test below gives a counter.
            let left = unsafe { &mut *context.cast::<u32>() };
            *left = left.wrapping_sub(1);
            i32::from(*left == 0)
        }
        let client = opened();
        let (mut out, mut left) = ([0; 3], 2u32);
        let mut kinds = [0; 2];
        for kind in &mut kinds {
            let context = (&raw mut left).cast();
            // SAFETY: the pointers are this test's own, and the lengths theirs.
            let status = unsafe {
                bitldp_randomize_charged(
                    client,
                    Some(charge),
                    context,
                    [1u8].as_ptr().cast(),
                    1,
                    out.as_mut_ptr(),
                    3,
                )
            };
            *kind = status.kind;
        }
        assert_eq!((kinds, out), ([0, Kind::Budget as i32], [0; 3]));
        // SAFETY: it is open.
        unsafe { bitldp_close(client) };
    }
}
