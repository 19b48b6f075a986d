//! Runs fixed chunks on threads: the answer never depends on how many there are.
//!
//! A chunk of [`CHUNK`] values draws from its own part of the keystream, so it does not matter who works on it, nor
//! when. Threads are used only where the batch is worth waking them, and the caller is one of them. `BITLDP_THREADS` says
//! how many there are at most.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::{Error, Result};

/// Values (features or samples) in one chunk of the keystream.
pub const CHUNK: usize = 8192;

/// Work below this many nanoseconds for each further thread stays on the caller's: waking a worker costs about a tenth.
const WORTH_A_THREAD_NS: usize = 100_000;

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
                reason: format!("{text:?} is not allowed; a whole number of at least 1 is"),
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
    let wanted = threads.unwrap_or_else(|| {
        let useful = total.saturating_mul(nanoseconds) / WORTH_A_THREAD_NS;
        // Asking the system costs microseconds: a small batch does not.
        if useful < 2 { 1 } else { useful.min(std::thread::available_parallelism().map_or(1, |n| n.get())) }
    });
    // A cap that cannot be read is refused when the module is loaded; who did not look works alone.
    let wanted = wanted.min(chunks);
    let wanted = if wanted < 2 { wanted } else { wanted.min(most_threads().unwrap_or(1)) };
    let next = AtomicUsize::new(0);
    let task = || {
        while let Some(chunk) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < chunks) {
            run(chunk);
        }
    };
    // A pool that cannot be had (no more threads) slows the answer down and changes nothing in it.
    match wanted.checked_sub(1).filter(|&others| others > 0).and_then(pool) {
        // The caller takes chunks too, and waits at the end for those that others took.
        Some(pool) => pool.in_place_scope(|scope| {
            (1..wanted).for_each(|_| scope.spawn(|_| task()));
            task();
        }),
        None => task(),
    }
}

/// The pool of one process: it grows to the most threads that were asked for, so there is never more than one.
struct Shared {
    process: u32,
    pool: Option<Arc<rayon::ThreadPool>>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { process: 0, pool: None });

/// A pool of at least `threads` workers besides the caller. Workers do not survive a fork, so a child process makes its own.
fn pool(threads: usize) -> Option<Arc<rayon::ThreadPool>> {
    let make = || rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok().map(Arc::new);
    // Another thread may have held the lock when this process was forked, and then nobody frees it: do not wait for it.
    let Ok(mut shared) = SHARED.try_lock() else { return make() };
    let process = std::process::id();
    if shared.process != process {
        // The parent's workers are not here; dropping their pool would talk to them.
        std::mem::forget(shared.pool.take());
        shared.process = process;
    }
    if shared.pool.as_ref().is_none_or(|pool| pool.current_num_threads() < threads) {
        shared.pool = Some(make()?);
    }
    shared.pool.clone()
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

    #[test]
    fn the_caller_is_one_of_the_workers() {
        let caller = std::thread::current().id();
        for threads in [Some(1), Some(2), Some(4)] {
            let mine = AtomicUsize::new(0);
            let pause = std::time::Duration::from_millis(1);
            for_chunks(64, 1, threads, 0, |_, _| {
                std::thread::sleep(pause);
                mine.fetch_add(usize::from(std::thread::current().id() == caller), Ordering::Relaxed);
            });
            // Among equals it takes its share; nobody else does anything for one thread.
            let mine = mine.into_inner();
            assert!(mine > 0 && (threads != Some(1) || mine == 64), "{mine} of 64 for {threads:?}");
        }
    }

    #[test]
    fn there_is_one_pool_and_it_only_grows() {
        let sizes: Vec<usize> = [3, 2, 5, 4, 2].map(|n| pool(n).unwrap().current_num_threads()).to_vec();
        // Other tests share the pool, so it may have been larger before, or out of reach for a moment.
        assert!(sizes.iter().zip([3, 2, 5, 4, 2]).all(|(&size, wanted)| size >= wanted), "{sizes:?}");
    }
}
