//! Pointers and lengths that a host gives: checked, and turned into slices, for the functions of C and of WebAssembly.
//!
//! Pointers that must not be null are refused where they are; lengths are checked against what is behind them only by the
//! caller. Values may begin at any byte: where that is none that numbers begin at, they are copied before they are read as such.
#![allow(unsafe_code, reason = "the host gives pointers and lengths")]

use crate::client::{Client, Limits, Secret};
use crate::refused::{Kind, Refused, Result};
use crate::values::Values;

/// The bytes at a pointer; refused where it is null and there are some.
///
/// # Safety
/// So many bytes are behind it, and nobody writes to them meanwhile.
pub(crate) unsafe fn bytes<'a>(start: *const u8, len: usize) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() || len > isize::MAX as usize {
        return Err(Kind::Pointer.into());
    }
    // SAFETY: the caller's promise, and the checks above.
    Ok(unsafe { std::slice::from_raw_parts(start, len) })
}

/// The bytes at a pointer, to write to.
///
/// # Safety
/// So many bytes are behind it, and nobody else reads or writes them meanwhile.
pub(crate) unsafe fn bytes_mut<'a>(start: *mut u8, len: usize) -> Result<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if start.is_null() || len > isize::MAX as usize {
        return Err(Kind::Pointer.into());
    }
    // SAFETY: the caller's promise, and the checks above.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
}

/// The text at a pointer.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(start: *const u8, len: usize) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let text = unsafe { bytes(start, len) }?;
    std::str::from_utf8(text).map_err(|error| Refused::at(Kind::Syntax, error.valid_up_to()))
}

/// The client of a document, which [`close`](crate::exports::bitldp_close) takes back; null where it is refused.
///
/// # Safety
/// `json` has `len` bytes.
pub(crate) unsafe fn open(json: *const u8, len: usize, limits: Limits) -> (*mut Client, Result<()>) {
    // SAFETY: the caller's promise.
    match unsafe { text(json, len) }.and_then(|json| Client::open_with(json, limits)) {
        Ok(client) => (Box::into_raw(Box::new(client)), Ok(())),
        Err(refused) => (std::ptr::null_mut(), Err(refused)),
    }
}

/// Work on an open client, values, and the room for their reports.
type Work<'f> = dyn FnMut(&Client, Values<'_>, &mut [u8]) -> Result<()> + 'f;

/// Calls `work` with a client, values and the room for their reports, which is zeros where it refuses.
///
/// # Safety
/// The client is open, or null; the values and the room are as long as is said, and do not overlap.
pub(crate) unsafe fn with(
    client: *const Client,
    (x, x_bytes): (*const u8, usize),
    (out, out_bytes): (*mut u8, usize),
    work: &mut Work<'_>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let out = unsafe { bytes_mut(out, out_bytes) }?;
    // SAFETY: the caller's promise.
    let done = match unsafe { (client.as_ref(), bytes(x, x_bytes)) } {
        (Some(client), Ok(x)) => work(client, Values::Bytes(x), out),
        _ => Err(Kind::Pointer.into()),
    };
    if done.is_err() {
        out.fill(0);
    }
    done
}

/// Randomizes one record as a function of a secret of 32 bytes and of its id.
///
/// # Safety
/// `secret` has 32 bytes and `id` has `id_len`.
pub(crate) unsafe fn keyed(
    client: &Client,
    secret: *const u8,
    (id, id_len): (*const u8, usize),
    x: Values<'_>,
    out: &mut [u8],
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (secret, id) = unsafe { (bytes(secret, 32)?, bytes(id, id_len)?) };
    let secret = Secret::new(secret.try_into().map_err(|_| Kind::Pointer)?)?;
    client.randomize_keyed(&secret, client.id(id)?, x, out)
}
