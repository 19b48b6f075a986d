//! Random bytes of the operating system, by the short way where it has one.
//!
//! Linux on x86-64 (6.11 and newer) maps a `getrandom` into every process, which answers from the kernel's generator
//! without a system call: a third of the time of a record. It is the kernel's own generator with the kernel's own rules: a
//! state that is used once per answer and overwritten, that is thrown away whenever the kernel reseeds (a virtual machine
//! that was resumed from a snapshot is among the reasons), and that lies in memory that a forked child gets as zeros
//! (`MAP_DROPPABLE`), so that nothing is ever handed out twice. Nothing is generated here, and a process that cannot have
//! it asks by the system call.

use rand::TryRng;

use crate::error::{Error, Result};

/// 32 bytes that nobody else gets.
///
/// # Errors
/// [`Error::Entropy`] if the system gives none.
pub(super) fn fresh() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    if mapped::fill(&mut bytes) {
        return Ok(bytes);
    }
    rand::rngs::SysRng.try_fill_bytes(&mut bytes).map_err(|_| Error::Entropy)?;
    Ok(bytes)
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod mapped {
    use std::ffi::{c_uint, c_void};
    use std::ptr::null_mut;

    /// The kernel's function: what `getrandom` takes, and a state of the thread's own.
    type GetRandom = unsafe extern "C" fn(*mut c_void, usize, c_uint, *mut c_void, usize) -> isize;

    /// What the function says of its state when it is asked with the largest length: `vgetrandom_opaque_params`.
    #[repr(C)]
    #[derive(Default)]
    struct Wanted {
        size: u32,
        protection: u32,
        flags: u32,
        reserved: [u32; 13],
    }

    /// A page, which a state must not reach beyond.
    const PAGE: usize = 4096;

    /// A thread's state, in a page of its own.
    struct State {
        call: GetRandom,
        page: *mut c_void,
        size: usize,
    }

    impl State {
        /// A state as the kernel wants it; none where it has no such function.
        fn new() -> Option<State> {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            // SAFETY: a name of this program's; what is not loaded already, as the kernel's page is, is not loaded now.
            let page = unsafe { libc::dlopen(c"linux-vdso.so.1".as_ptr(), flags) };
            if page.is_null() {
                return None;
            }
            // SAFETY: the handle came just now, and is never closed.
            let found = unsafe { libc::dlsym(page, c"__vdso_getrandom".as_ptr()) };
            if found.is_null() {
                return None;
            }
            // SAFETY: the symbol is the kernel's function, whose type is a part of its interface.
            let call = unsafe { std::mem::transmute::<*mut c_void, GetRandom>(found) };
            let mut wanted = Wanted::default();
            // SAFETY: with no buffer and the largest length it fills in what it wants of a state.
            let answer = unsafe { call(null_mut(), 0, 0, (&raw mut wanted).cast(), usize::MAX) };
            let size = wanted.size as usize;
            if answer != 0 || size == 0 || size > PAGE {
                return None;
            }
            let (protection, flags) = (wanted.protection as i32, wanted.flags as i32);
            // SAFETY: a new mapping, wherever there is room.
            let page = unsafe { libc::mmap(null_mut(), PAGE, protection, flags, -1, 0) };
            (page != libc::MAP_FAILED).then_some(State { call, page, size })
        }

        /// Whether the kernel filled all of the bytes.
        fn fill(&self, bytes: &mut [u8]) -> bool {
            // SAFETY: the bytes are writable, and the state is the calling thread's alone, as large as the kernel wanted it,
            // at the start of a page; a signal that interrupts the call and makes another finds it in use, which the
            // kernel's function looks at itself.
            let filled =
                unsafe { (self.call)(bytes.as_mut_ptr().cast(), bytes.len(), 0, self.page, self.size) };
            filled == bytes.len() as isize
        }
    }

    impl Drop for State {
        fn drop(&mut self) {
            // SAFETY: the mapping is this state's own, and nobody has its address any more.
            unsafe { libc::munmap(self.page, PAGE) };
        }
    }

    thread_local! {
        static STATE: Option<State> = State::new();
    }

    /// Fills the bytes; false where that must be asked for by the system call.
    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        // A thread that is being ended has no state any more.
        STATE.try_with(|state| state.as_ref().is_some_and(|state| state.fill(bytes))).unwrap_or(false)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_state_answers_anew_every_time_and_in_every_process() {
            let Some(state) = State::new() else { return };
            let mut before = [0; 32];
            assert!(state.fill(&mut before) && before != [0; 32]);
            let mut ends = [0; 2];
            // SAFETY: room for two file descriptors.
            assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
            // SAFETY: the child draws, writes and ends: it takes no lock and allocates nothing.
            let child = unsafe { libc::fork() };
            let mut drawn = [0; 32];
            let filled = state.fill(&mut drawn);
            if child == 0 {
                // SAFETY: the bytes are there; the child ends without running anything of the parent's.
                unsafe {
                    libc::write(ends[1], drawn.as_ptr().cast(), drawn.len());
                    libc::_exit(i32::from(!filled));
                }
            }
            assert!(child > 0 && filled);
            let mut theirs = [0; 32];
            // SAFETY: room for 32 bytes; a short message of a pipe arrives whole.
            assert_eq!(unsafe { libc::read(ends[0], theirs.as_mut_ptr().cast(), theirs.len()) }, 32);
            // SAFETY: the child of above.
            unsafe { libc::waitpid(child, null_mut(), 0) };
            assert!(theirs != drawn && theirs != before && drawn != before && theirs != [0; 32]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fresh;

    #[test]
    fn no_two_answers_are_alike_on_any_thread() {
        let draw = || (0..1000).map(|_| fresh().unwrap()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw)).collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4000);
    }
}
