//! Keys: fresh ones of the host's, what follows from one, and their end.

use bitldp_core::{Key, keystream};
use zeroize::Zeroize;

#[cfg(target_family = "wasm")]
use crate::refused::Kind;
use crate::refused::Result;

/// Writes keys: those of a document from a number on, each replaced so often by the start of its stream.
pub(crate) type GiveKeys<'a> = dyn FnMut(usize, usize, &mut [Key]) -> Result<()> + 'a;

/// A fresh key of the operating system.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn fresh_key() -> Result<Key> {
    Ok(Key::from_os()?)
}

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "bitldp")]
#[allow(unsafe_code, reason = "a function of the page's")]
unsafe extern "C" {
    /// Fills a part of the memory with random bytes; 0 where it did.
    fn random(start: *mut u8, len: usize) -> i32;
}

/// A fresh key of the page's.
///
/// # Errors
/// [`Kind::Entropy`] where it gives none.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code, reason = "a function of the page's")]
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

/// Overwrites keys: the optimizer is kept from leaving it out.
pub(crate) fn overwrite(keys: &mut [Key]) {
    keys.fill(Key::from_bytes([0; 32]));
    std::hint::black_box(keys);
}

/// The first bytes of a key's stream, as a key.
pub(crate) fn derived(key: &Key) -> Result<Key> {
    let mut bytes = [0; 32];
    keystream(key, 0, &mut bytes)?;
    let derived = Key::from_bytes(bytes);
    bytes.zeroize();
    Ok(derived)
}
