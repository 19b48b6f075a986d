//! Designs and subsets: every instruction set, thread count and split gives the same answer, and that answer follows the law.

use bitldp_core::{CHUNK, Call, Channel, Design, Error, Input, Isa, Output, Subset};

mod common;
use common::{chi_square, chi_square_limit, epsilon_by_enumeration, key, left_behind, scrambled};

/// The order of the translates of {0, 1, 3} in 7 cells, two of which share one.
fn fano(inputs: u32, high: f64) -> Design {
    Design::translates(inputs, 3, high, vec![0, 1, 3, 2, 4, 5, 6]).unwrap()
}

/// One of each kind and width: in 16 and in 64 bits a draw.
fn designs() -> Vec<Design> {
    let wide = (0..70_001).collect();
    vec![
        fano(7, 0.8),
        fano(5, 0.2),
        Design::translates(70_000, 9_000, 0.6, wide).unwrap(),
        Design::progressions(10, 11, 3, 0.7).unwrap(),
        Design::progressions(15, 15, 3, 0.7).unwrap(),
        Design::progressions(4_000, 4_001, 500, 0.6).unwrap(),
        Design::progressions(65_000, 65_521, 60, 0.6).unwrap(),
        Design::halves(20, 3, 2, 0.5).unwrap(),
        Design::halves(100_000, 17, 0, 0.7).unwrap(),
    ]
}

fn codes(design: &Design, isa: Isa, x: &[u32], first_chunk: u64, threads: Option<usize>) -> Vec<u32> {
    let mut out = vec![u32::MAX; x.len()];
    let key = key(3);
    let call = Call { first_chunk, threads, ..Call::new((), Input::U32(x), Output::U32(&mut out), &key) };
    design.randomize_on(isa, call).unwrap();
    out
}

#[test]
fn designs_do_not_depend_on_the_instruction_set_threads_or_splits() {
    for design in designs() {
        let x: Vec<u32> = (0..2 * CHUNK + 77).map(|i| scrambled(i) % design.inputs()).collect();
        let expected = codes(&design, Isa::Scalar, &x, 0, Some(1));
        assert!(expected.iter().all(|&report| report < design.outputs()));
        for &isa in Isa::available() {
            for threads in [Some(1), Some(3), None] {
                assert_eq!(codes(&design, isa, &x, 0, threads), expected, "{isa}");
            }
            let (head, tail) = x.split_at(CHUNK);
            let parts = [codes(&design, isa, head, 0, None), codes(&design, isa, tail, 1, None)].concat();
            assert_eq!(parts, expected, "{isa}");
            assert_eq!(codes(&design, isa, &x[..100], 0, None), expected[..100], "{isa}");
        }
        let mut packed = vec![0; (x.len() * design.report_bits() as usize).div_ceil(8)];
        design.randomize(Call::new((), Input::U32(&x), Output::Packed(&mut packed), &key(3))).unwrap();
        assert_eq!(packed, bitldp_core::pack(&expected, design.report_bits()).unwrap());
    }
}

/// P(report | x), written out anew: the blocks from their definitions.
fn law(design: &Design, kind: &str, x: u32) -> Vec<f64> {
    let (cells, width) = (design.cells(), design.width());
    let inside = |report: u32| match kind {
        "translates" => [0, 1, 3].contains(&((report + cells - x) % cells)),
        "progressions" => {
            let (step, cell) = (report / cells + 1, report % cells);
            (0..width).any(|j| (x + step * j) % cells == cell)
        }
        "one block" => (report & (1 + x)).count_ones().is_multiple_of(2),
        _ => report >> 3 == x % 4 && (report & 7 & (1 + x / 4)).count_ones().is_multiple_of(2),
    };
    let (near, far) = (design.high().to_f64() / f64::from(width), design.high().complement().to_f64());
    let steps = f64::from(design.outputs() / cells);
    let far = far / f64::from(cells - width);
    (0..design.outputs()).map(|report| if inside(report) { near / steps } else { far / steps }).collect()
}

/// Chi-square of n = 2^20 reports of an input against its law, at α = 1e-6 with a fixed key; and ε by enumeration.
#[test]
fn designs_follow_their_laws_and_have_their_epsilons() {
    for (design, kind) in [
        (fano(7, 0.8), "translates"),
        (fano(5, 0.2), "translates"),
        (Design::progressions(10, 11, 3, 0.7).unwrap(), "progressions"),
        (Design::progressions(15, 15, 3, 0.7).unwrap(), "progressions"),
        (Design::halves(20, 3, 2, 0.5).unwrap(), "halves"),
        (Design::halves(7, 3, 0, 0.8).unwrap(), "one block"),
    ] {
        let rows: Vec<Vec<f64>> = (0..design.inputs()).map(|x| law(&design, kind, x)).collect();
        let exact = epsilon_by_enumeration(&rows);
        assert!((design.epsilon() - exact).abs() <= 1e-13 * exact, "{kind}: {} of {exact}", design.epsilon());
        for x in [0, design.inputs() - 1] {
            let reports = codes(&design, Isa::current().unwrap(), &vec![x; 1 << 20], 0, None);
            let (statistic, degrees) = chi_square(&reports, &rows[x as usize]);
            assert!(statistic < chi_square_limit(degrees), "{kind}, {x}: {statistic}");
        }
    }
}

#[test]
fn what_is_no_design_is_refused() {
    for refused in [
        Design::translates(8, 3, 0.8, vec![0, 1, 3, 2, 4, 5, 6]),
        Design::translates(1, 3, 0.8, vec![0, 1, 3, 2, 4, 5, 6]),
        Design::translates(3, 3, 0.8, vec![0, 1, 1, 2]),
        Design::translates(3, 3, 0.8, vec![0, 1, 4, 2]),
        Design::translates(3, 4, 0.8, vec![0, 1, 3, 2]),
        Design::translates(3, 1, f64::NAN, vec![0, 1, 3, 2]),
        Design::progressions(10, 12, 2, 0.7),
        Design::progressions(10, 15, 4, 0.7),
        Design::progressions(10, 65_537, 3, 0.7),
        Design::progressions(12, 11, 3, 0.7),
        Design::progressions(2, 2, 1, 0.7),
        Design::halves(8, 3, 0, 0.8),
        Design::halves(3, 0, 2, 0.8),
        Design::halves(3, 20, 20, 0.8),
    ] {
        assert!(refused.is_err());
    }
    for design in designs() {
        let mut out = vec![77u32; 3];
        let x = [0, design.inputs(), 1];
        let result = design.randomize(Call::new((), Input::U32(&x), Output::U32(&mut out), &key(3)));
        let error = left_behind(&mut out, 77, result);
        assert!(matches!(error, Error::Value { index: 1, .. }), "{error}");
    }
}

#[test]
fn a_mute_channel_reports_whatever_it_is_given() {
    let x: Vec<u32> = (0..500).map(|i| scrambled(i) % 7).collect();
    let (loud, mute) = (fano(7, 0.8), fano(7, 0.8).muted());
    assert_eq!((mute.epsilon(), mute.is_mute()), (0.0, true));
    let zeros = codes(&loud, Isa::Scalar, &[0; 500], 0, None);
    for &isa in Isa::available() {
        assert_eq!(codes(&mute, isa, &x, 0, None), zeros);
    }
    let subset = Subset::new(7, 3, 0.8).unwrap().muted();
    assert_eq!((subset.epsilon(), subset.is_mute()), (0.0, true));
    assert_eq!(strings(&subset, Isa::Scalar, &x, 0, None), strings(&subset, Isa::Scalar, &[0; 500], 0, None));
    let refused = subset.randomize(Call::new((), Input::U32(&[7]), Output::Bits(&mut [0; 7]), &key(3)));
    assert!(refused.is_err());
}

fn strings(subset: &Subset, isa: Isa, x: &[u32], first_chunk: u64, threads: Option<usize>) -> Vec<u8> {
    let mut out = vec![7; x.len() * subset.elements() as usize];
    let (input, output, key) = (Input::U32(x), Output::Bits(&mut out), key(4));
    let call = Call { first_chunk, threads, ..Call::new((), input, output, &key) };
    subset.randomize_on(isa, call).unwrap();
    out
}

#[test]
fn subsets_do_not_depend_on_the_instruction_set_threads_or_splits() {
    for (elements, size, high) in
        [(2u32, 1, 0.7), (9, 3, 0.8), (64, 20, 0.5), (300, 299, 0.9), (1000, 120, 0.6)]
    {
        let subset = Subset::new(elements, size, high).unwrap();
        let x: Vec<u32> = (0..subset.chunk() + 13).map(|i| scrambled(i) % elements).collect();
        let expected = strings(&subset, Isa::Scalar, &x, 0, Some(1));
        for string in expected.chunks_exact(elements as usize) {
            assert!(string.iter().all(|&bit| bit <= 1));
            assert_eq!(string.iter().map(|&bit| u32::from(bit)).sum::<u32>(), size);
        }
        for &isa in Isa::available() {
            for threads in [Some(1), Some(3)] {
                assert_eq!(strings(&subset, isa, &x, 0, threads), expected, "{isa}");
            }
            let (head, tail) = x.split_at(subset.chunk());
            let parts = [strings(&subset, isa, head, 0, None), strings(&subset, isa, tail, 1, None)].concat();
            assert_eq!(parts, expected, "{isa}");
            let mut packed = vec![7; expected.len().div_ceil(8)];
            subset
                .randomize_on(isa, Call::new((), Input::U32(&x), Output::Packed(&mut packed), &key(4)))
                .unwrap();
            for (byte, ones) in packed.iter().zip(expected.chunks(8)) {
                assert_eq!(*byte, ones.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i)));
            }
        }
    }
}

/// Chi-square of n = 2^20 subsets of 3 of 7 elements against the law of all 35, at α = 1e-6 with a fixed key.
#[test]
fn subsets_follow_their_law() {
    let subset = Subset::new(7, 3, 0.8).unwrap();
    for x in [0u32, 4, 6] {
        let out = strings(&subset, Isa::current().unwrap(), &vec![x; 1 << 20], 0, None);
        let reports: Vec<u32> = out
            .chunks_exact(7)
            .map(|string| string.iter().fold(0, |code, &bit| code << 1 | u32::from(bit)))
            .collect();
        let law: Vec<f64> = (0..128u32)
            .map(|code| match (code.count_ones(), code >> (6 - x) & 1) {
                (3, 1) => subset.high().to_f64() / 15.0,
                (3, _) => subset.high().complement().to_f64() / 20.0,
                _ => 0.0,
            })
            .collect();
        let (statistic, degrees) = chi_square(&reports, &law);
        assert!(statistic < chi_square_limit(degrees), "{x}: {statistic}");
    }
}
