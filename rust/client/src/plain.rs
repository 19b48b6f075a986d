//! Bytes that are numbers where they lie.
#![allow(unsafe_code, reason = "bytes are looked at as numbers")]

/// A number of which any bytes are one.
pub(crate) trait Plain: Copy {}

impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for f32 {}
impl Plain for f64 {}

/// Little-endian bytes as the numbers that they are, where they begin as those do in memory.
pub(crate) fn in_place<T: Plain, const N: usize>(bytes: &[[u8; N]]) -> Option<&[T]> {
    let fits = cfg!(target_endian = "little") && size_of::<T>() == N;
    // SAFETY: any bytes are a number, and none of the middle part begins or ends inside another.
    let (before, numbers, _) = unsafe { bytes.align_to::<T>() };
    Some(numbers).filter(|numbers| fits && before.is_empty() && numbers.len() == bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_where_numbers_can_begin_are_numbers() {
        let words = [0x3f80_0000u32, 0x7fc0_0001, 3];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut room = [0u64; 3];
        // SAFETY: 24 bytes of this test's own.
        let room = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), 24) };
        for start in 0..8 {
            room[start..start + 12].copy_from_slice(&bytes);
            let given = room[start..start + 12].as_chunks::<4>().0;
            let taken =
                in_place::<f32, 4>(given).map(|numbers| numbers.iter().map(|x| x.to_bits()).collect());
            assert_eq!(taken, (start % 4 == 0).then(|| words.to_vec()), "{start}");
        }
        assert!(in_place::<f64, 4>(bytes.as_chunks::<4>().0).is_none());
    }
}
