//! Runs fixed chunks on threads: the answer never depends on how many there are.
//!
//! A chunk of [`CHUNK`] values draws from its own part of the keystream, so it does not matter who works on it, nor
//! when. Threads are used only where the batch is worth waking them, and the caller is one of them. `BITLDP_THREADS` says
//! how many there are at most. Without the feature `threads`, and on WebAssembly, the caller does all of it.

#[cfg(all(feature = "threads", not(target_family = "wasm")))]
mod pool;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, reason};

/// Values (features or samples) in one chunk of the keystream.
pub const CHUNK: usize = 8192;

/// More threads than this only wait for each other.
const MOST_THREADS: usize = 256;

/// The environment variable that caps the threads of every call, those that a call asks for too.
pub const THREADS_VARIABLE: &str = "BITLDP_THREADS";

/// The most threads that a call takes: what `BITLDP_THREADS` says, 256 where it says nothing. Looked up once a process.
///
/// # Errors
/// [`Error::Threads`] if the variable is no whole number of at least 1.
pub fn most_threads() -> Result<usize> {
    static MOST: OnceLock<Result<usize>> = OnceLock::new();
    let look_up =
        || cap(std::env::var_os(THREADS_VARIABLE).as_deref().map(|v| v.to_string_lossy()).as_deref());
    MOST.get_or_init(look_up).clone()
}

/// The cap that `wanted` spells; an empty text is none.
fn cap(wanted: Option<&str>) -> Result<usize> {
    match wanted {
        None | Some("") => Ok(MOST_THREADS),
        Some(text) => match text.parse() {
            Ok(most @ 1..) => Ok(MOST_THREADS.min(most)),
            _ => Err(Error::Threads {
                reason: reason!("{text:?} is not allowed; a whole number of at least 1 is"),
            }),
        },
    }
}

/// Calls `work(chunk, range)` for each chunk of `chunk_len` items of `0..total`, on `threads` threads (`None`: as many
/// as the machine has and the batch is worth, at `nanoseconds` an item), the caller's among them.
pub(crate) fn for_chunks(
    total: usize,
    chunk_len: usize,
    threads: Option<usize>,
    nanoseconds: usize,
    work: impl Fn(usize, Range<usize>) + Sync,
) {
    let chunks = total.div_ceil(chunk_len);
    let run = |chunk: usize| {
        let start = chunk * chunk_len;
        work(chunk, start..total.min(start + chunk_len));
    };
    let next = AtomicUsize::new(0);
    let task = || {
        while let Some(chunk) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < chunks) {
            run(chunk);
        }
    };
    pool::on_threads(threads, chunks, total.saturating_mul(nanoseconds), &task);
}

/// Threads where there are none: the caller's alone.
#[cfg(not(all(feature = "threads", not(target_family = "wasm"))))]
mod pool {
    pub(super) fn on_threads(_: Option<usize>, _: usize, _: usize, task: &impl Fn()) {
        task();
    }
}

/// An output slice of which every chunk writes its own part, from whichever thread works on it.
pub(crate) struct Parts<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Parts` only hands out parts of a slice that it borrows exclusively, and `part` makes its caller promise
// that no two of them overlap; sending plain numbers between threads is sound.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Parts<'a, T> {
        Parts { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// The part `range` of the slice.
    ///
    /// # Safety
    /// No two parts that are alive at the same time may overlap.
    #[allow(clippy::mut_from_ref, reason = "the caller promises that parts do not overlap")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a chunk writes inside its output");
        // SAFETY: the range lies inside the borrowed slice, and the caller keeps parts apart.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_visited_once_for_any_number_of_threads() {
        for threads in [None, Some(1), Some(2), Some(3), Some(7)] {
            for total in [0, 1, 9, 10, 11, 95] {
                let mut seen = vec![0u32; total];
                let parts = Parts::new(&mut seen);
                for_chunks(total, 10, threads, 1 << 20, |chunk, range| {
                    assert_eq!(range.start, chunk * 10);
                    // SAFETY: chunks do not overlap.
                    unsafe { parts.part(range) }.iter_mut().for_each(|n| *n += 1);
                });
                assert!(seen.iter().all(|&n| n == 1));
            }
        }
    }

    #[test]
    fn a_cap_is_a_whole_number() {
        assert_eq!((cap(None), cap(Some(""))), (Ok(MOST_THREADS), Ok(MOST_THREADS)));
        assert_eq!((cap(Some("1")), cap(Some("7")), cap(Some("99999"))), (Ok(1), Ok(7), Ok(MOST_THREADS)));
        for wrong in ["0", "-1", "two", "1.5", " 2", "99999999999999999999999"] {
            let refused = cap(Some(wrong)).unwrap_err().to_string();
            assert!(refused.starts_with("BITLDP_THREADS: ") && refused.contains(wrong), "{refused}");
        }
    }
}
