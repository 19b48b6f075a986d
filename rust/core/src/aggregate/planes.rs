//! Code words turned on their side: a register of each bit, and counting in it.
//!
//! Rows of words, as many as a word has bits, are a square of bits for each column. Turned, register `i` holds bit `i` of
//! all of them: where two bits are 1 together is one AND of two registers, for as many words as the register has bits.

use super::vertical::BYTES;
use crate::vector::Vector;

/// `pattern` in every lane of `lane` bits.
const fn repeated(pattern: u64, lane: usize) -> u64 {
    u64::MAX / (u64::MAX >> (64 - lane)) * pattern
}

/// Turns the squares of bits that words of `LANE` bits in `LANE` rows are: bit `i` of row `r` goes to bit `r` of row `i`.
#[inline(always)]
pub(super) fn turn<V: Vector, const LANE: usize>(rows: &mut [V; LANE]) {
    let mut by = LANE / 2;
    while by > 0 {
        // The lower half of every square of `2 * by` bits.
        let low = rows[0].repeat_64(repeated((1 << by) - 1, 2 * by));
        for r in (0..LANE).filter(|r| r & by == 0) {
            // What is shifted out of a lane lands where the other row is selected.
            let (a, b) = (rows[r], rows[r + by]);
            rows[r] = low.select(a, b.left_64(by as u32));
            rows[r + by] = low.select(a.right_64(by as u32), b);
        }
        by /= 2;
    }
}

/// A line of memory that holds a register of the widest kind.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Register(pub(super) [u8; BYTES]);

impl Default for Register {
    fn default() -> Register {
        Register([0; BYTES])
    }
}

impl Register {
    /// The register from byte `at` on.
    #[inline(always)]
    pub(super) fn read<V: Vector>(&self, any: V, at: usize) -> V {
        assert!(at + V::BYTES <= BYTES);
        // SAFETY: as was looked at, a register at `at` lies within the line.
        unsafe { any.read(self.0.as_ptr().add(at)) }
    }

    /// Writes a register from byte `at` on.
    #[inline(always)]
    pub(super) fn write<V: Vector>(&mut self, at: usize, register: V) {
        assert!(at + V::BYTES <= BYTES);
        // SAFETY: as above.
        unsafe { register.write(self.0.as_mut_ptr().add(at)) }
    }
}

/// Registers that are added at once.
pub(super) const AT_ONCE: usize = 16;
/// Registers that [`Sum`] holds at most.
pub(super) const MOST: usize = 64;

/// Registers to be counted, `N` at a time: no closure, which would not be compiled for the instruction set around it.
pub(super) trait Planes<V, const N: usize> {
    /// The registers of number `i`, each made from `any`.
    ///
    /// # Safety
    /// There are more than `i`.
    unsafe fn at(&self, any: V, i: usize) -> [V; N];
}

/// Registers of one bit for consecutive squares, each in a line of its own, of which a kernel looks at those from byte `at` on.
#[derive(Clone, Copy)]
pub(super) struct Plane<'a> {
    lines: &'a [Register],
    at: usize,
}

impl<'a> Plane<'a> {
    /// Those of kernels with registers like `V`.
    #[inline(always)]
    pub(super) fn new<V: Vector>(lines: &'a [Register], at: usize) -> Plane<'a> {
        assert!(at + V::BYTES <= BYTES);
        Plane { lines, at }
    }

    /// # Safety
    /// There are more than `i`, and `V` is what the plane was made for.
    #[inline(always)]
    unsafe fn line<V: Vector>(self, any: V, i: usize) -> V {
        debug_assert!(i < self.lines.len());
        // SAFETY: a register at `at` lies within a line.
        unsafe { any.read(self.lines.as_ptr().add(i).cast::<u8>().add(self.at)) }
    }
}

/// The registers of one bit.
pub(super) struct One<'a>(pub(super) Plane<'a>);

impl<V: Vector> Planes<V, 1> for One<'_> {
    #[inline(always)]
    unsafe fn at(&self, any: V, i: usize) -> [V; 1] {
        // SAFETY: the caller's number.
        [unsafe { self.0.line(any, i) }]
    }
}

/// The registers of two bits and of the sign: where both are 1, and where the sign is, too.
pub(super) struct Two<'a>(pub(super) [Plane<'a>; 3]);

impl<V: Vector> Planes<V, 2> for Two<'_> {
    #[inline(always)]
    unsafe fn at(&self, any: V, i: usize) -> [V; 2] {
        // SAFETY: the caller's number.
        let [first, second, sign] = self.0.map(|plane| unsafe { plane.line(any, i) });
        let both = first.and(second);
        [both, both.and(sign)]
    }
}

/// How often each bit of some registers was 1, for `N` of them side by side: a binary counter for each bit, upright (the
/// carry-save adders of Harley and Seal).
#[derive(Clone, Copy)]
pub(super) struct Sum<V, const N: usize>([[V; N]; 7]);

/// [`Vector::sum`] side by side.
#[inline(always)]
fn sum<V: Vector, const N: usize>(mut a: [V; N], mut b: [V; N], c: [V; N]) -> ([V; N], [V; N]) {
    for i in 0..N {
        (a[i], b[i]) = a[i].sum(b[i], c[i]);
    }
    (a, b)
}

impl<V: Vector, const N: usize> Sum<V, N> {
    /// No counts yet; `any` is a register.
    #[inline(always)]
    pub(super) fn zero(any: V) -> Sum<V, N> {
        Sum([[any.repeat_64(0); N]; 7])
    }

    /// Adds the sixteen registers from `start` on; at most four times.
    ///
    /// # Safety
    /// There are as many.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, rows: &impl Planes<V, N>, start: usize) {
        let [mut ones, mut twos, mut fours, mut eights, ..] = self.0;
        let zero = ones[0].repeat_64(0);
        let mut carries = [ones; 2];
        for (half, carry) in carries.iter_mut().enumerate() {
            let mut quarters = [ones; 2];
            for (quarter, carry) in quarters.iter_mut().enumerate() {
                let at = start + 8 * half + 4 * quarter;
                let (a, b);
                // SAFETY: four of the caller's sixteen.
                unsafe {
                    (ones, a) = sum(ones, rows.at(zero, at), rows.at(zero, at + 1));
                    (ones, b) = sum(ones, rows.at(zero, at + 2), rows.at(zero, at + 3));
                }
                (twos, *carry) = sum(twos, a, b);
            }
            (fours, *carry) = sum(fours, quarters[0], quarters[1]);
        }
        let mut carry;
        (eights, carry) = sum(eights, carries[0], carries[1]);
        let [_, _, _, _, high @ ..] = &mut self.0;
        for level in high {
            (*level, carry) = sum(*level, carry, [zero; N]);
        }
        self.0[..4].copy_from_slice(&[ones, twos, fours, eights]);
    }

    /// The counts of the lanes of `LANE` bits, all bits of a lane together: of 16 or 32 bits in lanes of as many; of 8, those
    /// of the even ones and of the odd ones, in lanes of 16.
    #[inline(always)]
    pub(super) fn of_lanes<const LANE: usize>(&self, i: usize) -> [V; 2] {
        // Of each byte at most 8 ones of weight 15, and of weight 4: nothing is carried over into the next.
        let mut low = self.0[3][i].ones_of_bytes();
        for level in self.0[..3].iter().rev() {
            low = low.plus_64(low).plus_64(level[i].ones_of_bytes());
        }
        let mut high = self.0[6][i].ones_of_bytes();
        for level in self.0[4..6].iter().rev() {
            high = high.plus_64(high).plus_64(level[i].ones_of_bytes());
        }
        let byte = low.repeat_64(repeated(0xff, 16));
        let even = low.and(byte).plus_64(high.and(byte).left_64(4));
        let odd = low.right_64(8).and(byte).plus_64(high.right_64(8).and(byte).left_64(4));
        if LANE == 8 {
            return [even, odd];
        }
        let both = even.plus_64(odd);
        let word = low.repeat_64(repeated(0xffff, 32));
        if LANE == 16 { [both; 2] } else { [both.and(word).plus_64(both.right_64(16).and(word)); 2] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::Portable;

    #[test]
    fn patterns_are_repeated() {
        assert_eq!(repeated(0x0f, 8), 0x0f0f_0f0f_0f0f_0f0f);
        assert_eq!(repeated(1, 2), 0x5555_5555_5555_5555);
        assert_eq!(repeated(0xffff, 32), 0x0000_ffff_0000_ffff);
    }

    fn turned<const LANE: usize>() {
        let word =
            |r: usize, lane: usize| (0x9e37_79b9_7f4a_7c15u64.wrapping_mul((r * 64 + lane + 1) as u64)) >> 23;
        let mask = u64::MAX >> (64 - LANE);
        let row =
            |r: usize| (0..64 / LANE).fold(0, |row, lane| row | (word(r, lane) & mask) << (lane * LANE));
        let before: [u64; LANE] = std::array::from_fn(row);
        let mut rows = before.map(|row| Portable::default().repeat_64(row));
        turn(&mut rows);
        for (i, turned) in rows.map(Portable::first).into_iter().enumerate() {
            for position in 0..64 {
                let (lane, r) = (position / LANE * LANE, position % LANE);
                assert_eq!(turned >> position & 1, before[r] >> (lane + i) & 1, "{LANE}: {i} {position}");
            }
        }
    }

    #[test]
    fn squares_are_turned() {
        turned::<8>();
        turned::<16>();
        turned::<32>();
    }

    struct Full;

    impl Planes<Portable, 1> for Full {
        unsafe fn at(&self, any: Portable, _: usize) -> [Portable; 1] {
            [any.repeat_64(u64::MAX)]
        }
    }

    #[test]
    fn sums_are_full_without_overflow() {
        let mut sum = Sum::<Portable, 1>::zero(Portable::default());
        // SAFETY: there are as many as one asks for.
        (0..MOST / AT_ONCE).for_each(|_| unsafe { sum.add(&Full, 0) });
        assert_eq!(sum.of_lanes::<8>(0).map(Portable::first), [repeated(512, 16); 2]);
        assert_eq!(sum.of_lanes::<16>(0)[0].first(), repeated(1024, 16));
        assert_eq!(sum.of_lanes::<32>(0)[0].first(), repeated(2048, 32));
    }
}
