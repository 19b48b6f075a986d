//! The functions on an open client that are the same in C and in WebAssembly.
#![allow(unsafe_code, reason = "the caller gives pointers")]

use crate::client::Client;
use crate::pointers::bytes_mut;

/// Closes a client; null is nothing to close.
///
/// # Safety
/// The client is open, or null, and nobody uses it meanwhile or afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_close(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: it is open, so it came from `Box::into_raw`, and the caller's promise.
        drop(unsafe { Box::from_raw(client) });
    }
}

/// Epsilon of one report; NaN for null.
///
/// # Safety
/// The client is open, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_epsilon(client: *const Client) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(f64::NAN, Client::epsilon)
}

/// Delta of one report; NaN for null.
///
/// # Safety
/// As [`bitldp_epsilon`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_delta(client: *const Client) -> f64 {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(f64::NAN, Client::delta)
}

/// Writes the server's name of the mechanism; zeros for null.
///
/// # Safety
/// As [`bitldp_epsilon`], and `out` has 16 bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_fingerprint(client: *const Client, out: *mut u8) {
    // SAFETY: the caller's promise.
    if let Ok(out) = unsafe { bytes_mut(out, 16) } {
        // SAFETY: the caller's promise.
        out.copy_from_slice(&unsafe { client.as_ref() }.map_or([0; 16], Client::fingerprint));
    }
}

/// Bytes of a record; 0 for null.
///
/// # Safety
/// As [`bitldp_epsilon`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_record_bytes(client: *const Client) -> usize {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, Client::record_bytes)
}

/// Bytes of the reports of so many records in one call; 0 for null.
///
/// # Safety
/// As [`bitldp_epsilon`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitldp_report_bytes(client: *const Client, records: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, |client| client.report_bytes(records))
}
