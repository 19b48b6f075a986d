//! Code words turned on their side: a register of each bit, and counting in it.
//!
//! Rows of words, as many as a word has bits, are a square of bits for each column. Turned, register `i` holds bit `i` of
//! all of them: where two bits are 1 together is one AND of two registers, for as many words as the register has bits.

use super::vector::Vector;
use super::vertical::BYTES;

/// `pattern` in every lane of `lane` bits.
const fn repeated(pattern: u64, lane: usize) -> u64 {
    u64::MAX / (u64::MAX >> (64 - lane)) * pattern
}

/// Turns the squares of bits that words of `LANE` bits in `LANE` rows are: bit `i` of row `r` goes to bit `r` of row `i`.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(super) unsafe fn turn<V: Vector, const LANE: usize>(rows: &mut [V; LANE]) {
    let mut by = LANE / 2;
    while by > 0 {
        // The lower half of every square of `2 * by` bits.
        let low = repeated((1 << by) - 1, 2 * by);
        for r in (0..LANE).filter(|r| r & by == 0) {
            // SAFETY: the caller's processor. What is shifted out of a lane lands where the other row is selected.
            unsafe {
                let (a, b) = (rows[r], rows[r + by]);
                rows[r] = V::repeat(low).select(a, b.left(by as u32));
                rows[r + by] = V::repeat(low).select(a.right(by as u32), b);
            }
        }
        by /= 2;
    }
}

/// Registers that are added at once.
pub(super) const AT_ONCE: usize = 16;
/// Registers that [`Sum`] holds at most.
pub(super) const MOST: usize = 64;

/// Registers to be counted, `N` at a time: no closure, which would not be compiled for the instruction set around it.
pub(super) trait Rows<V, const N: usize> {
    /// The registers of number `i`.
    ///
    /// # Safety
    /// As [`Vector`].
    unsafe fn at(&self, i: usize) -> [V; N];
}

/// The registers of one bit.
pub(super) struct One(pub(super) *const u8);

impl<V: Vector> Rows<V, 1> for One {
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> [V; 1] {
        // SAFETY: the caller's processor and registers.
        [unsafe { V::load(self.0.add(i * BYTES)) }]
    }
}

/// The registers of two bits and of the sign: where both are 1, and where the sign is, too.
pub(super) struct Two(pub(super) [*const u8; 3]);

impl<V: Vector> Rows<V, 2> for Two {
    #[inline(always)]
    unsafe fn at(&self, i: usize) -> [V; 2] {
        // SAFETY: the caller's processor and registers.
        unsafe {
            let both = V::load(self.0[0].add(i * BYTES)).and(V::load(self.0[1].add(i * BYTES)));
            [both, both.and(V::load(self.0[2].add(i * BYTES)))]
        }
    }
}

/// How often each bit of some registers was 1, for `N` of them side by side: a binary counter for each bit, upright (the
/// carry-save adders of Harley and Seal).
#[derive(Clone, Copy)]
pub(super) struct Sum<V, const N: usize>([[V; N]; 7]);

/// [`Vector::sum`] side by side.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
unsafe fn sum<V: Vector, const N: usize>(mut a: [V; N], mut b: [V; N], c: [V; N]) -> ([V; N], [V; N]) {
    for i in 0..N {
        // SAFETY: the caller's processor.
        (a[i], b[i]) = unsafe { a[i].sum(b[i], c[i]) };
    }
    (a, b)
}

impl<V: Vector, const N: usize> Sum<V, N> {
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn zero() -> Sum<V, N> {
        // SAFETY: the caller's processor.
        Sum([[unsafe { V::repeat(0) }; N]; 7])
    }

    /// Adds the sixteen registers from `start` on; at most four times.
    ///
    /// # Safety
    /// As [`Vector`] and [`Rows`].
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, rows: &impl Rows<V, N>, start: usize) {
        // SAFETY: the caller's processor and rows.
        unsafe {
            let [mut ones, mut twos, mut fours, mut eights, ..] = self.0;
            let mut carries = [ones; 2];
            for (half, carry) in carries.iter_mut().enumerate() {
                let mut quarters = [ones; 2];
                for (quarter, carry) in quarters.iter_mut().enumerate() {
                    let at = start + 8 * half + 4 * quarter;
                    let (a, b);
                    (ones, a) = sum(ones, rows.at(at), rows.at(at + 1));
                    (ones, b) = sum(ones, rows.at(at + 2), rows.at(at + 3));
                    (twos, *carry) = sum(twos, a, b);
                }
                (fours, *carry) = sum(fours, quarters[0], quarters[1]);
            }
            let mut carry;
            (eights, carry) = sum(eights, carries[0], carries[1]);
            let [_, _, _, _, high @ ..] = &mut self.0;
            for level in high {
                (*level, carry) = sum(*level, carry, [V::repeat(0); N]);
            }
            self.0[..4].copy_from_slice(&[ones, twos, fours, eights]);
        }
    }

    /// The counts of the lanes of `LANE` bits, all bits of a lane together: of 16 or 32 bits in lanes of as many; of 8, those
    /// of the even ones and of the odd ones, in lanes of 16.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    pub(super) unsafe fn of_lanes<const LANE: usize>(&self, i: usize) -> [V; 2] {
        // SAFETY: the caller's processor.
        unsafe {
            // Of each byte at most 8 ones of weight 15, and of weight 4: nothing is carried over into the next.
            let mut low = self.0[3][i].ones_of_bytes();
            for level in self.0[..3].iter().rev() {
                low = low.plus(low).plus(level[i].ones_of_bytes());
            }
            let mut high = self.0[6][i].ones_of_bytes();
            for level in self.0[4..6].iter().rev() {
                high = high.plus(high).plus(level[i].ones_of_bytes());
            }
            let byte = V::repeat(repeated(0xff, 16));
            let even = low.and(byte).plus(high.and(byte).left(4));
            let odd = low.right(8).and(byte).plus(high.right(8).and(byte).left(4));
            if LANE == 8 {
                return [even, odd];
            }
            let both = even.plus(odd);
            let word = V::repeat(repeated(0xffff, 32));
            if LANE == 16 { [both; 2] } else { [both.and(word).plus(both.right(16).and(word)); 2] }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut rows = before;
        // SAFETY: every processor has 64-bit integers.
        unsafe { turn(&mut rows) };
        for (i, turned) in rows.iter().enumerate() {
            for place in 0..64 {
                let (lane, r) = (place / LANE * LANE, place % LANE);
                assert_eq!(turned >> place & 1, before[r] >> (lane + i) & 1, "{LANE}: {i} {place}");
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

    impl Rows<u64, 1> for Full {
        unsafe fn at(&self, _: usize) -> [u64; 1] {
            [u64::MAX]
        }
    }

    #[test]
    fn sums_are_full_without_overflow() {
        // SAFETY: every processor has 64-bit integers.
        unsafe {
            let mut sum = Sum::<u64, 1>::zero();
            (0..MOST / AT_ONCE).for_each(|_| sum.add(&Full, 0));
            assert_eq!(sum.of_lanes::<8>(0), [repeated(512, 16); 2]);
            assert_eq!(sum.of_lanes::<16>(0)[0], repeated(1024, 16));
            assert_eq!(sum.of_lanes::<32>(0)[0], repeated(2048, 32));
        }
    }
}
