//! The exact law of the heads of fair coins, restricted to a range: big integers, and 64-bit prefixes to sample with.
//!
//! Of `r` fair coins, `a` heads come up with the weight `C(r, a)`. Restricted to a range, the law is those weights over
//! their sum, a big integer. A draw compares 64 random bits with the first 64 bits of the cumulative weights; only where
//! they are equal (once in 2^64 draws for each cell) it goes on, limb by limb, with the big integers themselves. So no
//! float takes part in the law.
//!
//! The big integers have `r` bits and there are thousands of weights, so that the prefixes are taken from bounds of 192
//! bits: where lower and upper bound begin with the same bits, the exact weight does, too. Otherwise it is computed.

use std::iter;
use std::ops::Range;

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

/// Terms that are summed before the next division: more make no division cheaper.
const BLOCK: u32 = 1 << 10;

/// Consecutive binomials `C(r, a)` for `a` of a range, over the first one: what follows the last is `above / below` of the
/// first, and their sum is `sum / below` of it.
struct Ratios {
    above: BigUint,
    below: BigUint,
    sum: BigUint,
}

impl Ratios {
    /// By binary splitting, from `C(r, a + 1) = C(r, a) (r - a) / (a + 1)`; the range is not empty.
    fn new(r: u32, range: Range<u32>) -> Ratios {
        let count = range.end - range.start;
        if count == 1 {
            let (above, below) = (BigUint::from(r - range.start), BigUint::from(range.end));
            return Ratios { above, sum: below.clone(), below };
        }
        let middle = range.start + count / 2;
        let (left, right) = (Ratios::new(r, range.start..middle), Ratios::new(r, middle..range.end));
        Ratios {
            sum: left.sum * &right.below + &left.above * right.sum,
            above: left.above * right.above,
            below: left.below * right.below,
        }
    }
}

/// The sum of `C(r, a)` for `a` of a range, and what follows its last term; `first` is its first term.
fn sum(r: u32, range: Range<u32>, first: BigUint) -> (BigUint, BigUint) {
    let (mut total, mut term) = (BigUint::ZERO, first);
    for start in range.clone().step_by(BLOCK as usize) {
        let ratios = Ratios::new(r, start..range.end.min(start.saturating_add(BLOCK)));
        total += &term * ratios.sum / &ratios.below;
        term = term * ratios.above / ratios.below;
    }
    (total, term)
}

/// `Σ_{a >= from} C(r, a)` and `C(r, from)`: from the nearest of three positions where a sum is known, the middle and the
/// two ends. The binomial of the middle is `central`.
fn upper_tail(r: u32, from: u32, central: &BigUint) -> (BigUint, BigUint) {
    let all = BigUint::from(1u32) << r;
    let middle = r.div_ceil(2);
    match from {
        0 => (all, BigUint::from(1u32)),
        _ if from > r => (BigUint::ZERO, BigUint::ZERO),
        _ if from < middle => {
            // As many are below as there are above the mirrored position.
            let (below, term) = upper_tail(r, r - from + 1, central);
            (all - below, term * (r - from + 1) / from)
        }
        _ if r - from <= from - middle => {
            let term = binomial(r, from);
            (sum(r, from..r + 1, term.clone()).0, term)
        }
        _ => {
            let half = all >> 1u32;
            let of_middle = if r.is_multiple_of(2) { half + (central >> 1u32) } else { half };
            let (between, term) = sum(r, middle..from, central.clone());
            (of_middle - between, term)
        }
    }
}

/// The laws of at least `near` heads and of at most `far`, which is `near` or one less; and `C(r, near)`.
pub(crate) fn halves(r: u32, near: u32, far: u32) -> (Restricted, Restricted, BigUint) {
    let central = binomial(r, r / 2);
    let (above, at_near) = upper_tail(r, near, &central);
    let mut below = (BigUint::from(1u32) << r) - &above;
    if far == near {
        below += &at_near;
    }
    // The likeliest number of heads is in the middle, or at the edge of the range that ends before it.
    let at_far = || if far == near { at_near.clone() } else { &at_near * near / (r - far) };
    let likeliest = if near > r / 2 { &at_near } else { &central };
    let near_law = Restricted::prepared(r, near, r, above, likeliest, 64);
    let likeliest = if far < r / 2 { &at_far() } else { &central };
    let far_law = Restricted::prepared(r, 0, far, below, likeliest, 64);
    (near_law, far_law, at_near)
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
    /// `low..=high` heads, `low <= high <= r`, whose weights sum to `total`; `likeliest` is the largest of them.
    fn prepared(r: u32, low: u32, high: u32, total: BigUint, likeliest: &BigUint, width: u32) -> Restricted {
        debug_assert!(low <= high && high <= r && (8..=64).contains(&width));
        let walk = |weight| OutwardWalk::after(r, low, high, weight);
        let (cells, prefixes) = bounded(walk((likeliest << FRACTION) / &total), width)
            .unwrap_or_else(|| counted(walk(likeliest.clone()), &total, width));
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

/// The numbers of heads, the likeliest first, and `width` bits of their cumulative weights.
type Table = (Vec<u32>, Vec<u64>);

/// Bits behind the point of the weights that a table is made from. With 64 of them in a prefix, what is rounded away
/// leaves one of a table of thousands open with a probability of less than 2^-80.
const FRACTION: u32 = 192;

/// The table from weights over their sum, in units of `2^-FRACTION`, the first of them rounded down; None if rounding leaves
/// a prefix open.
///
/// The first weight is less than a unit too small. No factor of the walk is above 1, and each product is rounded down: the
/// weight of cell `i`, from 0, is less than `i + 1` units too small. So the exact sum of the first `n` weights is less
/// than `n (n + 1) / 2` above the one here; where both ends have one prefix, it is the exact one.
fn bounded(walk: OutwardWalk, width: u32) -> Option<Table> {
    let most = u64::MAX >> (64 - width);
    let prefix = |sum: &BigUint| u64::try_from(sum >> (FRACTION - width)).unwrap_or(most).min(most);
    let (mut cells, mut prefixes) = (Vec::new(), Vec::new());
    let mut cumulative = BigUint::ZERO;
    for (cell, weight) in walk {
        cumulative += weight;
        cells.push(cell);
        let n = cells.len() as u128;
        let down = prefix(&cumulative);
        if down != prefix(&(&cumulative + n * (n + 1) / 2)) {
            return None;
        }
        prefixes.push(down);
        if down == most {
            break;
        }
    }
    Some((cells, prefixes))
}

/// The table from the weights themselves.
fn counted(walk: OutwardWalk, total: &BigUint, width: u32) -> Table {
    let most = u64::MAX >> (64 - width);
    let (mut cells, mut prefixes) = (Vec::new(), Vec::new());
    let mut cumulative = BigUint::ZERO;
    for (cell, weight) in walk {
        cumulative += weight;
        // The whole sum would be 2^width; what equals `most` is decided with the big integers in any case.
        let prefix = u64::try_from((&cumulative << width) / total).unwrap_or(most).min(most);
        cells.push(cell);
        prefixes.push(prefix);
        if prefix == most {
            break;
        }
    }
    (cells, prefixes)
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
        OutwardWalk::after(r, low, high, binomial(r, (r / 2).clamp(low, high)))
    }

    /// The walk whose likeliest number of heads has this weight; the others follow, each rounded down.
    fn after(r: u32, low: u32, high: u32, weight: BigUint) -> OutwardWalk {
        let start = (r / 2).clamp(low, high);
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

    fn tail(r: u32, from: u32) -> (BigUint, BigUint) {
        upper_tail(r, from, &binomial(r, r / 2))
    }

    /// The law of a range, with prefixes of `width` bits.
    fn with_width(r: u32, low: u32, high: u32, width: u32) -> Restricted {
        let total = tail(r, low).0 - tail(r, high + 1).0;
        Restricted::prepared(r, low, high, total, &binomial(r, (r / 2).clamp(low, high)), width)
    }

    /// The law of a range.
    fn whole(r: u32, low: u32, high: u32) -> Restricted {
        with_width(r, low, high, 64)
    }

    /// True where a law holds what the weights themselves give.
    fn is_counted(law: &Restricted) -> bool {
        let walk = OutwardWalk::new(law.r, law.low, law.high);
        counted(walk, &law.total, law.width) == (law.cells.clone(), law.prefixes.clone())
    }

    /// The two tables are equal, cell by cell, for every pair of sets of up to 40 coins, and for some of more.
    #[test]
    fn bounds_give_the_prefixes_of_the_weights() {
        for r in 1..=40u32 {
            for near in 0..=r {
                for far in near.saturating_sub(1)..=near {
                    let (inner, outer, edge) = halves(r, near, far);
                    assert_eq!((inner.low, inner.high, outer.low, outer.high), (near, r, 0, far));
                    assert_eq!(edge, binomial(r, near));
                    assert_eq!(inner.total, row(r)[near as usize..].iter().sum());
                    assert_eq!(outer.total, row(r)[..=far as usize].iter().sum());
                    assert!(is_counted(&inner) && is_counted(&outer), "{r}, {near}, {far}");
                }
            }
        }
        for (r, near) in [(999, 500), (1000, 470), (1000, 1), (1000, 999), (4096, 2200), (4097, 1900)] {
            for far in near - 1..=near {
                let (inner, outer, _) = halves(r, near, far);
                assert!(is_counted(&inner) && is_counted(&outer), "{r}, {near}, {far}");
                assert_eq!(inner.total, tail(r, near).0);
                assert_eq!(
                    &inner.total + &outer.total,
                    (BigUint::from(1u32) << r) + if far == near { binomial(r, near) } else { BigUint::ZERO }
                );
            }
        }
    }

    /// Narrow prefixes of few coins are met exactly, where the bounds leave them open; wide ones of many are not.
    #[test]
    fn bounds_that_leave_a_prefix_open_are_not_used() {
        let bounds = |r: u32, low, high, width| {
            let total = tail(r, low).0 - tail(r, high + 1).0;
            let likeliest = binomial(r, (r / 2).clamp(low, high));
            bounded(OutwardWalk::after(r, low, high, (likeliest << FRACTION) / total), width)
        };
        // 120 and 45 of 176 strings are 15 of 16; rounded down, they are not.
        assert!(bounds(10, 7, 10, 8).is_none() && is_counted(&with_width(10, 7, 10, 8)));
        for (r, low, high) in [(1 << 12, 2100, 1 << 12), (1 << 14, 0, 8300), ((1 << 14) + 1, 9000, 1 << 14)] {
            assert!(bounds(r, low, high, 64).is_some(), "{r}");
        }
    }

    #[test]
    fn binomials_and_tails_are_those_of_pascal() {
        for n in (1..40).chain([97, 128, 255]) {
            let row = row(n);
            for k in 0..=n {
                assert_eq!(binomial(n, k), row[k as usize], "C({n}, {k})");
                let expected = (row[k as usize..].iter().sum(), row[k as usize].clone());
                assert_eq!(tail(n, k), expected, "tail of {n} from {k}");
            }
            assert_eq!((binomial(n, n + 1), tail(n, n + 1).0), (BigUint::ZERO, BigUint::ZERO));
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
            let law = with_width(10, 5, 10, width);
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
            let law = with_width(r, low, high, 8);
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
        let law = with_width(3, 0, 3, 8);
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
            let law = whole(768, low, high);
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
