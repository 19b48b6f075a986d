//! Which instruction set the kernels run on: found once, or forced by `BITLDP_ISA`.

use std::fmt;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// A family of instructions with kernels of its own. All of them give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Portable Rust: the readable oracle, and the path of every processor but x86-64.
    Scalar,
    /// x86-64 with AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// All of [`Isa::Avx2`], and AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// The environment variable that forces an instruction set.
pub const ISA_VARIABLE: &str = "BITLDP_ISA";

impl Isa {
    /// What this processor can run, best first.
    #[must_use]
    pub fn available() -> &'static [Isa] {
        const BEST_FIRST: [Isa; 3] = [Isa::Avx512, Isa::Avx2, Isa::Scalar];
        let best = detect();
        let skipped = BEST_FIRST.iter().position(|&isa| isa == best).unwrap_or(BEST_FIRST.len() - 1);
        &BEST_FIRST[skipped..]
    }

    /// What the kernels run on: the best available one, or the one that `BITLDP_ISA` names. Looked up once a process.
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

    /// This instruction set, once it is certain that the processor has it.
    ///
    /// # Errors
    /// [`Error::Isa`] if it has not.
    pub fn checked(self) -> Result<Isa> {
        if Isa::available().contains(&self) {
            return Ok(self);
        }
        Err(Error::Isa { reason: format!("this processor lacks {self}; allowed are {}", allowed()) })
    }

    /// `"scalar"`, `"avx2"` or `"avx512"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
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
        Some(name) => {
            match [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().find(|isa| isa.name() == name) {
                Some(isa) => isa.checked(),
                None => Err(Error::Isa { reason: format!("{name:?} is unknown; allowed are {}", allowed()) }),
            }
        }
    }
}

fn allowed() -> String {
    Isa::available().iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ")
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

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Scalar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_is_always_there_and_last() {
        assert_eq!(Isa::available().last(), Some(&Isa::Scalar));
        assert_eq!(Isa::Scalar.checked(), Ok(Isa::Scalar));
        assert_eq!(Isa::available()[0], detect());
    }

    #[test]
    fn a_name_selects_and_anything_else_is_refused() {
        assert_eq!(select(None), Ok(detect()));
        assert_eq!(select(Some("")), Ok(detect()));
        for &isa in Isa::available() {
            assert_eq!(select(Some(isa.name())), Ok(isa));
        }
        for wrong in ["AVX2", "sse2", "avx512 ", "neon"] {
            let Err(Error::Isa { reason }) = select(Some(wrong)) else { panic!("{wrong} was accepted") };
            assert!(reason.contains("scalar"), "{reason}");
        }
    }

    #[test]
    fn an_instruction_set_that_the_processor_lacks_is_refused() {
        for isa in [Isa::Avx2, Isa::Avx512] {
            assert_eq!(isa.checked().is_ok(), Isa::available().contains(&isa));
        }
    }
}
