//! The keystream against RFC 8439, a kept crate, and itself on every instruction set.

use bitldp_core::{Isa, Key, ROUNDS, block, keystream, keystream_on};
use chacha20::rand_core::{Rng, SeedableRng};
use chacha20::{ChaCha12Rng, ChaCha20Rng};
use proptest::prelude::*;

/// Sixteen blocks.
const GROUP: usize = 1024;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

/// RFC 8439's 32-bit counter and 96-bit nonce, laid over the words 12 to 15.
fn rfc_block(key: [u8; 32], counter: u32, nonce: [u8; 12]) -> [u8; 64] {
    let word = |i: usize| u64::from(u32::from_le_bytes(nonce[4 * i..4 * i + 4].try_into().unwrap()));
    block::<20>(&Key::from_bytes(key), u64::from(counter) | word(0) << 32, word(1) | word(2) << 32)
}

#[test]
fn rfc_8439_section_2_3_2() {
    let key = std::array::from_fn(|i| i as u8);
    let expected = hex("10 f1 e7 e4 d1 3b 59 15 50 0f dd 1f a3 20 71 c4
        c7 d1 f4 c7 33 c0 68 03 04 22 aa 9a c3 d4 6c 4e
        d2 82 64 46 07 9f aa 09 14 c2 d7 05 d9 8b 02 a2
        b5 12 9c d1 de 16 4e b9 cb d0 83 e8 a2 50 3c 4e");
    assert_eq!(rfc_block(key, 1, [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0])[..], expected);
}

#[test]
fn rfc_8439_appendix_a_1() {
    let zero = hex("76 b8 e0 ad a0 f1 3d 90 40 5d 6a e5 53 86 bd 28
        bd d2 19 b8 a0 8d ed 1a a8 36 ef cc 8b 77 0d c7
        da 41 59 7c 51 57 48 8d 77 24 e0 3f b8 d8 4a 37
        6a 43 b8 f4 15 18 a1 1c c3 87 b6 69 b2 ee 65 86");
    assert_eq!(rfc_block([0; 32], 0, [0; 12])[..], zero);
    let one = hex("9f 07 e7 be 55 51 38 7a 98 ba 97 7c 73 2d 08 0d
        cb 0f 29 a0 48 e3 65 69 12 c6 53 3e 32 ee 7a ed
        29 b7 21 76 9c e6 4e 43 d5 71 33 b0 74 d8 39 d5
        31 ed 1f 28 51 0a fb 45 ac e1 0a 1f 4b 79 4d 6f");
    assert_eq!(rfc_block([0; 32], 1, [0; 12])[..], one);
}

/// The kept crate's stream from `group` on, brought into canonical order.
fn reference(rounds: usize, key: [u8; 32], nonce: u64, group: u64, groups: usize) -> Vec<u8> {
    let mut blocks = vec![0; groups * GROUP];
    macro_rules! from {
        ($rng:ty) => {{
            let mut rng = <$rng>::from_seed(key);
            rng.set_stream(nonce);
            rng.set_block_pos(group * 16);
            rng.fill_bytes(&mut blocks);
        }};
    }
    match rounds {
        12 => from!(ChaCha12Rng),
        20 => from!(ChaCha20Rng),
        other => panic!("{other} rounds"),
    }
    let mut canonical = vec![0; groups * GROUP];
    for (canonical, blocks) in canonical.chunks_exact_mut(GROUP).zip(blocks.chunks_exact(GROUP)) {
        for (i, word) in blocks.chunks_exact(4).enumerate() {
            let (block, word_of_block) = (i / 16, i % 16);
            canonical[(word_of_block * 16 + block) * 4..][..4].copy_from_slice(word);
        }
    }
    canonical
}

fn on<const R: usize>(isa: Isa, key: [u8; 32], nonce: u64, group: u64, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    keystream_on::<R>(isa, &Key::from_bytes(key), nonce, group, &mut out);
    out
}

proptest! {
    #[test]
    fn every_instruction_set_gives_the_crates_bytes(
        key: [u8; 32],
        nonce: u64,
        group in prop_oneof![Just(0u64), (1u64 << 28) - 3..(1 << 28) + 1, 0u64..1 << 53],
        groups in 1usize..5,
    ) {
        let (twelve, twenty) =
            (reference(12, key, nonce, group, groups), reference(20, key, nonce, group, groups));
        for &isa in Isa::available() {
            prop_assert_eq!(&on::<12>(isa, key, nonce, group, groups * GROUP), &twelve, "{}", isa);
            prop_assert_eq!(&on::<20>(isa, key, nonce, group, groups * GROUP), &twenty, "{}", isa);
        }
    }

    #[test]
    fn a_part_of_a_group_is_its_beginning(key: [u8; 32], nonce: u64, length in 0usize..3000) {
        let whole = on::<ROUNDS>(Isa::Scalar, key, nonce, 0, 3 * GROUP);
        for &isa in Isa::available() {
            prop_assert_eq!(&on::<ROUNDS>(isa, key, nonce, 0, length), &whole[..length]);
        }
        let mut out = vec![0; length];
        keystream(&Key::from_bytes(key), nonce, &mut out).unwrap();
        prop_assert_eq!(&out, &whole[..length]);
    }
}

#[test]
fn the_counter_carries_past_32_bits() {
    // Group 2^28 begins with block 2^32: word 13 becomes 1 between these two groups.
    let group = (1u64 << 28) - 1;
    let expected = reference(ROUNDS, [3; 32], 11, group, 2);
    for &isa in Isa::available() {
        assert_eq!(on::<ROUNDS>(isa, [3; 32], 11, group, 2 * GROUP), expected);
    }
    assert_eq!(expected[GROUP..GROUP + 4], block::<ROUNDS>(&Key::from_bytes([3; 32]), 1 << 32, 11)[..4]);
}

#[test]
fn reports_are_drawn_from_twelve_rounds() {
    let mut out = vec![0; GROUP];
    keystream(&Key::from_bytes([7; 32]), 5, &mut out).unwrap();
    assert_eq!((ROUNDS, out), (12, reference(12, [7; 32], 5, 0, 1)));
}

/// The RFC's second vector on every path that makes a group: lane 1 of each is block 1.
#[test]
fn every_instruction_set_gives_the_rfcs_bytes() {
    let expected = rfc_block([0; 32], 1, [0; 12]);
    for &isa in Isa::available() {
        let group = on::<20>(isa, [0; 32], 0, 0, GROUP);
        for (word, expected) in expected.chunks_exact(4).enumerate() {
            assert_eq!(&group[(word * 16 + 1) * 4..][..4], expected, "{isa}");
        }
    }
}
