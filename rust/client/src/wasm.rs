//! The functions of a WebAssembly module, over its linear memory: those of `include/bitldp.h`, and room for what goes in and out.
//!
//! A page asks for room with `bitldp_alloc`, writes a document or values into it, calls a function, reads the report and gives
//! the room back. A function that can refuse answers with the number of the reason, 0 where it is done; `bitldp_place` has the
//! position of the last refusal. The host charges a report before it asks for it, since its storage answers later; random
//! bytes come from its function `random`.
#![allow(unsafe_code, reason = "the page gives positions and lengths")]

use std::cell::Cell;

use zeroize::Zeroize;

use crate::client::{Client, Limits};
use crate::pointers::{keyed, open, with};
use crate::refused::{Refused, Result};
use crate::values::Values;

/// The most that a page may ask for at once.
const MOST_ROOM: usize = 1 << 28;

/// Unit of room, which is overwritten word by word.
type Word = u64;

thread_local! {
    /// The position of the last refusal.
    static PLACE: Cell<u64> = const { Cell::new(u64::MAX) };
}

fn answer(result: Result<()>) -> i32 {
    let (kind, place) = match result {
        Ok(()) => (0, None),
        Err(Refused { kind, place }) => (kind as i32, place),
    };
    PLACE.set(place.unwrap_or(u64::MAX));
    kind
}

/// Room for so many bytes, zeros; null where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn bitldp_alloc(len: usize) -> *mut u8 {
    let (mut room, words) = (Vec::new(), len.div_ceil(size_of::<Word>()));
    if !(1..=MOST_ROOM).contains(&len) || room.try_reserve_exact(words).is_err() {
        return std::ptr::null_mut();
    }
    room.resize(words, Word::default());
    Box::into_raw(room.into_boxed_slice()).cast()
}

/// Overwrites room and gives it back.
///
/// # Safety
/// It came from [`bitldp_alloc`] with this length, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_free(start: *mut u8, len: usize) {
    if !start.is_null() {
        let words = std::ptr::slice_from_raw_parts_mut(start.cast::<Word>(), len.div_ceil(size_of::<Word>()));
        // SAFETY: the caller's promise.
        let mut room = unsafe { Box::from_raw(words) };
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
    let (client, opened) = unsafe { open(json, len, Limits { epsilon, delta }) };
    let kind = answer(opened);
    // SAFETY: the caller's promise.
    unsafe { reason.write_unaligned(kind) };
    client
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
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| client.randomize_paid(x, out);
    // SAFETY: the caller's promise.
    answer(unsafe { with(client, (x, x_bytes), (out, out_bytes), &mut work) })
}

/// Refuses what [`bitldp_randomize`] would refuse, so that a host charges only what will be made; the report is left zeros.
///
/// # Safety
/// As [`bitldp_randomize`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_check(
    client: *const Client,
    x: *const u8,
    x_bytes: usize,
    out: *mut u8,
    out_bytes: usize,
) -> i32 {
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| client.check(x, out.len()).map(drop);
    // SAFETY: the caller's promise.
    answer(unsafe { with(client, (x, x_bytes), (out, out_bytes), &mut work) })
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
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| {
        // SAFETY: the caller's promise.
        unsafe { keyed(client, secret, (id, id_len), x, out) }
    };
    // SAFETY: the caller's promise.
    answer(unsafe { with(client, (x, x_bytes), (out, out_bytes), &mut work) })
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
    let mut work = |client: &Client, x: Values<'_>, out: &mut [u8]| {
        // SAFETY: the caller's promise.
        client.randomize_with_key(unsafe { crate::pointers::bytes(keys, keys_len) }?, x, out)
    };
    // SAFETY: the caller's promise.
    answer(unsafe { with(client, (x, x_bytes), (out, out_bytes), &mut work) })
}
