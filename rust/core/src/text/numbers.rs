//! Numbers in the fewest digits that give them back, laid out as Arrow's writer does: decimal from 1e-6 up to 1e10, and with an
//! exponent elsewhere.

use crate::io::Input;

/// Numbers of these sizes, and zeros, are decimal in `zmij`'s layout, too.
const PLAIN: [f64; 2] = [1e-3, 1e10];

/// Powers of ten of which the numbers are decimal.
const DECIMAL: std::ops::Range<i32> = -6..10;

/// Appends one of some numbers.
#[inline]
pub(super) fn write(numbers: Input<'_>, row: usize, out: &mut Vec<u8>) {
    match numbers {
        Input::F64(numbers) => {
            let x = numbers[row];
            real(x, zmij::Buffer::new().format(x), || format!("{x:e}"), out);
        }
        Input::F32(numbers) => {
            let x = numbers[row];
            real(x.into(), zmij::Buffer::new().format(x), || format!("{x:e}"), out);
        }
        Input::U8(numbers) => whole(numbers[row].into(), false, out),
        Input::U16(numbers) => whole(numbers[row].into(), false, out),
        Input::U32(numbers) => whole(numbers[row].into(), false, out),
        Input::U64(numbers) => whole(numbers[row], false, out),
        Input::I8(numbers) => signed(numbers[row].into(), out),
        Input::I16(numbers) => signed(numbers[row].into(), out),
        Input::I32(numbers) => signed(numbers[row].into(), out),
        Input::I64(numbers) => signed(numbers[row], out),
    }
}

fn signed(number: i64, out: &mut Vec<u8>) {
    whole(number.unsigned_abs(), number < 0, out);
}

fn whole(mut number: u64, negative: bool, out: &mut Vec<u8>) {
    let mut digits = [0; 21];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if negative {
        first -= 1;
        digits[first] = b'-';
    }
    out.extend_from_slice(&digits[first..]);
}

/// Appends a real number, given its shortest digits in the layout of `zmij` and, where that is another, with an exponent.
#[inline]
fn real(x: f64, shortest: &str, scientific: impl Fn() -> String, out: &mut Vec<u8>) {
    if x == 0.0 || (PLAIN[0]..PLAIN[1]).contains(&x.abs()) {
        out.extend_from_slice(shortest.strip_suffix(".0").unwrap_or(shortest).as_bytes());
    } else if x.is_nan() {
        out.extend_from_slice(b"nan");
    } else if x.is_infinite() {
        out.extend_from_slice(if x > 0.0 { b"inf" } else { b"-inf" });
    } else {
        laid_out(&scientific(), out);
    }
}

/// Appends a number that is written as digits and an exponent.
#[cold]
fn laid_out(scientific: &str, out: &mut Vec<u8>) {
    let (number, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !DECIMAL.contains(&exponent) {
        let sign = if exponent > 0 { "+" } else { "" };
        out.extend_from_slice(format!("{number}e{sign}{exponent}").as_bytes());
        return;
    }
    // What is left is small: the others were decimal before.
    let digits = number.trim_start_matches('-');
    out.extend_from_slice(if number.starts_with('-') { b"-0." } else { b"0." });
    out.extend((1..-exponent).map(|_| b'0'));
    out.extend(digits.bytes().filter(|&byte| byte != b'.'));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(numbers: Input<'_>) -> Vec<String> {
        let one = |row| {
            let mut out = Vec::new();
            write(numbers, row, &mut out);
            String::from_utf8(out).unwrap()
        };
        (0..numbers.len()).map(one).collect()
    }

    #[test]
    fn reals_are_laid_out() {
        let numbers = [0.0, -0.0, 170.0, -0.1, 9_999_999_999.5, 1e10, -1.25e22, 1e300];
        let expected = ["0", "-0", "170", "-0.1", "9999999999.5", "1e+10", "-1.25e+22", "1e+300"];
        assert_eq!(text(Input::F64(&numbers)), expected);
        let small = [1e-3, 9.5e-4, -1e-6, 1.25e-5, 9.9e-7, 5e-324, f64::NAN, -f64::INFINITY, f64::INFINITY];
        let expected =
            ["0.001", "0.00095", "-0.000001", "0.0000125", "9.9e-7", "5e-324", "nan", "-inf", "inf"];
        assert_eq!(text(Input::F64(&small)), expected);
        assert_eq!(
            text(Input::F32(&[0.1, 16_777_216.0, 1e-6, 3e38])),
            ["0.1", "16777216", "0.000001", "3e+38"]
        );
    }

    #[test]
    fn a_real_number_comes_back() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ state >> 29;
            let (double, single) = (f64::from_bits(bits), f32::from_bits(bits as u32));
            if double.is_finite() && single.is_finite() {
                assert_eq!(text(Input::F64(&[double]))[0].parse(), Ok(double));
                assert_eq!(text(Input::F32(&[single]))[0].parse(), Ok(single));
            }
        }
    }

    #[test]
    fn whole_numbers_are_their_digits() {
        let ends = [i64::MIN, -10, 0, 9, i64::MAX];
        assert_eq!(text(Input::I64(&ends)), ends.map(|number| number.to_string()));
        assert_eq!(text(Input::U64(&[u64::MAX]))[0], u64::MAX.to_string());
        assert_eq!(text(Input::I16(&[-32768, 100])), ["-32768", "100"]);
        let all = [
            Input::U8(&[255]),
            Input::U16(&[255]),
            Input::U32(&[255]),
            Input::U64(&[255]),
            Input::I32(&[255]),
        ];
        assert!(all.into_iter().all(|numbers| text(numbers) == ["255"]));
    }
}
