//! SHA-256 of sixteen short texts side by side: the same bytes as one by one.
//!
//! A text of at most 55 bytes is one block with its padding (FIPS 180-4, sections 5.1.1 and 6.2.2).

use super::BLOCKS;
use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Bytes of a text that one block holds, with a byte of padding and eight of its length.
pub(super) const SHORT: usize = 55;

const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[rustfmt::skip]
const CONSTANTS: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// A round: `$h` and `$d` are what is new.
macro_rules! round {
    ($s:ident, $add:expr, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr, $g:expr, $h:expr) => {
        let (a, b, c, e, f, g) = ($s[$a], $s[$b], $s[$c], $s[$e], $s[$f], $s[$g]);
        let mixed = e.rotate_32::<6, 26>().xor(e.rotate_32::<11, 21>()).xor(e.rotate_32::<25, 7>());
        let chosen = g.xor(e.and(f.xor(g)));
        let first = $s[$h].plus_32($add).plus_32(mixed).plus_32(chosen);
        let mixed = a.rotate_32::<2, 30>().xor(a.rotate_32::<13, 19>()).xor(a.rotate_32::<22, 10>());
        let most = b.and(c).xor(a.and(b.xor(c)));
        $s[$d] = $s[$d].plus_32(first);
        $s[$h] = first.plus_32(mixed).plus_32(most);
    };
}

/// Blocks, a word of all at a time, and room for their digests.
struct ShortTexts<'a> {
    blocks: &'a [[u32; BLOCKS]; 16],
    out: &'a mut [[u32; BLOCKS]; 8],
}

impl Kernel for ShortTexts<'_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, any: V) {
        for lane in (0..BLOCKS).step_by(V::LANES) {
            let (mut w, mut s) = ([any; 16], [any; 8]);
            for (word, lanes) in w.iter_mut().zip(self.blocks) {
                *word = any.load(&lanes[lane..]);
            }
            for (word, start) in s.iter_mut().zip(START) {
                *word = any.repeat_32(start);
            }
            for (sixteen, constants) in CONSTANTS.as_chunks::<16>().0.iter().enumerate() {
                if sixteen > 0 {
                    for t in 0..16 {
                        let (x, y) = (w[(t + 1) % 16], w[(t + 14) % 16]);
                        let early =
                            x.rotate_32::<7, 25>().xor(x.rotate_32::<18, 14>()).xor(x.right_32::<3>());
                        let late =
                            y.rotate_32::<17, 15>().xor(y.rotate_32::<19, 13>()).xor(y.right_32::<10>());
                        w[t] = w[t].plus_32(early).plus_32(w[(t + 9) % 16]).plus_32(late);
                    }
                }
                for (w, constants) in w.as_chunks::<8>().0.iter().zip(constants.as_chunks::<8>().0) {
                    let add = |t: usize| w[t].plus_32(any.repeat_32(constants[t]));
                    round!(s, add(0), 0, 1, 2, 3, 4, 5, 6, 7);
                    round!(s, add(1), 7, 0, 1, 2, 3, 4, 5, 6);
                    round!(s, add(2), 6, 7, 0, 1, 2, 3, 4, 5);
                    round!(s, add(3), 5, 6, 7, 0, 1, 2, 3, 4);
                    round!(s, add(4), 4, 5, 6, 7, 0, 1, 2, 3);
                    round!(s, add(5), 3, 4, 5, 6, 7, 0, 1, 2);
                    round!(s, add(6), 2, 3, 4, 5, 6, 7, 0, 1);
                    round!(s, add(7), 1, 2, 3, 4, 5, 6, 7, 0);
                }
            }
            for ((word, start), out) in s.into_iter().zip(START).zip(&mut *self.out) {
                word.plus_32(any.repeat_32(start)).store(&mut out[lane..]);
            }
        }
    }
}

/// The digests of sixteen texts of at most [`SHORT`] bytes.
pub(super) fn digests(isa: Isa, texts: [&[u8]; BLOCKS]) -> [[u8; 32]; BLOCKS] {
    let mut blocks = [[0; BLOCKS]; 16];
    for (lane, text) in texts.into_iter().enumerate() {
        let mut block = [0; 64];
        block[..text.len()].copy_from_slice(text);
        block[text.len()] = 0x80;
        block[56..].copy_from_slice(&(8 * text.len() as u64).to_be_bytes());
        for (word, bytes) in blocks.iter_mut().zip(block.as_chunks::<4>().0) {
            word[lane] = u32::from_be_bytes(*bytes);
        }
    }
    let mut words = [[0; BLOCKS]; 8];
    compiled(isa, ShortTexts { blocks: &blocks, out: &mut words });
    let mut result = [[0; 32]; BLOCKS];
    for (lane, digest) in result.iter_mut().enumerate() {
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
            *bytes = word[lane].to_be_bytes();
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn each_lane_is_the_published_function_at_every_length() {
        let text: Vec<u8> = (0..=255).collect();
        for first in 0..=SHORT {
            let texts = std::array::from_fn(|lane| &text[7 * lane..][..(first + 5 * lane) % (SHORT + 1)]);
            let expected = texts.map(|text: &[u8]| <[u8; 32]>::from(Sha256::digest(text)));
            for &isa in Isa::available() {
                assert_eq!(digests(isa, texts), expected, "{isa}, from {first} bytes on");
            }
        }
    }
}
