//! Half-cubes and caps: a report is a string of signs that agrees with the input in many positions, or in few.

use std::ops::Range;
use std::sync::Arc;

use num_bigint::BigUint;

use super::call::{Call, Channel};
use super::chunks::{Chunks, heard};
use super::keyed::{Keyed, KeyedCall, absorb, records};
use crate::binomial::{Restricted, halves};
use crate::codec::{Coordinate, Grid};
use crate::error::{Error, Result, argument, element, reason, words};
use crate::io::{Input, Output};
use crate::isa::{Isa, vectorised};
use crate::kernel::cube::CubeSampler;
use crate::parallel::CHUNK;
use crate::probability::{Probability, large_log_ratio};
use crate::random::{Digest, Key};

/// The longest record: about what is still prepared in a second.
const MOST_BITS: u32 = 1 << 22;

/// The channel of half-cubes and caps, on strings of `r` bits (signs).
///
/// Let `A` be the number of positions in which the report agrees with the input. With probability `T / 2^64` the report is
/// uniform among the strings with `A >= near`, otherwise among those with `A <= far`, where `far` is `near - 1` (the two
/// sets are all strings) or `near` (both hold the strings with just `near` agreements, as in the paper of Duchi, Jordan
/// and Wainwright for an even number of coordinates).
///
/// The number of agreements is drawn from the binomial law restricted to the chosen set, by comparing random bits with
/// exact big integers; then every set of as many positions is equally likely to be the one that agrees.
pub struct Cube {
    sets: Arc<Sets>,
    high: Probability,
    mute: bool,
}

/// The part that does not depend on the probability, and takes longest to prepare.
struct Sets {
    bits: u32,
    near: u32,
    far: u32,
    near_law: Restricted,
    far_law: Restricted,
    /// `C(r, near)`.
    at_near: BigUint,
}

impl Cube {
    /// Records of `bits` bits: with probability `high` at least `near` agreements, otherwise at most `far`.
    ///
    /// # Errors
    /// `bits` outside 1 to 2^22, `near` above `bits`, or `far` neither `near` nor `near - 1`.
    pub fn new(bits: u32, near: u32, far: u32, high: Probability) -> Result<Cube> {
        if !(1..=MOST_BITS).contains(&bits) {
            return Err(argument("bits", reason!("{bits} is not allowed; 1 to {MOST_BITS} are")));
        }
        if near > bits {
            return Err(argument("near", reason!("{near} is not allowed; 0 to {bits} are")));
        }
        if near != far && near.checked_sub(1) != Some(far) {
            return Err(argument("far", reason!("{far} is not allowed; near={near} and one less are")));
        }
        let (near_law, far_law, at_near) = halves(bits, near, far);
        Ok(Cube { sets: Arc::new(Sets { bits, near, far, near_law, far_law, at_near }), high, mute: false })
    }

    /// The same sets with another probability; nothing is prepared anew.
    #[must_use]
    pub fn with_high(&self, high: Probability) -> Cube {
        Cube { sets: Arc::clone(&self.sets), high, mute: false }
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0, which no `high` gives unless
    /// the sizes divide 2^64.
    #[must_use]
    pub fn muted(self) -> Cube {
        Cube { mute: true, ..self }
    }

    /// Bits of a record, r.
    pub fn bits(&self) -> u32 {
        self.sets.bits
    }

    /// The least agreements of the likely set.
    pub fn near(&self) -> u32 {
        self.sets.near
    }

    /// The most agreements of the other set.
    pub fn far(&self) -> u32 {
        self.sets.far
    }

    /// The probability of the likely set.
    pub fn high(&self) -> Probability {
        self.high
    }

    /// How many strings each set has: `Σ_{a >= near} C(r, a)` and `Σ_{a <= far} C(r, a)`.
    pub fn sizes(&self) -> (&BigUint, &BigUint) {
        (self.sets.near_law.total(), self.sets.far_law.total())
    }

    /// The strings at the edges of the sets: `C(r-1, near-1)` and `C(r-1, far)`.
    ///
    /// Over the sizes, they are the mean of `2A/r - 1` in the likely set, and of its
    /// negative in the other: `(2a - r) C(r, a) = r C(r-1, a-1) - r C(r-1, a)`, so that the sums telescope.
    pub fn edges(&self) -> (BigUint, BigUint) {
        let Sets { bits, near, far, ref at_near, .. } = *self.sets;
        // C(r-1, a-1) is C(r, a) a/r, and C(r-1, a) the rest of C(r, a).
        let inner = at_near * near / bits;
        let outer = if far == near { at_near - &inner } else { inner.clone() };
        (inner, outer)
    }

    /// The records of an input.
    fn chunks(&self, input: Input<'_>, first_chunk: u64, threads: Option<usize>) -> Chunks {
        let (bits, values) = (self.bits(), self.bits() as usize);
        Chunks {
            reports: input.len() / values,
            bits,
            codes: 1,
            values,
            chunk: self.chunk(),
            first_chunk,
            threads,
        }
    }

    /// Refuses what does not fit; gives the decoded values of a 0 and a 1.
    fn check(
        &self,
        grid: Option<&Grid>,
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: &Output<'_>,
    ) -> Result<[f64; 2]> {
        match (grid, input) {
            (Some(grid), Input::F32(_) | Input::F64(_)) if grid.points() != 2 => {
                return Err(argument("grid", reason!("{} points are not allowed; 2 are", grid.points())));
            }
            (Some(_), Input::F32(_) | Input::F64(_)) | (None, Input::U8(_)) => {}
            (Some(_), _) => return Err(argument("x", words("a grid takes float32 or float64"))),
            (None, _) => return Err(argument("x", words("without a grid, bytes of 0 and 1 are needed"))),
        }
        let bits = self.bits() as usize;
        if !input.len().is_multiple_of(bits) {
            let reason = reason!("{} values are not a whole number of records of {bits}", input.len());
            return Err(Error::Shape { name: "x", reason });
        }
        if !(output.is_real() || matches!(output, Output::Bits(_) | Output::Packed(_))) {
            return Err(argument("output", words("records have the outputs bits, packed and values")));
        }
        if output.is_real() && letters.is_none() {
            return Err(argument("output", words("values need letters: the numbers for 0 and for 1")));
        }
        let Ok(letters) = <[f64; 2]>::try_from(letters.unwrap_or(&[0.0; 2])) else {
            let reason = "two are needed: the numbers for 0 and for 1";
            return Err(Error::Shape { name: "letters", reason: words(reason) });
        };
        Ok(letters)
    }
}

impl Channel for Cube {
    type Codec<'a> = Option<&'a Grid>;
    type Keys<'a> = &'a Key;

    /// It is also the ε of one bit: a report is likeliest and least likely under inputs with neighbouring numbers of
    /// agreements, which a single bit takes from one to the other.
    fn epsilon(&self) -> f64 {
        if self.mute {
            return 0.0;
        }
        let (near_size, far_size) = self.sizes();
        // Probabilities of one string, times 2^64 and both sizes.
        let inside = far_size * self.high.numerator();
        let outside = near_size * self.high.complement().numerator();
        let mut kinds = Vec::new();
        if self.near() > self.far() {
            kinds.extend([inside, outside]);
        } else {
            if self.near() < self.bits() {
                kinds.push(inside.clone());
            }
            if self.far() > 0 {
                kinds.push(outside.clone());
            }
            kinds.push(inside + outside);
        }
        let (most, least) = (kinds.iter().max().expect("one"), kinds.iter().min().expect("one"));
        large_log_ratio(most, least)
    }

    fn report_bits(&self) -> u32 {
        self.bits()
    }

    fn is_mute(&self) -> bool {
        self.mute
    }

    /// About [`CHUNK`] bytes of bits, and a multiple of eight.
    fn chunk(&self) -> usize {
        (CHUNK / (self.bits() as usize).div_ceil(8) / 8 * 8).max(8)
    }

    /// The input is records of `bits` values each, one after the other: bytes of 0 and 1 are the bits; real numbers need a
    /// grid of two points, and are dithered to one of its ends, the upper one being 1. The output takes `Bits`, `Packed`
    /// (nothing between records), or the two letters that a 0 and a 1 are decoded to.
    ///
    /// Neither branches nor addresses depend on the input: it is only combined with the drawn disagreements, by exclusive
    /// or, in the end.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&Grid>, &Key>) -> Result<()> {
        let Call { codec: grid, input, letters, output, keys: key, first_chunk, threads } = call;
        let letters = self.check(grid, input, letters, &output)?;
        let bits = self.bits() as usize;
        let chunks = self.chunks(input, first_chunk, threads);
        chunks.check(&output)?;
        // About a nanosecond a byte of bits, and what the positions that are put right take, about sqrt(r) of them.
        let work = 200 + bits / if input.is_real() { 1 } else { 4 };
        let mut zeros = Vec::new();
        let (heard_grid, heard_input) = heard(self.is_mute(), grid, input, &mut zeros);
        let sampler = self.sampler(isa, key, heard_grid, letters);
        let values = |reports: &Range<usize>| reports.start * bits..reports.end * bits;
        let refused = |reports| first_refused(isa, grid, input.part(values(&reports)));
        let draw = |chunk, reports: Range<usize>, output: Output<'_>| {
            sampler.chunk(chunk, reports.len(), heard_input.part(values(&reports)), output);
        };
        chunks.walk(output, work, refused, draw).map_err(|index| element("x", index, allowed(grid)))
    }
}

impl Keyed for Cube {
    /// A record is one value: two that differ in one position have independent reports.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Cube {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(
        &self,
        heard: u64,
        isa: Isa,
        call: KeyedCall<'_, Option<&Grid>>,
    ) -> Result<()> {
        let (grid, numbers, mute) = (call.codec, call.codec.is_some(), self.mute);
        let law = |digest: &mut Digest| {
            let sizes = [self.bits().into(), self.near().into(), self.far().into()];
            digest.text(b"cube");
            digest.numbers(
                sizes.into_iter().chain([self.high.numerator(), mute.into()]).collect::<Vec<_>>().into_iter(),
            );
            absorb(grid, digest);
        };
        let (values, bits) = (self.bits() as usize, self.bits());
        let description = records::WholeRecordCall {
            isa,
            values,
            words: 1,
            codes: 1,
            bits,
            numbers,
            mute,
            law: &law,
            heard,
        };
        let chunks = description.chunks(&call)?;
        // Integers are numbers where there is a grid.
        let seen = if numbers { Input::F64(&[]) } else { call.input };
        let letters = self.check(grid, seen, call.letters, &call.output)?;
        chunks.check(&call.output)?;
        let heard_grid = if mute { None } else { grid };
        let draw = |key: &Key, input: Input<'_>, output: Output<'_>| {
            self.sampler(isa, key, heard_grid, letters).chunk(0, 1, input, output);
            None
        };
        description
            .randomize(call, |input| first_refused(isa, grid, input), draw)?
            .map_err(|index| element("x", index, allowed(grid)))
    }

    /// The sampler of a key.
    fn sampler<'a>(
        &'a self,
        isa: Isa,
        key: &'a Key,
        grid: Option<&'a Grid>,
        letters: [f64; 2],
    ) -> CubeSampler<'a> {
        let Sets { near_law: near, far_law: far, .. } = &*self.sets;
        CubeSampler {
            isa,
            key,
            bits: self.bits() as usize,
            high: self.high.numerator(),
            near,
            far,
            grid,
            letters,
        }
    }
}

/// The values that are allowed.
fn allowed(grid: Option<&Grid>) -> &'static str {
    grid.map_or("0 and 1 are", Grid::allowed)
}

/// The position of the first value that is no sign and has none; the input's type was checked.
fn first_refused(isa: Isa, grid: Option<&Grid>, input: Input<'_>) -> Option<usize> {
    match (input, grid) {
        (Input::F32(values), Some(grid)) => off_grid(isa, grid, values),
        (Input::F64(values), Some(grid)) => off_grid(isa, grid, values),
        (Input::U8(values), _) => first_above_one(isa, values),
        _ => None,
    }
}

fn off_grid<F: Coordinate>(isa: Isa, grid: &Grid, values: &[F]) -> Option<usize> {
    vectorised(isa, || grid.first_refused(values))
}

fn first_above_one(isa: Isa, values: &[u8]) -> Option<usize> {
    if vectorised(isa, || values.iter().fold(0, |all, bit| all | bit)) <= 1 {
        return None;
    }
    values.iter().position(|&bit| bit > 1)
}
