//! The pool of threads that works on chunks beside the caller.

use std::sync::{Arc, Mutex};

use super::most_threads;

/// Work below this many nanoseconds for each further thread stays on the caller's: waking a worker costs about a tenth.
const WORTH_A_THREAD_NS: usize = 100_000;

/// Runs `task` on `threads` threads, the caller's among them, and no more than there are chunks. `None` is as many as the
/// machine has and `nanoseconds` of work are enough for.
pub(super) fn on_threads(
    threads: Option<usize>,
    chunks: usize,
    nanoseconds: usize,
    task: &(impl Fn() + Sync),
) {
    let wanted = threads.unwrap_or_else(|| {
        let useful = nanoseconds / WORTH_A_THREAD_NS;
        // Asking the system costs microseconds: a small batch does not.
        if useful < 2 { 1 } else { useful.min(std::thread::available_parallelism().map_or(1, |n| n.get())) }
    });
    // A cap that cannot be read is refused when the module is loaded; who did not look works alone.
    let wanted = wanted.min(chunks);
    let wanted = if wanted < 2 { wanted } else { wanted.min(most_threads().unwrap_or(1)) };
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::parallel::for_chunks;

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
