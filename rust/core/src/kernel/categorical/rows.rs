//! Reads the input as rows: integers of any width, or numbers through a grid.

use crate::codec::Code;
use crate::codec::Grid;
use crate::io::Input;
use crate::isa::{BATCHES, Isa, compiled, vectorised};
use crate::random::Refine;
use crate::vector::{Kernel, Vector};

/// An integer that may be a row.
trait Integer: Copy + Sized {
    /// Itself, or `last` where it is larger or negative.
    fn clamped(self, last: u32) -> u32;
    /// True where it is above `last` or negative.
    fn is_outside(self, last: u32) -> bool;
    /// True where one of them is. All are looked at.
    #[inline(always)]
    fn any_outside(values: &[Self], last: u32) -> bool {
        any_of(values, last)
    }
}

macro_rules! integer {
    ($($type:ty as $unsigned:ty $({ $($own:item)* })?),*) => {$(
        impl Integer for $type {
            $($($own)*)?

            // As an unsigned integer a negative one is huge.
            #[inline(always)]
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "the same for every type")]
            fn clamped(self, last: u32) -> u32 {
                (self as $unsigned).min(last as $unsigned) as u32
            }

            #[inline(always)]
            #[allow(clippy::cast_lossless, clippy::unnecessary_cast, reason = "the same for every type")]
            fn is_outside(self, last: u32) -> bool {
                self as $unsigned > last as $unsigned
            }
        }
    )*};
}
integer!(u8 as u32 {
    #[inline(always)]
    fn any_outside(values: &[u8], last: u32) -> bool {
        if BATCHES { any_of(values, last) } else { any_byte_above(values, last) }
    }
}, u16 as u32, u32 as u32, i8 as u64, i16 as u64, i32 as u64, u64 as u64, i64 as u64);

/// True where an integer is above `last` or negative: a loop that the compiler can vectorise.
#[inline(always)]
fn any_of<T: Integer>(values: &[T], last: u32) -> bool {
    values.iter().fold(false, |any, &value| any | value.is_outside(last))
}

/// The same of bytes, eight at a time in plain words, for builds for size, in which nothing is vectorised.
fn any_byte_above(values: &[u8], last: u32) -> bool {
    const ONES: u64 = 0x0001_0001_0001_0001;
    if last >= u8::MAX.into() {
        return false;
    }
    // In 16 bits, a byte above `last` reaches the highest one.
    let (low, more) = (0xff * ONES, u64::from(0x7fff - last) * ONES);
    let (eights, rest) = values.as_chunks::<8>();
    let any = eights.iter().fold(0, |any, eight| {
        let word = u64::from_le_bytes(*eight);
        any | ((word & low) + more) | ((word >> 8 & low) + more)
    });
    any & (0x8000 * ONES) != 0 || any_of(rest, last)
}

/// How numbers become rows: a grid, a random byte for each of them, and the bits that a byte seldom leaves wanting.
pub(crate) type Dithered<'a, 'k> = (&'a Grid, &'a [u8], &'a mut Refine<'k>);

/// Writes the row of each input. The input was checked, but somebody else may have changed it since: whatever it holds,
/// the rows stay below `rows`, so that no address that is made from them leaves its table.
#[cfg_attr(feature = "batches", inline(always))]
#[cfg_attr(not(feature = "batches"), inline(never))]
pub(super) fn load<W: Code>(
    isa: Isa,
    input: Input<'_>,
    grid: Option<Dithered<'_, '_>>,
    rows: u32,
    words: &mut [W],
) {
    match (input, grid) {
        (Input::F32(values), Some((grid, dither, refine))) => grid.place(isa, values, dither, words, refine),
        (Input::F64(values), Some((grid, dither, refine))) => grid.place(isa, values, dither, words, refine),
        (Input::U8(values), None) => clamp(values, rows, words),
        (Input::U16(values), None) => clamp(values, rows, words),
        (Input::U32(values), None) => clamp(values, rows, words),
        (Input::U64(values), None) if BATCHES => clamp(values, rows, words),
        (Input::I8(values), None) if BATCHES => clamp(values, rows, words),
        (Input::I16(values), None) if BATCHES => clamp(values, rows, words),
        (Input::I32(values), None) if BATCHES => clamp(values, rows, words),
        (Input::I64(values), None) if BATCHES => clamp(values, rows, words),
        _ => unreachable!("the channel takes numbers with a grid and integers without one"),
    }
}

/// [`load`] of integers, compiled for `isa`, for callers that are not.
pub(crate) fn load_on<W: Code>(isa: Isa, input: Input<'_>, rows: u32, words: &mut [W]) {
    compiled(isa, LoadIntegers { isa, input, rows, words });
}

/// Integers, and the words that they become.
struct LoadIntegers<'a, W> {
    isa: Isa,
    input: Input<'a>,
    rows: u32,
    words: &'a mut [W],
}

impl<W: Code> Kernel for LoadIntegers<'_, W> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        load(self.isa, self.input, None, self.rows, self.words);
    }
}

#[inline(always)]
fn clamp<T: Integer, W: Code>(values: &[T], rows: u32, words: &mut [W]) {
    for (word, value) in words.iter_mut().zip(values) {
        *word = W::narrow(value.clamped(rows - 1));
    }
}

impl Input<'_> {
    /// The position of the first integer that is not below `rows`. All are looked at where all are.
    #[must_use]
    pub fn first_outside(&self, rows: u32) -> Option<usize> {
        first_outside(Isa::Scalar, *self, rows)
    }
}

/// The position of the first integer that is no row. Floats are not looked at.
pub(crate) fn first_outside(isa: Isa, input: Input<'_>, rows: u32) -> Option<usize> {
    match input {
        Input::U8(values) => first(isa, values, rows),
        Input::U16(values) => first(isa, values, rows),
        Input::U32(values) => first(isa, values, rows),
        Input::U64(values) if BATCHES => first(isa, values, rows),
        Input::I8(values) if BATCHES => first(isa, values, rows),
        Input::I16(values) if BATCHES => first(isa, values, rows),
        Input::I32(values) if BATCHES => first(isa, values, rows),
        Input::I64(values) if BATCHES => first(isa, values, rows),
        Input::F32(_) | Input::F64(_) => None,
        // No client has such integers: all are refused.
        _ => Some(0).filter(|_| !input.is_empty()),
    }
}

/// [`first_outside`] of records whose values have rows of their own.
pub(crate) fn first_outside_by(isa: Isa, input: Input<'_>, rows: &[u32]) -> Option<usize> {
    if rows.iter().all(|&own| own == rows[0]) {
        return first_outside(isa, input, rows[0]);
    }
    match input {
        Input::U8(values) => first_by(isa, values, rows),
        Input::U16(values) => first_by(isa, values, rows),
        Input::U32(values) => first_by(isa, values, rows),
        Input::U64(values) if BATCHES => first_by(isa, values, rows),
        Input::I8(values) if BATCHES => first_by(isa, values, rows),
        Input::I16(values) if BATCHES => first_by(isa, values, rows),
        Input::I32(values) if BATCHES => first_by(isa, values, rows),
        Input::I64(values) if BATCHES => first_by(isa, values, rows),
        Input::F32(_) | Input::F64(_) => None,
        // No client has such integers: all are refused.
        _ => Some(0).filter(|_| !input.is_empty()),
    }
}

fn first_by<T: Integer>(isa: Isa, values: &[T], rows: &[u32]) -> Option<usize> {
    let outside = |(value, row): (&T, &u32)| value.is_outside(row - 1);
    let any = vectorised(isa, || {
        let records = values.chunks_exact(rows.len());
        records.fold(false, |any, record| record.iter().zip(rows).fold(any, |any, pair| any | outside(pair)))
    });
    if any { values.iter().zip(rows.iter().cycle()).position(outside) } else { None }
}

fn first<T: Integer>(isa: Isa, values: &[T], rows: u32) -> Option<usize> {
    let outside = |value: T| value.is_outside(rows - 1);
    // Not stopping early lets the loop be vectorised.
    let any = vectorised(isa, || T::any_outside(values, rows - 1));
    if any { values.iter().position(|&value| outside(value)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_above_is_found_at_every_position() {
        for last in [0, 1, 7, 127, 128, 200, 253, 254, 255, 256, u32::MAX] {
            for length in [0, 1, 7, 8, 9, 16, 29] {
                let most = last.min(255) as u8;
                let mut values = vec![most; length];
                assert!(!any_byte_above(&values, last), "{last}");
                for position in 0..length {
                    for high in [most.saturating_add(1), 255] {
                        values[position] = high;
                        assert_eq!(any_byte_above(&values, last), u32::from(high) > last, "{last}, {high}");
                    }
                    values[position] = 0;
                }
            }
        }
    }

    #[test]
    fn rows_are_checked_and_clamped_in_every_width() {
        for &isa in Isa::available() {
            let mut words = [0u16; 5];
            for (input, outside, rows) in [
                (Input::U8(&[0, 1, 2, 99, 255]), Some(3), [0, 1, 2, 98, 98]),
                (Input::U16(&[0, 1, 2, 98, 65_535]), Some(4), [0, 1, 2, 98, 98]),
                (Input::U32(&[0, 1, 2, 98, 3]), None, [0, 1, 2, 98, 3]),
                (Input::U64(&[1 << 32, 1, 2, 98, 3]), Some(0), [98, 1, 2, 98, 3]),
                (Input::I8(&[0, -1, 2, 98, 3]), Some(1), [0, 98, 2, 98, 3]),
                (Input::I16(&[0, 1, 2, 98, -32_768]), Some(4), [0, 1, 2, 98, 98]),
                (Input::I32(&[0, 1, 65_536, 98, 3]), Some(2), [0, 1, 98, 98, 3]),
                (Input::I64(&[0, 1, i64::MIN, -1, i64::MAX]), Some(2), [0, 1, 98, 98, 98]),
            ] {
                assert_eq!(first_outside(isa, input, 99), outside);
                load(isa, input, None, 99, &mut words);
                assert_eq!(words, rows);
            }
            // With so many rows, only the sign tells a negative number from one.
            for negative in [Input::I8(&[-5]), Input::I16(&[-5]), Input::I32(&[-5]), Input::I64(&[-5])] {
                assert_eq!(first_outside(isa, negative, u32::MAX), Some(0));
            }
        }
    }
}
