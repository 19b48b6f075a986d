//! Inputs and outputs of channels: borrowed slices of any element type.

use std::fmt;
use std::ops::Range;

use crate::parallel::Parts;

/// Values to randomize.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the variants are the types")]
pub enum Input<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

/// Runs `$body` with `$slice` bound to the slice of whichever variant `$input` is.
macro_rules! with_input {
    ($input:expr, $slice:ident => $body:expr) => {
        match $input {
            $crate::io::Input::U8($slice) => $body,
            $crate::io::Input::U16($slice) => $body,
            $crate::io::Input::U32($slice) => $body,
            $crate::io::Input::U64($slice) => $body,
            $crate::io::Input::I8($slice) => $body,
            $crate::io::Input::I16($slice) => $body,
            $crate::io::Input::I32($slice) => $body,
            $crate::io::Input::I64($slice) => $body,
            $crate::io::Input::F32($slice) => $body,
            $crate::io::Input::F64($slice) => $body,
        }
    };
}
impl Input<'_> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        with_input!(self, slice => slice.len())
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True where they are floating-point numbers.
    pub fn is_real(&self) -> bool {
        matches!(self, Input::F32(_) | Input::F64(_))
    }
}

/// Their type and how many there are: the values are private.
impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn element<T>(_: &[T]) -> &'static str {
            std::any::type_name::<T>()
        }
        let kind = with_input!(self, slice => element(slice));
        write!(f, "Input(<{} {kind}>)", self.len())
    }
}

/// Where the reports go, and in which form.
#[derive(Debug)]
pub enum Output<'a> {
    /// Code words of at most 8 bits.
    U8(&'a mut [u8]),
    /// Code words of at most 16 bits.
    U16(&'a mut [u16]),
    /// Code words of at most 32 bits.
    U32(&'a mut [u32]),
    /// A byte of 0 or 1 for each bit, most significant bit of a report first.
    Bits(&'a mut [u8]),
    /// The decoded reports, in single precision.
    F32(&'a mut [f32]),
    /// The decoded reports, in double precision.
    F64(&'a mut [f64]),
    /// The bits of all reports, most significant first, eight to a byte, nothing between reports.
    Packed(&'a mut [u8]),
}

impl Output<'_> {
    /// Elements of the slice.
    pub fn len(&self) -> usize {
        match self {
            Output::U8(slice) | Output::Bits(slice) | Output::Packed(slice) => slice.len(),
            Output::U16(slice) => slice.len(),
            Output::U32(slice) => slice.len(),
            Output::F32(slice) => slice.len(),
            Output::F64(slice) => slice.len(),
        }
    }

    /// True where the slice has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True where numbers go there, not codes.
    pub fn is_real(&self) -> bool {
        matches!(self, Output::F32(_) | Output::F64(_))
    }

    /// The part that the reports `range`, of `bits` bits each, fill. Packed reports must start at a whole byte.
    pub(crate) fn reports(&mut self, range: Range<usize>, bits: usize) -> Output<'_> {
        match self {
            Output::U8(slice) => Output::U8(&mut slice[range]),
            Output::U16(slice) => Output::U16(&mut slice[range]),
            Output::U32(slice) => Output::U32(&mut slice[range]),
            Output::Bits(slice) => Output::Bits(&mut slice[range.start * bits..range.end * bits]),
            Output::F32(slice) => Output::F32(&mut slice[range]),
            Output::F64(slice) => Output::F64(&mut slice[range]),
            Output::Packed(slice) => {
                debug_assert!((range.start * bits).is_multiple_of(8));
                Output::Packed(&mut slice[range.start * bits / 8..(range.end * bits).div_ceil(8)])
            }
        }
    }

    /// Fills the slice with zeros.
    pub(crate) fn clear(&mut self) {
        match self {
            Output::U8(slice) | Output::Bits(slice) | Output::Packed(slice) => slice.fill(0),
            Output::U16(slice) => slice.fill(0),
            Output::U32(slice) => slice.fill(0),
            Output::F32(slice) => slice.fill(0.0),
            Output::F64(slice) => slice.fill(0.0),
        }
    }

    /// Elements that `reports` reports of `bits` bits fill in this form; more than any memory has where they are so many.
    pub fn needed(&self, reports: usize, bits: usize) -> usize {
        let all = reports.checked_mul(bits);
        match self {
            Output::Bits(_) => all.unwrap_or(usize::MAX),
            Output::Packed(_) => all.map_or(usize::MAX, |all| all.div_ceil(8)),
            _ => reports,
        }
    }
}

impl<'a> Input<'a> {
    /// The values of `range`.
    pub(crate) fn part(&self, range: Range<usize>) -> Input<'a> {
        match self {
            Input::U8(slice) => Input::U8(&slice[range]),
            Input::U16(slice) => Input::U16(&slice[range]),
            Input::U32(slice) => Input::U32(&slice[range]),
            Input::U64(slice) => Input::U64(&slice[range]),
            Input::I8(slice) => Input::I8(&slice[range]),
            Input::I16(slice) => Input::I16(&slice[range]),
            Input::I32(slice) => Input::I32(&slice[range]),
            Input::I64(slice) => Input::I64(&slice[range]),
            Input::F32(slice) => Input::F32(&slice[range]),
            Input::F64(slice) => Input::F64(&slice[range]),
        }
    }
}

/// An [`Output`] of which every chunk writes its own reports, from whichever thread works on it.
pub(crate) enum OutputParts<'a> {
    U8(Parts<'a, u8>),
    U16(Parts<'a, u16>),
    U32(Parts<'a, u32>),
    Bits(Parts<'a, u8>),
    F32(Parts<'a, f32>),
    F64(Parts<'a, f64>),
    Packed(Parts<'a, u8>),
}

impl<'a> OutputParts<'a> {
    pub(crate) fn new(output: Output<'a>) -> OutputParts<'a> {
        match output {
            Output::U8(slice) => OutputParts::U8(Parts::new(slice)),
            Output::U16(slice) => OutputParts::U16(Parts::new(slice)),
            Output::U32(slice) => OutputParts::U32(Parts::new(slice)),
            Output::Bits(slice) => OutputParts::Bits(Parts::new(slice)),
            Output::F32(slice) => OutputParts::F32(Parts::new(slice)),
            Output::F64(slice) => OutputParts::F64(Parts::new(slice)),
            Output::Packed(slice) => OutputParts::Packed(Parts::new(slice)),
        }
    }

    /// Where the reports `range`, of `bits` bits each, go. Packed reports start at a whole byte: a chunk or a block of
    /// them is a multiple of eight.
    ///
    /// # Safety
    /// No two parts that are alive at the same time may overlap.
    pub(crate) unsafe fn part(&self, range: Range<usize>, bits: usize) -> Output<'_> {
        // SAFETY, here and below: passed on from the caller; different reports have different elements.
        match self {
            // SAFETY: as above.
            OutputParts::U8(parts) => Output::U8(unsafe { parts.part(range) }),
            // SAFETY: as above.
            OutputParts::U16(parts) => Output::U16(unsafe { parts.part(range) }),
            // SAFETY: as above.
            OutputParts::U32(parts) => Output::U32(unsafe { parts.part(range) }),
            OutputParts::Bits(parts) => {
                // SAFETY: as above.
                Output::Bits(unsafe { parts.part(range.start * bits..range.end * bits) })
            }
            // SAFETY: as above.
            OutputParts::F32(parts) => Output::F32(unsafe { parts.part(range) }),
            // SAFETY: as above.
            OutputParts::F64(parts) => Output::F64(unsafe { parts.part(range) }),
            OutputParts::Packed(parts) => {
                debug_assert!((range.start * bits).is_multiple_of(8));
                // SAFETY: as above; the start is a whole byte.
                Output::Packed(unsafe { parts.part(range.start * bits / 8..(range.end * bits).div_ceil(8)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_printed() {
        assert_eq!(format!("{:?}", Input::F32(&[7731.5, 0.0])), "Input(<2 f32>)");
        assert_eq!(format!("{:?}", Some(Input::I64(&[-7731]))), "Some(Input(<1 i64>))");
    }
}
