//! Sets: one item of a padded set is drawn in secret, and the channel answers for it alone.

use bitldp_core::{Channel, Input, Key, Window, log_ratio};

use crate::draws::{for_words, scaled};
use crate::fields::Fields;
use crate::refused::{Kind, Result};
use crate::values::{Record, code};

/// Items, and dummies that a set is padded with, at most.
const MOST_ITEMS: i64 = 1 << 20;
const MOST_PADDING: i64 = 1 << 16;

/// Steps of the chance of a sign.
const FINE: u64 = 1 << 31;

/// The draw of an item: the columns of a record are items, which are there or are not.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    items: usize,
    /// The items that a smaller set is padded to, by dummies behind the items.
    padding: u64,
    /// True where items have numbers on [-1, 1], of which a sign is drawn; NaN says that an item is not there.
    signs: bool,
}

impl Item {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Item> {
        Ok(Item {
            items: fields.integer("items", 2, MOST_ITEMS)? as usize,
            padding: fields.integer("padding", 1, MOST_PADDING)? as u64,
            signs: fields.flag("signs")?,
        })
    }

    /// Codes that it makes: of items and dummies, or of as many pairs of one with a sign.
    pub(crate) fn codes(&self) -> u64 {
        (self.items as u64 + self.padding) << u32::from(self.signs)
    }

    /// Keys that it takes, behind those of the channel: of the sign, and of the item.
    pub(crate) fn keys(&self) -> usize {
        1 + usize::from(self.signs)
    }

    /// True where it takes the values of a record.
    pub(crate) fn takes(&self, record: &Record) -> bool {
        let values = if self.signs { record.has_gaps() } else { record.below() == Some(2) };
        values && record.columns == self.items
    }

    /// Draws a code for each record, by the same steps whatever is in its set.
    pub(crate) fn draw(&self, input: Input<'_>, keys: &[Key], codes: &mut [u32]) -> Result<()> {
        let Some((last, signs)) = keys.split_last() else { return Err(Kind::Shape.into()) };
        let number = |index: usize| if let Input::F64(x) = input { x[index] } else { 0.0 };
        let held = |index: usize| {
            if self.signs { u64::from(!number(index).is_nan()) } else { code(input, index) }
        };
        for_words(last, codes.len(), &mut |at, word| {
            let own = at * self.items..(at + 1) * self.items;
            let count = own.clone().map(held).sum::<u64>();
            let drawn = scaled(word, count.max(self.padding));
            let (mut seen, mut place) = (0, 0);
            for index in own {
                seen += held(index);
                place += u64::from(seen <= drawn);
            }
            // Where all items were passed it is a dummy.
            codes[at] = (place + drawn.saturating_sub(count)) as u32;
        })?;
        let [key] = signs else { return Ok(()) };
        for_words(key, codes.len(), &mut |at, word| {
            let item = codes[at] as usize;
            let value = if item < self.items { number(at * self.items + item) } else { 0.0 };
            let steps = ((value + 1.0) * (FINE / 2) as f64).round_ties_even() as u64;
            codes[at] = 2 * codes[at] + u32::from(scaled(word, FINE) < steps);
        })
    }

    /// Epsilon between any two sets, where the channel answers for one code alone: an item that is drawn in secret, with the chance
    /// s at most, is reported with q + s (p - q), and another one with q. Of other channels none: they speak for several.
    pub(crate) fn amplified(&self, law: &Window) -> Option<f64> {
        let one = 1u128 << 64;
        let (high, share) = (law.high().numerator(), one.div_ceil(self.padding.into()));
        // q times the cells but one, and p - q times them, both over 2^64.
        let other = one - high;
        let more = (high * u128::from(law.cells() - 1)).checked_sub(other)?;
        if law.width() > 1 || law.order().is_some() || law.is_mute() {
            return None;
        }
        // share * more / 2^64, rounded up.
        let gain = ((share * (more >> 32)) >> 32) + ((share * (more & 0xFFFF_FFFF)) >> 64) + 2;
        Some(log_ratio(other + gain, other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(key: &Key, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        for_words(key, count, &mut |at, word| words[at] = word).unwrap();
        words
    }

    #[test]
    fn an_item_is_one_of_the_set_or_a_dummy() {
        let key = Key::from_bytes([5; 32]);
        for padding in [1, 2, 7] {
            let item = Item { items: 5, padding, signs: false };
            let sets: Vec<u8> = (0..32u8).flat_map(|set| (0..5).map(move |at| set >> at & 1)).collect();
            let mut codes = [0; 32];
            item.draw(Input::U8(&sets), std::slice::from_ref(&key), &mut codes).unwrap();
            for ((set, code), word) in sets.chunks(5).zip(codes).zip(words(&key, 32)) {
                let own: Vec<usize> = (0..5).filter(|&at| set[at] == 1).collect();
                let drawn = scaled(word, padding.max(own.len() as u64)) as usize;
                let wanted = own.get(drawn).copied().unwrap_or(5 + drawn.saturating_sub(own.len()));
                assert_eq!(code as usize, wanted);
            }
        }
    }

    #[test]
    fn a_sign_follows_the_number_of_its_item() {
        let keys = [[1; 32], [2; 32]].map(Key::from_bytes);
        let item = Item { items: 2, padding: 1, signs: true };
        let numbers: Vec<f64> = [[f64::NAN, 1.0], [-1.0, f64::NAN], [f64::NAN; 2]].concat().repeat(50);
        let mut codes = vec![0; 150];
        item.draw(Input::F64(&numbers), &keys, &mut codes).unwrap();
        assert!(codes.chunks(3).all(|codes| codes[..2] == [3, 0] && (4..6).contains(&codes[2])));
        let dummies = codes.iter().skip(2).step_by(3).filter(|&&code| code == 5).count();
        assert!((10..40).contains(&dummies), "{dummies}");
        assert_eq!((item.codes(), item.keys()), (6, 2));
    }
}
