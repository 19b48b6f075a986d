//! Counts of reports that may be garbage.

use bitldp_core::{Batch, Isa, Reports, Result, Sampled};

use super::data::{Data, Room};
use super::{ORACLE, Way, fuzz, ways};

/// Reports of any form: of `columns` words of `bits` bits, most of them.
fn reports(data: &mut Data, records: usize, columns: usize, bits: u32) -> Room {
    let mut room = data.room(records * columns, bits, 0);
    let wrong = if data.once_in(3) { 1 + records as u64 } else { u64::MAX };
    let mut word = |below: u64| if data.below(wrong) == 0 { data.word() } else { data.below(below) };
    match &mut room {
        Room::U8(all) => all.iter_mut().for_each(|x| *x = word(1 << bits.min(8)) as u8),
        Room::U16(all) => all.iter_mut().for_each(|x| *x = word(1 << bits.min(16)) as u16),
        Room::U32(all) => all.iter_mut().for_each(|x| *x = word(1 << bits) as u32),
        Room::Bits(all) => all.iter_mut().for_each(|x| *x = word(2) as u8),
        Room::Packed(all) => {
            all.iter_mut().for_each(|x| *x = word(256) as u8);
            let rest = (8 * all.len()).saturating_sub(records * columns * bits as usize);
            if let Some(last) = all.last_mut()
                && rest < 8
                && word(2) > 0
            {
                *last &= (0xff << rest) as u8;
            }
        }
        Room::F32(_) | Room::F64(_) => room = Room::U8(vec![0; records * columns]),
    }
    room
}

fn lent(room: &Room) -> Reports<'_> {
    match room {
        Room::U8(all) => Reports::U8(all),
        Room::U16(all) => Reports::U16(all),
        Room::U32(all) => Reports::U32(all),
        Room::Bits(all) => Reports::Bits(all),
        Room::Packed(all) => Reports::Packed(all),
        Room::F32(_) | Room::F64(_) => unreachable!("no reports are numbers"),
    }
}

/// The counts that `count` gives in every way.
fn same(count: impl Fn(Way) -> Result<Vec<u64>>) -> bool {
    let expected = count(ORACLE);
    for way in ways() {
        assert_eq!(count(way), expected, "on {}, {:?} threads", way.isa, way.threads);
    }
    expected.is_ok()
}

#[test]
fn batches() {
    fuzz("counts", |data| {
        let (columns, bits) = (data.below(70) as usize, 1 + data.size(3, 33, 9) as u32);
        let records = data.length() / if data.once_in(4) { 1 } else { columns.max(1) };
        let room = reports(data, records, columns, bits.min(32));
        let alphabet = 1 + data.below(1 << bits.min(12)) as usize;
        let batch =
            |way: Way| Batch::new(lent(&room), records, columns, bits)?.on(way.isa).threads(way.threads);
        let answered = [
            same(|way| batch(way)?.ones()),
            same(|way| batch(way)?.word_counts()),
            same(|way| batch(way)?.histogram(alphabet)),
            same(|way| batch(way)?.sums(alphabet)),
        ];
        answered.contains(&true)
    });
}

#[test]
fn sampled_pairs() {
    fuzz("counts of pairs", |data| {
        let (pairs, wide, narrow) = (data.length(), 1 + data.below(12) as u32, 1 + data.below(9) as u32);
        let (indices, codes) = (reports(data, pairs, 1, wide), reports(data, pairs, 1, narrow));
        let below = if data.once_in(9) { 1 } else { 0 };
        let (dimensions, alphabet) = ((1 << wide) - below, (1usize << narrow) - below);
        let sampled = |isa: Isa| {
            let indices = Batch::new(lent(&indices), pairs, 1, wide)?.on(isa);
            Sampled::new(indices, Batch::new(lent(&codes), pairs, 1, narrow)?.on(isa), dimensions)
        };
        let counted = same(|way| sampled(way.isa)?.histogram(alphabet));
        same(|way| sampled(way.isa)?.sums(alphabet)) || counted
    });
}
