//! Instruction sets: the one that the kernels run on is found once, or forced by `BITLDP_ISA`.

use std::fmt;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// A family of instructions with kernels of its own. All of them give the same answers.
///
/// A value is a proof that this processor has the instructions: but for [`Isa::Scalar`], there is no other way to one than
/// [`available`](Isa::available), [`current`](Isa::current) and [`named`](Isa::named).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa(Family);

/// What an [`Isa`] can be; only this module makes one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Family {
    Scalar,
    Neon,
    Avx2,
    Avx512,
}

#[allow(non_upper_case_globals, reason = "they read as the variants that they are: kernels match on them")]
impl Isa {
    /// Portable Rust, in loops that compilers vectorise: the path of every processor without kernels of its own, and what
    /// the kernels are compared with. The tests compare it with single draws.
    pub const Scalar: Isa = Isa(Family::Scalar);
    /// AArch64 with Advanced SIMD. A pattern: no kernel makes a value of it.
    pub(crate) const Neon: Isa = Isa(Family::Neon);
    /// x86-64 with AVX2, BMI1, BMI2, LZCNT and POPCNT. A pattern, too.
    pub(crate) const Avx2: Isa = Isa(Family::Avx2);
    /// All of [`Isa::Avx2`], and AVX-512 F, BW, DQ and VL. A pattern, too.
    pub(crate) const Avx512: Isa = Isa(Family::Avx512);
}

/// The environment variable that forces an instruction set.
pub const ISA_VARIABLE: &str = "BITLDP_ISA";

/// Every instruction set with kernels of its own.
const ALL: [Isa; 4] = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Scalar];

/// Those of this architecture, best first: a processor that has one of them has all that come behind it.
#[cfg(target_arch = "x86_64")]
const OWN: &[Isa] = &[Isa::Avx512, Isa::Avx2, Isa::Scalar];
#[cfg(target_arch = "aarch64")]
const OWN: &[Isa] = &[Isa::Neon, Isa::Scalar];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OWN: &[Isa] = &[Isa::Scalar];

impl Isa {
    /// The instruction sets that this processor has, best first.
    #[must_use]
    pub fn available() -> &'static [Isa] {
        let best = detect();
        let skipped = OWN.iter().position(|&isa| isa == best).unwrap_or(OWN.len() - 1);
        &OWN[skipped..]
    }

    /// The instruction set that the kernels run on: the best one, or the one that `BITLDP_ISA` names.
    ///
    /// It is looked up once a process.
    ///
    /// # Errors
    /// [`Error::Isa`] if the variable names an unknown instruction set, or one that this processor lacks.
    pub fn current() -> Result<Isa> {
        static CURRENT: OnceLock<Result<Isa>> = OnceLock::new();
        CURRENT
            .get_or_init(|| {
                select(std::env::var_os(ISA_VARIABLE).as_deref().map(|v| v.to_string_lossy()).as_deref())
            })
            .clone()
    }

    /// The instruction set of this name.
    ///
    /// # Errors
    /// [`Error::Isa`] if the name is unknown, or if this processor lacks it.
    pub fn named(name: &str) -> Result<Isa> {
        if let Some(&isa) = Isa::available().iter().find(|isa| isa.name() == name) {
            return Ok(isa);
        }
        let known = ALL.iter().any(|isa| isa.name() == name);
        let allowed = Isa::available().iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ");
        let reason =
            if known { format!("this processor lacks {name}") } else { format!("{name:?} is unknown") };
        Err(Error::Isa { reason: format!("{reason}; allowed are {allowed}") })
    }

    /// This instruction set: a value of it says that the processor has it.
    pub(crate) fn checked(self) -> Result<Isa> {
        Ok(self)
    }

    /// `"scalar"`, `"neon"`, `"avx2"` or `"avx512"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Family::Scalar => "scalar",
            Family::Neon => "neon",
            Family::Avx2 => "avx2",
            Family::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The instruction set that `wanted` names; an empty name is none.
fn select(wanted: Option<&str>) -> Result<Isa> {
    match wanted {
        None | Some("") => Ok(detect()),
        Some(name) => Isa::named(name),
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Scalar,
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Isa {
    // The kernels read words as bytes and back, so the order of bytes has to be the keystream's.
    if cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon") {
        Isa::Neon
    } else {
        Isa::Scalar
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> Isa {
    Isa::Scalar
}

/// Runs `work`, a loop that the compiler can vectorise, compiled for `isa`: for what needs no intrinsics.
#[inline]
pub(crate) fn vectorised<R>(isa: Isa, work: impl FnOnce() -> R) -> R {
    /// Compiles `work` with AVX-512.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx512<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    /// Compiles `work` with AVX2.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx2<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    /// Compiles `work` with Advanced SIMD.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn on_neon<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    match isa {
        // SAFETY: an `Isa` is made only of what this processor has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { on_neon(work) },
        _ => work(),
    }
}

/// A loop that the compiler can vectorise, where [`vectorised`] is too weak: a closure that is called once an instruction
/// set is inlined only if it is short, and is not compiled for any of them otherwise.
pub(crate) trait Loop {
    /// What it comes to.
    type Answer;
    /// The loop. An implementation is marked `#[inline(always)]`.
    fn run(self) -> Self::Answer;
}

/// Runs a loop compiled for `isa`.
#[inline]
pub(crate) fn compiled<L: Loop>(isa: Isa, work: L) -> L::Answer {
    /// Compiles `work` with AVX-512.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx512<L: Loop>(work: L) -> L::Answer {
        work.run()
    }
    /// Compiles `work` with AVX2.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx2<L: Loop>(work: L) -> L::Answer {
        work.run()
    }
    /// Compiles `work` with Advanced SIMD.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    unsafe fn on_neon<L: Loop>(work: L) -> L::Answer {
        work.run()
    }
    match isa {
        // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { on_neon(work) },
        _ => work.run(),
    }
}

/// 64 bytes of 0 or 1 as a mask, the first of them lowest.
#[inline(always)]
pub(crate) fn mask_of(bytes: &[u8; 64]) -> u64 {
    bytes.as_chunks::<8>().0.iter().rev().fold(0, |mask, eight| {
        // Byte i goes to bit 56 + i; no two products meet.
        mask << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// The places of the ones in `mask`, from the lowest.
#[inline(always)]
pub(crate) fn ones(mask: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut left = mask.into();
    std::iter::from_fn(move || {
        let place = left.trailing_zeros() as usize;
        let any = left != 0;
        left &= left.wrapping_sub(1);
        any.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place_in_a_mask() {
        for place in 0..64 {
            let mut bytes = [0; 64];
            bytes[place] = 1;
            assert_eq!(mask_of(&bytes), 1 << place);
            assert!(ones(mask_of(&bytes.map(|byte| 1 - byte))).eq((0..64).filter(|&at| at != place)));
        }
    }

    #[test]
    fn scalar_is_always_there_and_last() {
        assert_eq!(Isa::available().last(), Some(&Isa::Scalar));
        assert_eq!(Isa::named("scalar"), Ok(Isa::Scalar));
        assert_eq!(Isa::available()[0], detect());
    }

    #[test]
    fn no_processor_has_the_units_of_two_architectures() {
        let has = |name| Isa::named(name).is_ok();
        assert!(!(has("neon") && has("avx2")));
        let other = if cfg!(target_arch = "aarch64") { "avx512" } else { "neon" };
        let Err(Error::Isa { reason }) = Isa::named(other) else { panic!("{other} was accepted") };
        assert!(reason.starts_with("this processor lacks"), "{reason}");
    }

    #[test]
    fn a_name_selects_and_anything_else_is_refused() {
        assert_eq!(select(None), Ok(detect()));
        assert_eq!(select(Some("")), Ok(detect()));
        for &isa in Isa::available() {
            assert_eq!(select(Some(isa.name())), Ok(isa));
        }
        for wrong in ["AVX2", "sse2", "avx512 ", "NEON"] {
            let Err(Error::Isa { reason }) = select(Some(wrong)) else { panic!("{wrong} was accepted") };
            assert!(reason.contains("scalar"), "{reason}");
        }
    }

    #[test]
    fn a_name_gives_only_what_the_processor_has() {
        for isa in ALL {
            assert_eq!(Isa::named(isa.name()).ok(), Isa::available().contains(&isa).then_some(isa));
        }
    }

    /// In this crate the constants of vector units could be taken for values; they may only be patterns.
    #[test]
    fn no_kernel_makes_a_value_of_a_vector_unit() {
        let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        let mut found = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("isa.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let units = ["Isa::Avx", "Isa::Neon"];
                    let place = |line: &str| units.iter().find_map(|unit| line.find(unit));
                    for (line, unit) in text.lines().filter_map(|line| Some((line, place(line)?))) {
                        let (before, after) = (line[..unit].trim_end(), &line[unit..]);
                        let pattern =
                            after.contains("=>") || before.ends_with("==") || before.ends_with("//");
                        assert!(pattern, "{}: {line}", path.display());
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 9, "the kernels match on vector units");
    }
}
