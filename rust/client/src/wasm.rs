//! The functions of a WebAssembly module, over its linear memory: those of `include/bitldp.h`, and room for what goes in and out.
//!
//! A page asks for room with `bitldp_alloc`, writes a document or values into it, calls a function, reads the report and gives
//! the room back. A function that can refuse answers with the number of the reason, 0 where it is done; `bitldp_place` has the
//! position of the last refusal. The host charges a report before it asks for it, since its storage answers later; random
//! bytes come from its function `random`.
#![allow(unsafe_code, reason = "the page gives positions and lengths")]

use std::cell::Cell;

use bitldp_core::Key;
use zeroize::Zeroize;

use crate::client::{Client, Limits, Secret};
use crate::refused::{Kind, Refused, Result};
use crate::values::Values;

/// The most that a page may ask for at once.
const MOST_ROOM: usize = 1 << 28;

#[link(wasm_import_module = "bitldp")]
unsafe extern "C" {
    /// Fills a part of the memory with random bytes; 0 where it did.
    fn random(start: *mut u8, len: usize) -> i32;
}

thread_local! {
    /// The position of the last refusal.
    static PLACE: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// A fresh key of the host's.
///
/// # Errors
/// [`Kind::Entropy`] where it gives none.
pub(crate) fn fresh_key() -> Result<Key> {
    let mut bytes = [0; 32];
    // SAFETY: the bytes are this function's own, and the host fills no others.
    let answer = unsafe { random(bytes.as_mut_ptr(), bytes.len()) };
    let key = Key::from_bytes(bytes);
    // A host that says nothing and writes nothing gave no key.
    let empty = bytes == [0; 32];
    bytes.zeroize();
    if answer == 0 && !empty { Ok(key) } else { Err(Kind::Entropy.into()) }
}

fn answer(result: Result<()>) -> i32 {
    let (kind, place) = match result {
        Ok(()) => (0, None),
        Err(Refused { kind, place }) => (kind as i32, place),
    };
    PLACE.set(place.unwrap_or(u64::MAX));
    kind
}

/// The bytes at a position.
///
/// # Safety
/// So many bytes are there, of room that was asked for.
unsafe fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, len) } }
}

/// The bytes at a position, to write to.
///
/// # Safety
/// As [`bytes`], and nothing else refers to them.
unsafe fn bytes_mut<'a>(start: *mut u8, len: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(start, len) } }
}

/// Room for so many bytes, zeros; null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn bitldp_alloc(len: usize) -> *mut u8 {
    let mut room = Vec::new();
    if !(1..=MOST_ROOM).contains(&len) || room.try_reserve_exact(len).is_err() {
        return std::ptr::null_mut();
    }
    room.resize(len, 0u8);
    Box::into_raw(room.into_boxed_slice()).cast()
}

/// Overwrites room and gives it back.
///
/// # Safety
/// It came from [`bitldp_alloc`] with this length, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_free(start: *mut u8, len: usize) {
    if !start.is_null() {
        // SAFETY: the caller's promise.
        let mut room = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, len)) };
        room.zeroize();
    }
}

/// The position of the last refusal; -1 where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn bitldp_place() -> f64 {
    match PLACE.get() {
        u64::MAX => -1.0,
        place => place as f64,
    }
}

/// Opens a document whose epsilon and delta are at most these; null where it is refused, and then the reason is written to
/// `reason`.
///
/// # Safety
/// `json` has `len` bytes, and `reason` has room for four.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_open_with(
    json: *const u8,
    len: usize,
    epsilon: f64,
    delta: f64,
    reason: *mut i32,
) -> *mut Client {
    // SAFETY: the caller's promise.
    let text = std::str::from_utf8(unsafe { bytes(json, len) });
    let opened = text
        .map_err(|error| Refused::at(Kind::Syntax, error.valid_up_to()))
        .and_then(|json| Client::open_with(json, Limits { epsilon, delta }));
    let (client, kind) = match opened {
        Ok(client) => (Box::into_raw(Box::new(client)), answer(Ok(()))),
        Err(refused) => (std::ptr::null_mut(), answer(Err(refused))),
    };
    // SAFETY: the caller's promise.
    unsafe { reason.write_unaligned(kind) };
    client
}

/// Closes a client.
///
/// # Safety
/// It is open, or null, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_close(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller's promise.
        drop(unsafe { Box::from_raw(client) });
    }
}

/// Epsilon of one report.
///
/// # Safety
/// The client is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_epsilon(client: *const Client) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { &*client }.epsilon()
}

/// Delta of one report.
///
/// # Safety
/// The client is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_delta(client: *const Client) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { &*client }.delta()
}

/// Writes the server's name of the mechanism.
///
/// # Safety
/// The client is open, and `out` has 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_fingerprint(client: *const Client, out: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { bytes_mut(out, 16) }.copy_from_slice(&unsafe { &*client }.fingerprint());
}

/// Bytes of a record.
///
/// # Safety
/// The client is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_record_bytes(client: *const Client) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*client }.record_bytes()
}

/// Bytes of the reports of so many records in one call.
///
/// # Safety
/// The client is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_report_bytes(client: *const Client, records: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { &*client }.report_bytes(records)
}

/// Randomizes with fresh keys of the host's, which has charged the report where the document states a budget.
///
/// # Safety
/// The client is open; `x` has `x_bytes` bytes and `out` has `out_bytes`, and they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize(
    client: *const Client,
    x: *const u8,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (client, x, out) = unsafe { (&*client, bytes(x, x_bytes), bytes_mut(out, out_bytes)) };
    let mut charged = |_: &Client| Ok(());
    answer(client.randomize_charged(&mut charged, Values::Bytes(x), out))
}

/// Randomizes one record as a function of a secret and of its id: the 8 bytes of a number, 32 of a digest, or a text.
///
/// # Safety
/// As [`bitldp_randomize`]; `secret` has 32 bytes and `id` has `id_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_randomize_keyed(
    client: *const Client,
    secret: *const u8,
    id: *const u8,
    id_len: usize,
    x: *const u8,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (client, secret, id) = unsafe { (&*client, bytes(secret, 32), bytes(id, id_len)) };
    // SAFETY: the caller's promise.
    let (x, out) = unsafe { (bytes(x, x_bytes), bytes_mut(out, out_bytes)) };
    out.fill(0);
    let keyed = |out: &mut [u8]| {
        let secret = Secret::new(secret.try_into().map_err(|_| Kind::Pointer)?)?;
        client.randomize_keyed(&secret, client.id(id)?, Values::Bytes(x), out)
    };
    answer(keyed(out))
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
    x: *const u8,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (client, keys) = unsafe { (&*client, bytes(keys, keys_len)) };
    // SAFETY: the caller's promise.
    let (x, out) = unsafe { (bytes(x, x_bytes), bytes_mut(out, out_bytes)) };
    answer(client.randomize_with_key(keys, Values::Bytes(x), out))
}
