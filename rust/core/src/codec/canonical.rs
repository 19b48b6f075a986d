//! The canonical form of values: what keyed randomness depends on, and what is drawn from.

use super::grid::Grid;
use crate::io::Input;
use crate::isa::BATCHES;

/// Runs `$body` with `$slice` bound to the integers of whichever type they are, or the other two for numbers.
macro_rules! by_kind {
    ($input:expr, $singles:ident => $single:expr, $doubles:ident => $double:expr, $slice:ident => $body:expr) => {
        match $input {
            Input::F32($singles) => $single,
            Input::F64($doubles) => $double,
            Input::U8($slice) => $body,
            Input::U16($slice) => $body,
            Input::U32($slice) => $body,
            Input::U64($slice) if BATCHES => $body,
            Input::I8($slice) if BATCHES => $body,
            Input::I16($slice) if BATCHES => $body,
            Input::I32($slice) if BATCHES => $body,
            Input::I64($slice) if BATCHES => $body,
            _ => {} // they were refused
        }
    };
}

/// Writes the canonical form of values: the bits of a number in double precision, with -0.0 and subnormals as 0.0, or an
/// integer itself.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the same for every type")]
pub(crate) fn canonical(input: Input<'_>, values: &mut [u64]) {
    let bits = |x: f64| Grid::settled(x).to_bits();
    by_kind!(input,
        numbers => values.iter_mut().zip(numbers).for_each(|(value, &x)| *value = bits(x.into())),
        numbers => values.iter_mut().zip(numbers).for_each(|(value, &x)| *value = bits(x)),
        // A negative one is huge, and is refused.
        integers => values.iter_mut().zip(integers).for_each(|(value, &x)| *value = x as u64))
}

/// Writes values as numbers in double precision, -0.0 and subnormals as 0.0.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the same for every type")]
pub(crate) fn settled(input: Input<'_>, numbers: &mut [f64]) {
    by_kind!(input,
        given => numbers.iter_mut().zip(given).for_each(|(number, &x)| *number = Grid::settled(x.into())),
        given => numbers.iter_mut().zip(given).for_each(|(number, &x)| *number = Grid::settled(x)),
        given => numbers.iter_mut().zip(given).for_each(|(number, &x)| *number = x as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_have_one_form() {
        let of = |input: Input<'_>| {
            let (mut values, mut numbers) = ([9; 2], [9.0; 2]);
            canonical(input, &mut values);
            settled(input, &mut numbers);
            (values, numbers)
        };
        let (zero, one) = (0f64.to_bits(), 1f64.to_bits());
        assert_eq!(of(Input::F64(&[-0.0, 1.0])), ([zero, one], [0.0, 1.0]));
        assert_eq!(of(Input::F64(&[-5e-324, 1.0])).0, [zero, one]);
        assert!(of(Input::F64(&[-5e-324, 1.0])).1[0].is_sign_positive());
        assert_eq!(of(Input::F32(&[-0.0, 1.0])), ([zero, one], [0.0, 1.0]));
        assert_eq!(of(Input::I16(&[0, -1])), ([0, u64::MAX], [0.0, -1.0]));
        assert_eq!(of(Input::U8(&[0, 200])), ([0, 200], [0.0, 200.0]));
    }
}
