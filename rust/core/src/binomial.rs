//! The exact law of the heads of fair coins, restricted to a range: big integers, and 64-bit prefixes to sample with.
//!
//! Of `r` fair coins, `a` heads come up with the weight `C(r, a)`. Restricted to a range, the law is those weights over
//! their sum, a big integer. A draw compares 64 random bits with the first 64 bits of the cumulative weights; only where
//! they are equal (once in 2^64 draws for each cell) it goes on, limb by limb, with the big integers themselves. So no
//! float takes part in the law.

use std::iter;

use num_bigint::BigUint;

use crate::random::Refine;

/// `C(n, k)`, as the product of its prime powers: Legendre's formula gives their exponents.
pub(crate) fn binomial(n: u32, k: u32) -> BigUint {
    if k > n {
        return BigUint::ZERO;
    }
    let exponent = |p: u32| {
        let powers = iter::successors(Some(u64::from(p)), |power| Some(power * u64::from(p)));
        powers
            .take_while(|&power| power <= u64::from(n))
            .filter(|&power| u64::from(n) / power > u64::from(k) / power + u64::from(n - k) / power)
            .count() as u32
    };
    let mut factors = Vec::new();
    let mut product = 1u64;
    for p in primes(n) {
        // By Kummer's theorem the power is at most n, so 64 bits hold the product of two.
        let power = u64::from(p).pow(exponent(p));
        product = product.checked_mul(power).unwrap_or_else(|| {
            factors.push(BigUint::from(product));
            power
        });
    }
    factors.push(BigUint::from(product));
    while factors.len() > 1 {
        factors = factors.chunks(2).map(|pair| pair.iter().product()).collect();
    }
    factors.swap_remove(0)
}

/// The primes up to `n`.
fn primes(n: u32) -> Vec<u32> {
    let mut composite = vec![false; n as usize + 1];
    let mut result = Vec::new();
    for p in 2..=n as usize {
        if !composite[p] {
            result.push(p as u32);
            (p * p..=n as usize).step_by(p).for_each(|multiple| composite[multiple] = true);
        }
    }
    result
}

/// `C(r, low) + … + C(r, high)`, term by term.
fn sum(r: u32, low: u32, high: u32) -> BigUint {
    let mut term = binomial(r, low);
    let mut total = BigUint::ZERO;
    for a in low..=high {
        total += &term;
        term = term * (r - a) / (a + 1);
    }
    total
}

/// `Σ_{a >= from} C(r, a)`: from the nearest of three positions where a sum is known, the middle and the two ends.
pub(crate) fn upper_tail(r: u32, from: u32) -> BigUint {
    if from > r {
        return BigUint::ZERO;
    }
    let middle = r.div_ceil(2);
    let of_middle = || {
        let half = BigUint::from(1u32) << (r - 1);
        if r.is_multiple_of(2) { half + (binomial(r, middle) >> 1) } else { half }
    };
    match from {
        0 => BigUint::from(1u32) << r,
        _ if r - from <= from.abs_diff(middle) => sum(r, from, r),
        _ if from <= from.abs_diff(middle) => (BigUint::from(1u32) << r) - sum(r, 0, from - 1),
        _ if from > middle => of_middle() - sum(r, middle, from - 1),
        _ if from < middle => of_middle() + sum(r, from, middle - 1),
        _ => of_middle(),
    }
}

/// A number of heads among `r` fair coins, given that it lies in a range.
pub(crate) struct Restricted {
    r: u32,
    low: u32,
    high: u32,
    /// The sum of the weights in the range.
    total: BigUint,
    /// The numbers of heads, the likeliest first, until what is left weighs less than a prefix tells.
    cells: Vec<u32>,
    /// The first `width` bits of the cumulative weights over `total`, rounded down; ascending.
    prefixes: Vec<u64>,
    /// The first cell whose prefix may be at or above a draw that starts with these eight bits.
    guide: [u32; 256],
    /// Bits of a prefix: 64, and fewer in tests, where draws shall often be equal.
    width: u32,
}

impl Restricted {
    /// `low..=high` heads, `low <= high <= r`.
    pub(crate) fn new(r: u32, low: u32, high: u32) -> Restricted {
        Restricted::with_width(r, low, high, 64)
    }

    pub(crate) fn with_width(r: u32, low: u32, high: u32, width: u32) -> Restricted {
        debug_assert!(low <= high && high <= r && (8..=64).contains(&width));
        let total = upper_tail(r, low) - upper_tail(r, high + 1);
        let most = u64::MAX >> (64 - width);
        let (mut cells, mut prefixes) = (Vec::new(), Vec::new());
        let mut cumulative = BigUint::ZERO;
        for (cell, weight) in OutwardWalk::new(r, low, high) {
            cumulative += weight;
            // The whole sum would be 2^width; what equals `most` is decided with the big integers in any case.
            let prefix = u64::try_from((&cumulative << width) / &total).unwrap_or(most).min(most);
            cells.push(cell);
            prefixes.push(prefix);
            if prefix == most {
                break;
            }
        }
        let first = |byte: usize| prefixes.partition_point(|&prefix| prefix < (byte as u64) << (width - 8));
        let guide = std::array::from_fn(|byte| first(byte) as u32);
        Restricted { r, low, high, total, cells, prefixes, guide, width }
    }

    /// The sum of the weights, a number of strings.
    pub(crate) fn total(&self) -> &BigUint {
        &self.total
    }

    /// Draws a number of heads.
    #[inline]
    pub(crate) fn sample(&self, draws: &mut Refine<'_>) -> u32 {
        let draw = draws.next() >> (64 - self.width);
        let mut position = self.guide[(draw >> (self.width - 8)) as usize] as usize;
        // The last prefix is the largest number of its width, so the search ends.
        while self.prefixes[position] < draw {
            position += 1;
        }
        if draw < self.prefixes[position] { self.cells[position] } else { self.decide(draw, draws) }
    }

    /// The number of heads for a draw whose first bits are equal to a prefix: the same comparison with all bits, as many
    /// as it takes.
    #[cold]
    #[inline(never)]
    fn decide(&self, draw: u64, draws: &mut Refine<'_>) -> u32 {
        // The draw is a number in [known, known + 1) / 2^bits.
        let (mut known, mut bits) = (BigUint::from(draw), u64::from(self.width));
        let mut cumulative = BigUint::ZERO;
        for (cell, weight) in OutwardWalk::new(self.r, self.low, self.high) {
            cumulative += weight;
            loop {
                let bound = &cumulative << bits;
                let below = &known * &self.total;
                if &below + &self.total <= bound {
                    return cell;
                }
                if below >= bound {
                    break;
                }
                known = (known << 64u32) + BigUint::from(draws.next());
                bits += 64;
            }
        }
        unreachable!("every draw is below the sum of all weights")
    }
}

/// The numbers of heads of a range with their weights, outward from the likeliest one.
struct OutwardWalk {
    r: u32,
    low: u32,
    high: u32,
    /// The next number above and its weight.
    up: Option<(u32, BigUint)>,
    /// The next number below and its weight.
    down: Option<(u32, BigUint)>,
    turn_up: bool,
}

impl OutwardWalk {
    fn new(r: u32, low: u32, high: u32) -> OutwardWalk {
        let start = (r / 2).clamp(low, high);
        let weight = binomial(r, start);
        let mut walk = OutwardWalk { r, low, high, up: None, down: None, turn_up: true };
        walk.down = walk.below(start, &weight);
        walk.up = Some((start, weight));
        walk
    }

    fn above(&self, a: u32, weight: &BigUint) -> Option<(u32, BigUint)> {
        (a < self.high).then(|| (a + 1, weight * (self.r - a) / (a + 1)))
    }

    fn below(&self, a: u32, weight: &BigUint) -> Option<(u32, BigUint)> {
        (a > self.low).then(|| (a - 1, weight * a / (self.r - a + 1)))
    }
}

impl Iterator for OutwardWalk {
    type Item = (u32, BigUint);

    fn next(&mut self) -> Option<(u32, BigUint)> {
        let upward = self.up.is_some() && (self.turn_up || self.down.is_none());
        self.turn_up = !upward;
        let (a, weight) = if upward { self.up.take()? } else { self.down.take()? };
        if upward {
            self.up = self.above(a, &weight);
        } else {
            self.down = self.below(a, &weight);
        }
        Some((a, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::random::Key;

    /// Pascal's triangle.
    fn row(n: u32) -> Vec<BigUint> {
        let mut row = vec![BigUint::from(1u32)];
        for _ in 0..n {
            let inner = row.windows(2).map(|pair| &pair[0] + &pair[1]);
            row = iter::once(row[0].clone()).chain(inner).chain(iter::once(row[0].clone())).collect();
        }
        row
    }

    #[test]
    fn binomials_and_tails_are_those_of_pascal() {
        for n in (1..40).chain([97, 128, 255]) {
            let row = row(n);
            for k in 0..=n {
                assert_eq!(binomial(n, k), row[k as usize], "C({n}, {k})");
                assert_eq!(upper_tail(n, k), row[k as usize..].iter().sum(), "tail of {n} from {k}");
            }
            assert_eq!((binomial(n, n + 1), upper_tail(n, n + 1)), (BigUint::ZERO, BigUint::ZERO));
        }
    }

    #[test]
    fn a_walk_visits_every_cell_with_its_weight() {
        for (r, low, high) in [(9, 0, 9), (9, 5, 9), (9, 0, 2), (10, 5, 5), (10, 3, 9), (1, 0, 0)] {
            let row = row(r);
            let mut seen: Vec<u32> = OutwardWalk::new(r, low, high)
                .map(|(a, weight)| {
                    assert_eq!(weight, row[a as usize]);
                    a
                })
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, (low..=high).collect::<Vec<_>>());
        }
    }

    /// Prefixes of 8 bits are equal to the draw all the time, so the big integers decide. Chi-square of n = 200,000
    /// draws at α = 1e-6: 6 cells, 5 degrees of freedom, 36.9. The key is fixed. The weights are those of 10 coins.
    #[test]
    fn equal_prefixes_are_decided_exactly() {
        const N: usize = 200_000;
        let key = Key::from_bytes([3; 32]);
        let weights: Vec<f64> = [252.0, 210.0, 120.0, 45.0, 10.0, 1.0].to_vec();
        for width in [8, 9, 64] {
            let law = Restricted::with_width(10, 5, 10, width);
            let mut draws = Refine::new(Isa::Scalar, &key, 1);
            let mut counts = [0f64; 6];
            (0..N).for_each(|_| counts[law.sample(&mut draws) as usize - 5] += 1.0);
            let chi: f64 = (0..6)
                .map(|i| {
                    let mean = weights[i] / 638.0 * N as f64;
                    (counts[i] - mean).powi(2) / mean
                })
                .sum();
            assert!(chi < 36.9, "prefixes of {width} bits: {chi}");
        }
    }

    /// Draws just below and just above each border between two cells, to 72 bits; and borders that are met exactly.
    #[test]
    fn borders_between_cells_are_where_the_weights_say() {
        let key = Key::from_bytes([3; 32]);
        for (r, low, high) in [(10, 5, 10), (10, 0, 4), (13, 7, 13), (768, 384, 768)] {
            let law = Restricted::with_width(r, low, high, 8);
            let cells: Vec<(u32, BigUint)> = OutwardWalk::new(r, low, high).collect();
            let mut cumulative = BigUint::ZERO;
            for pair in cells.windows(2).take(20) {
                cumulative += &pair[0].1;
                let border = u128::try_from((&cumulative << 72u32) / &law.total).unwrap();
                for (draw, cell) in [(border - 1, pair[0].0), (border + 1, pair[1].0)] {
                    let words = [(draw >> 64 << 56) as u64 | 0x12_3456, draw as u64];
                    let mut draws = Refine::after(&words, &key);
                    assert_eq!(law.sample(&mut draws), cell, "{r}, {low} to {high}, {draw:x}");
                    draws.untaken();
                }
            }
        }
        // Of 3 coins, 1 head weighs 3 of 8, then come 0, 2 and 3, outward: no border needs more than the first word.
        let law = Restricted::with_width(3, 0, 3, 8);
        for draw in 0..256u64 {
            let mut draws = Refine::after(&[draw << 56 | 77, 5], &key);
            let expected = [1, 1, 1, 0, 2, 2, 2, 3][draw as usize / 32];
            assert_eq!((law.sample(&mut draws), draws.untaken()), (expected, 1), "{draw}");
        }
    }

    /// Whatever the width of the prefix, the bits that are drawn are those of one real number: the same stream gives
    /// the same cell as a comparison with all bits, where no second word is needed.
    #[test]
    fn a_prefix_of_64_bits_agrees_with_the_whole_comparison() {
        let key = Key::from_bytes([4; 32]);
        for (low, high) in [(400, 768), (0, 399), (384, 384), (0, 768), (767, 768)] {
            let law = Restricted::new(768, low, high);
            for nonce in 0..200 {
                let mut draws = Refine::new(Isa::Scalar, &key, nonce);
                let cell = law.sample(&mut draws);
                let mut again = Refine::new(Isa::Scalar, &key, nonce);
                let draw = again.next();
                assert_eq!(law.decide(draw, &mut again), cell);
            }
        }
    }
}
