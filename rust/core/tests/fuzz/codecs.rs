//! Code words of numbers, numbers of code words, and packed code words.

use bitldp_core::{
    Error, FixedPoint, Infinities, Input, Output, Result, SignBit, pack_to, packed_len, unpack_to,
};

use super::data::{Data, Room, Values};
use super::fuzz;

/// The same on any number of threads, and nothing but zeros or what was there where it is refused.
fn same(room: &Room, call: impl Fn(Option<usize>, &mut Room) -> Result<()>) -> (Result<()>, Room) {
    let mut expected = room.clone();
    let answer = call(Some(1), &mut expected);
    match &answer {
        Ok(()) => {}
        Err(Error::Value { .. }) => assert!(expected.is_zeros() || expected.is(room), "{answer:?}"),
        Err(_) => assert!(expected.is(room), "{answer:?} writes"),
    }
    for threads in [Some(3), None] {
        let mut left = room.clone();
        assert_eq!(call(threads, &mut left), answer);
        assert!(left.is(&expected));
    }
    (answer, expected)
}

fn codec(data: &mut Data) -> Option<FixedPoint> {
    let bits = data.below(34) as u32;
    let sign = data.one_of(&[SignBit::OneIfNonNegative, SignBit::ZeroIfNonNegative]);
    let infinities = data.one_of(&[Infinities::Refuse, Infinities::Saturate]);
    FixedPoint::new(bits, data.below(u64::from(bits) + 2) as u32, sign, infinities).ok()
}

#[test]
fn fixed_point() {
    fuzz("fixed point", |data| {
        let Some(codec) = codec(data) else { return false };
        let length = data.length();
        let x = data.values(length, 1 << codec.bits());
        let room = data.room(length, codec.bits(), length);
        let (answer, codes) =
            same(&room, |threads, room| codec.encode_all(x.input(), room.output(), threads));
        if answer.is_ok() {
            assert!(codes.codes_are_below(Some(1 << codec.bits())));
            if let Input::F64(numbers) = x.input()
                && let Room::U32(codes) = codes
            {
                assert!(numbers.iter().zip(codes).all(|(&x, code)| codec.encode(x) == code));
            }
        }
        let (decoded, _) = same(&room, |threads, room| codec.decode_all(x.input(), room.output(), threads));
        answer.is_ok() || decoded.is_ok()
    });
}

#[test]
fn packed() {
    fuzz("packing", |data| {
        let (bits, length) = (data.below(34) as u32, data.length());
        let x = data.values(length, 1 << bits.min(32));
        let needed = packed_len(length, bits).unwrap_or(0);
        let room = Room::Packed(vec![7; if data.once_in(9) { needed + 1 } else { needed }]);
        macro_rules! there_and_back {
            ($codes:expr, $kind:ident) => {{
                let (answer, packed) = same(&room, |threads, room| match room.output() {
                    Output::Packed(out) => pack_to($codes, bits, out, threads),
                    _ => unreachable!("packed room was made"),
                });
                let Room::Packed(packed) = packed else { unreachable!("packed room was made") };
                let back = Room::$kind(vec![7; length]);
                let (unpacked, back) = same(&back, |threads, room| match room {
                    Room::$kind(out) => unpack_to(&packed, bits, out, threads),
                    _ => unreachable!("this kind was made"),
                });
                if answer.is_ok() && unpacked.is_ok() {
                    assert!(back.is(&Room::$kind($codes.to_vec())));
                }
                let garbage: Vec<u8> = packed.iter().map(|_| data.word() as u8).collect();
                let _ = same(&room.clone(), |threads, _| {
                    unpack_to(&garbage, bits, &mut vec![0u32; length], threads)
                });
                answer.is_ok()
            }};
        }
        match &x {
            Values::U8(codes) => there_and_back!(codes, U8),
            Values::U16(codes) => there_and_back!(codes, U16),
            Values::U32(codes) => there_and_back!(codes, U32),
            _ => false,
        }
    });
}
