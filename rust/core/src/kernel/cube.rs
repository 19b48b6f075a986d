//! Samples records of signs: where a report disagrees with the input, 64 positions at a time.
//!
//! A record takes its set and its number of agreements first, then `r` fair bits, one for each position. If too many or too
//! few of them are 1, positions are drawn until the number is right: those with the wrong bit are inverted, and since each
//! of them is equally likely to be next, so is every set of positions. About `sqrt(r)` positions are wrong at first, unless the
//! law is far from the middle; a set of few strings takes up to `r ln r` draws.
//!
//! All of that depends on randomness alone. The input is combined with the result by exclusive or.

use super::unary::spread;
use crate::binomial::Restricted;
use crate::codec::{Coordinate, Grid, gathered};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa, vectorised};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Values whose dither one group of keystream serves: a byte each, at first.
const DITHERED: usize = GROUP;

/// Records of up to so many bits draw positions with 16 bits each: less than 1 in 16 of these is drawn in vain.
const SHORT: usize = 1 << 12;

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct CubeSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// Bits of a record.
    pub(crate) bits: usize,
    /// Numerator of the probability of `near`.
    pub(crate) high: u128,
    /// Agreements in the likely set.
    pub(crate) near: &'a Restricted,
    /// Agreements in the other one.
    pub(crate) far: &'a Restricted,
    /// How numbers become signs.
    pub(crate) grid: Option<&'a Grid>,
    /// The decoded values of a 0 and a 1.
    pub(crate) letters: [f64; 2],
}

impl CubeSampler<'_> {
    /// Randomizes `records` records, chunk `chunk` of the key's stream: `output` has room for just their reports.
    pub(crate) fn chunk(&self, chunk: u64, records: usize, input: Input<'_>, output: Output<'_>) {
        // One loop an input and output; what is not taken was refused by the channel.
        match input {
            Input::U8(values) => self.emit(chunk, records, Given { values, used: 0 }, output),
            Input::F32(values) => self.emit(chunk, records, self.dithered(chunk, values), output),
            Input::F64(values) => self.emit(chunk, records, self.dithered(chunk, values), output),
            _ => unreachable!("the channel takes bytes and numbers"),
        }
    }

    fn dithered<'b, F: Coordinate>(&'b self, chunk: u64, values: &'b [F]) -> Dithered<'b, F> {
        let grid = self.grid.expect("the channel refuses numbers without a grid");
        let refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let nonce = nonce(Purpose::Dither, chunk);
        let bits = [0; DITHERED];
        Dithered { isa: self.isa, key: self.key, nonce, group: 0, grid, values, bits, used: DITHERED, refine }
    }

    fn emit(&self, chunk: u64, records: usize, signs: impl Signs, output: Output<'_>) {
        let bits = self.bits;
        match output {
            Output::Bits(out) => {
                let mut rows = out.chunks_exact_mut(bits);
                self.records(chunk, records, signs, |words| {
                    let row = rows.next().expect("a row for each record");
                    for (row, word) in row.chunks_mut(64).zip(words) {
                        for (out, byte) in row.chunks_mut(8).zip(word.to_be_bytes()) {
                            let eight = spread(byte).to_le_bytes();
                            match out.first_chunk_mut::<8>() {
                                Some(room) => *room = eight,
                                None => out.iter_mut().zip(eight).for_each(|(out, bit)| *out = bit),
                            }
                        }
                    }
                });
            }
            Output::Packed(out) => {
                let mut packer = Packer { out, at: 0, held: 0, have: 0 };
                self.records(chunk, records, signs, |words| packer.push(words, bits));
                packer.finish();
            }
            Output::F32(out) if BATCHES => {
                let letters = self.letters.map(|letter| letter as f32);
                let mut rows = out.chunks_exact_mut(bits);
                self.records(chunk, records, signs, |words| {
                    spell(words, letters, rows.next().expect("a row for each record"));
                });
            }
            Output::F64(out) if BATCHES => {
                let mut rows = out.chunks_exact_mut(bits);
                self.records(chunk, records, signs, |words| {
                    spell(words, self.letters, rows.next().expect("a row for each record"));
                });
            }
            _ => unreachable!("the channel gives bits, packed bits and values"),
        }
    }

    /// Calls `give` with the report of each record, most significant bit first; what is behind its last bit is 0.
    fn records(&self, chunk: u64, records: usize, mut signs: impl Signs, mut give: impl FnMut(&[u64])) {
        if BATCHES {
            self.given(chunk, records, &mut signs, &mut give);
        } else {
            self.given::<dyn Signs + '_, dyn FnMut(&[u64]) + '_>(chunk, records, &mut signs, &mut give);
        }
    }

    /// [`records`](Self::records) of any signs, to anyone.
    fn given<S: Signs + ?Sized, G: FnMut(&[u64]) + ?Sized>(
        &self,
        chunk: u64,
        records: usize,
        signs: &mut S,
        give: &mut G,
    ) {
        vectorised(
            self.isa,
            #[inline(always)]
            || {
                let mut fair = Refine::new(self.isa, self.key, nonce(Purpose::Main, chunk));
                let mut draws = Refine::new(self.isa, self.key, nonce(Purpose::Own, chunk));
                let mut words = vec![0u64; self.bits.div_ceil(64)];
                let mut bytes = vec![0u8; words.len() * 64];
                for _ in 0..records {
                    self.disagree(&mut fair, &mut draws, &mut words);
                    signs.next(&mut bytes[..self.bits]);
                    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<64>().0) {
                        *word ^= gather(bytes);
                    }
                    give(&words);
                }
            },
        );
    }

    /// Draws where a report disagrees with its input: 1 where it does.
    #[inline(always)]
    fn disagree(&self, fair: &mut Refine<'_>, draws: &mut Refine<'_>, words: &mut [u64]) {
        let set = if u128::from(draws.next()) < self.high { self.near } else { self.far };
        let wanted = self.bits as u32 - set.sample(draws);
        words.iter_mut().for_each(|word| *word = fair.next());
        let behind = words.len() * 64 - self.bits;
        *words.last_mut().expect("a record has a bit") &= u64::MAX << behind;
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        if self.bits <= SHORT {
            invert::<16>(words, self.bits as u32, ones.abs_diff(wanted), ones > wanted, draws);
        } else {
            invert::<32>(words, self.bits as u32, ones.abs_diff(wanted), ones > wanted, draws);
        }
    }
}

/// Inverts `count` of the positions that hold `value`, any set of them as likely as another.
///
/// A position is `LANE` bits of a draw, by Lemire's method: those products that would come up once too often are not used.
#[inline(always)]
fn invert<const LANE: u32>(words: &mut [u64], bits: u32, count: u32, value: bool, draws: &mut Refine<'_>) {
    let bits = u64::from(bits);
    let low = (1u64 << LANE) - 1;
    let spare = (1u64 << LANE) % bits;
    let mut left = u64::from(count);
    while left > 0 {
        let mut draw = draws.next();
        for _ in 0..64 / LANE {
            let product = (draw & low) * bits;
            draw = draw.checked_shr(LANE).unwrap_or(0);
            let position = product >> LANE;
            let (word, shift) = (&mut words[(position / 64) as usize], 63 - position % 64);
            // Without a branch: half of the draws are in vain, and none could be told before.
            let hit = (*word >> shift & 1 ^ u64::from(!value))
                & u64::from(product & low >= spare)
                & u64::from(left != 0);
            *word ^= hit << shift;
            left -= hit;
        }
    }
}

/// Where the signs of the records come from.
trait Signs {
    /// Writes the signs of the next record, a byte of 0 or 1 each.
    fn next(&mut self, record: &mut [u8]);
}

/// Bytes that are signs already.
struct Given<'a> {
    values: &'a [u8],
    used: usize,
}

impl Signs for Given<'_> {
    #[inline(always)]
    fn next(&mut self, record: &mut [u8]) {
        record.copy_from_slice(&self.values[self.used..self.used + record.len()]);
        self.used += record.len();
    }
}

/// Numbers, dithered to one of the ends of an interval. Value `i` of a chunk takes the `i`-th byte of its stream, and more
/// of another one where that leaves it open.
struct Dithered<'a, F> {
    isa: Isa,
    key: &'a Key,
    nonce: u64,
    group: u64,
    grid: &'a Grid,
    /// The numbers that are not dithered yet.
    values: &'a [F],
    bits: [u8; DITHERED],
    used: usize,
    refine: Refine<'a>,
}

impl<F: Coordinate> Signs for Dithered<'_, F> {
    #[inline(always)]
    fn next(&mut self, record: &mut [u8]) {
        let mut done = 0;
        while done < record.len() {
            if self.used == DITHERED {
                let (now, later) = self.values.split_at(DITHERED.min(self.values.len()));
                let mut keystream = [0; GROUP];
                fill(self.isa, self.key, self.nonce, self.group, &mut keystream);
                self.grid.place(self.isa, now, &keystream, &mut self.bits, &mut self.refine);
                (self.values, self.group, self.used) = (later, self.group + 1, 0);
            }
            let count = (record.len() - done).min(DITHERED - self.used);
            record[done..done + count].copy_from_slice(&self.bits[self.used..self.used + count]);
            done += count;
            self.used += count;
        }
    }
}

/// 64 bytes of 0 or 1 as a word, the first of them on top.
#[inline(always)]
fn gather(bytes: &[u8; 64]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(0, |word, bytes| word << 8 | u64::from(gathered(*bytes)))
}

/// Writes what the bits of words are worth.
#[inline(always)]
fn spell<F: Copy>(words: &[u64], letters: [F; 2], out: &mut [F]) {
    for (out, word) in out.chunks_mut(64).zip(words) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = if word >> (63 - i) & 1 == 1 { letters[1] } else { letters[0] };
        }
    }
}

/// Writes records side by side, nothing in between.
struct Packer<'a> {
    out: &'a mut [u8],
    at: usize,
    /// Bits that fill no byte yet, on top.
    held: u128,
    have: u32,
}

impl Packer<'_> {
    #[inline(always)]
    fn push(&mut self, words: &[u64], bits: usize) {
        let mut left = bits;
        for &word in words {
            let count = left.min(64);
            left -= count;
            let all = self.held | u128::from(word) << 64 >> self.have;
            let total = self.have as usize + count;
            let whole = total / 8;
            self.out[self.at..self.at + whole].copy_from_slice(&all.to_be_bytes()[..whole]);
            self.at += whole;
            self.have = (total % 8) as u32;
            self.held = all << (8 * whole);
        }
    }

    fn finish(self) {
        if self.have > 0 {
            self.out[self.at] = (self.held >> 120) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gather_takes_the_first_byte_on_top() {
        for position in 0..64 {
            let mut bytes = [0; 64];
            bytes[position] = 1;
            assert_eq!(gather(&bytes), 1 << (63 - position));
        }
        assert_eq!(gather(&[1; 64]), u64::MAX);
    }

    /// All draws of 16 bits on a record of zeros: those that are taken hit every position equally often.
    #[test]
    fn every_place_is_hit_by_as_many_draws() {
        let key = Key::from_bytes([8; 32]);
        for bits in [1u32, 3, 7, 64, 65, 100, 1000, 4093, 4096] {
            let mut counts = vec![0u32; bits as usize];
            for draw in 0..1u64 << 16 {
                let mut words = vec![0u64; bits.div_ceil(64) as usize];
                // The next draw, position bits - 1, is the one that counts where this one is not taken.
                let mut stream = Refine::after(&[draw | 0xFFFF << 16], &key);
                invert::<16>(&mut words, bits, 1, false, &mut stream);
                assert_eq!(
                    (words.iter().map(|word| word.count_ones()).sum::<u32>(), stream.untaken()),
                    (1, 0)
                );
                let word = words.iter().position(|&word| word != 0).unwrap();
                counts[word * 64 + words[word].leading_zeros() as usize] += 1;
            }
            let (share, spare) = ((1 << 16) / bits, (1 << 16) % bits);
            *counts.last_mut().unwrap() -= spare;
            assert!(counts.iter().all(|&count| count == share), "{bits}");
        }
    }

    #[test]
    fn any_set_of_places_is_as_likely_as_another() {
        // 2 of the 5 zeros of a word of 7 bits are inverted: n = 100,000, 10 sets, chi-square with 9 degrees of freedom,
        // whose quantile at alpha = 1e-6 is 46.0; fixed key.
        let key = Key::from_bytes([8; 32]);
        for lane in [16, 32] {
            let mut draws = Refine::new(Isa::Scalar, &key, lane);
            let mut counts = std::collections::BTreeMap::new();
            for _ in 0..100_000 {
                let mut words = [0b0100_1000u64 << 56];
                if lane == 16 {
                    invert::<16>(&mut words, 7, 2, false, &mut draws);
                } else {
                    invert::<32>(&mut words, 7, 2, false, &mut draws);
                }
                assert_eq!((words[0].count_ones(), words[0] >> 56 & 0b0100_1001), (4, 0b0100_1000));
                *counts.entry(words[0]).or_insert(0f64) += 1.0;
            }
            assert_eq!(counts.len(), 10);
            let chi: f64 = counts.values().map(|n| (n - 10_000.0).powi(2) / 10_000.0).sum();
            assert!(chi < 46.0, "lanes of {lane} bits: {chi}");
        }
    }
}
