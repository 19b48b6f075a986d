//! Records that are drawn sixteen a pass are what each of them is by itself: a batch of one, on the plain kernels, under its key.

use super::tests::{grid, key};
use super::*;
use crate::channel::{Bit, Call, Cap, Channel, Design, Subset, Unary};
use crate::codec::pack;
use crate::probability::Probability;
use crate::random::{Ids, Key, RecordKeys, WholeRecords};

/// Records of a batch: passes of sixteen, more than one chunk of them, and some left.
const RECORDS: usize = 277;

/// The forms of reports; of packed ones each is a byte's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    U8,
    U16,
    U32,
    Bits,
    Packed,
}

type InLanes = dyn Fn(Isa, KeyedCall<'_, Option<&Grid>>) -> Result<()>;
type ByItself = dyn Fn(Call<'_, Option<&Grid>, &Key>) -> Result<()>;

/// A channel: the values of a record and how many there are of each; the elements of a report, and its bits.
struct Case {
    name: String,
    values: usize,
    inputs: u32,
    codes: usize,
    bits: usize,
    forms: Vec<Form>,
    grid: Option<Grid>,
    absorb: Box<dyn Fn(&mut Digest)>,
    keyed: Box<InLanes>,
    alone: Box<ByItself>,
}

/// A case of a channel without a codec.
macro_rules! plain {
    ($name:expr, $channel:expr, $inputs:expr, $codes:expr, $forms:expr) => {{
        let channel = std::rc::Rc::new($channel);
        let (bits, [a, b, c]) = (channel.report_bits() as usize, std::array::from_fn(|_| channel.clone()));
        Case {
            name: $name,
            values: 1,
            inputs: $inputs,
            codes: $codes,
            bits,
            forms: $forms,
            grid: None,
            absorb: Box::new(move |digest| a.absorb(digest)),
            keyed: Box::new(move |isa, call| b.randomize_keyed_on(isa, call.with(()))),
            alone: Box::new(move |call| {
                let Call { input, letters, output, keys, first_chunk, threads, .. } = call;
                let call = Call { codec: (), input, letters, output, keys, first_chunk, threads };
                c.randomize_on(Isa::Scalar, call)
            }),
        }
    }};
}

fn unary(categories: usize) -> Case {
    let channel = Unary::new(categories, Bit::new(0.7, 0.2).unwrap()).unwrap();
    plain!(format!("unary {categories}"), channel, categories as u32, 0, vec![Form::Bits, Form::Packed])
}

fn subset(elements: u32, size: u32) -> Case {
    let (name, channel) =
        (format!("subset {size} of {elements}"), Subset::new(elements, size, 0.75).unwrap());
    plain!(name, channel, elements, 0, vec![Form::Bits, Form::Packed])
}

fn design(name: &str, channel: Design) -> Case {
    let mut forms = vec![Form::U32, Form::Packed];
    if channel.outputs() <= 1 << 8 {
        forms.extend([Form::U8, Form::U16]);
    }
    let inputs = channel.inputs();
    plain!(format!("design {name}"), channel, inputs, 1, forms)
}

fn cap(windows: &[(u32, u32)], subsets: &[(u32, u32)], grid: Option<Grid>) -> Case {
    let half = Probability::from_numerator(3 << 62).unwrap();
    let hits = u32::from(!subsets.is_empty());
    let channel = std::rc::Rc::new(Cap::new(windows.to_vec(), subsets.to_vec(), hits, half).unwrap());
    let rows = windows.iter().map(|window| window.0).chain(subsets.iter().map(|subset| subset.0));
    let wide = windows.iter().any(|window| window.0 > 200);
    let [a, b, c] = std::array::from_fn(|_| channel.clone());
    let of_grid = grid;
    Case {
        name: format!("cap {windows:?}, {subsets:?}"),
        values: windows.len() + subsets.len(),
        inputs: rows.min().unwrap(),
        codes: channel.codes(),
        bits: channel.report_bits() as usize,
        forms: if wide { vec![Form::U32] } else { vec![Form::U8, Form::U32, Form::Bits, Form::Packed] },
        grid,
        absorb: Box::new(move |digest| {
            a.absorb(digest);
            absorb(of_grid.as_ref(), digest);
        }),
        keyed: Box::new(move |isa, call| b.randomize_keyed_on(isa, call)),
        alone: Box::new(move |call| c.randomize_on(Isa::Scalar, call)),
    }
}

fn translates(cells: u32, width: u32) -> Design {
    Design::translates(cells, width, 0.7, (0..cells).map(|cell| (cell * 3 + 1) % cells).collect()).unwrap()
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [2, 7, 8, 9, 16, 17, 40, 257, 1025, 4096, 4097].into_iter().map(unary).collect();
    cases.extend([(2, 1), (5, 2), (64, 9), (65, 33), (300, 254), (300, 255)].map(|(k, w)| subset(k, w)));
    cases.extend([
        design("of translates", translates(7, 3)),
        // Half of the positions are drawn anew.
        design("of many translates", translates(40_001, 32_770)),
        design("of wide translates", translates(70_001, 9)),
        design("of halves", Design::halves(21, 3, 2, 0.6).unwrap()),
        design("of progressions", Design::progressions(100, 131, 5, 0.7).unwrap()),
        cap(&[(11, 2), (5, 1)], &[], None),
        cap(&[(2, 1)], &[(3, 1), (5, 2), (4, 1)], None),
        cap(&[], &[(2, 1); 20], None),
        cap(&[(5, 1); 7], &[], Some(grid(5))),
        // A quarter of the cells is drawn anew.
        cap(&[(3 << 29, 1), (9, 1)], &[(4, 2)], None),
    ]);
    cases
}

/// Reports as numbers: codes, bits, or packed bytes.
fn reports(case: &Case, form: Form, records: usize, work: impl FnOnce(Output<'_>)) -> Vec<u32> {
    macro_rules! of {
        ($kind:ident, $element:ty, $length:expr) => {{
            let mut out: Vec<$element> = vec![0; $length];
            work(Output::$kind(&mut out));
            out.into_iter().map(u32::from).collect()
        }};
    }
    let (codes, bits) = (records * case.codes, records * case.bits);
    match form {
        Form::U8 => of!(U8, u8, codes),
        Form::U16 => of!(U16, u16, codes),
        Form::U32 => of!(U32, u32, codes),
        Form::Bits => of!(Bits, u8, bits),
        Form::Packed => of!(Packed, u8, bits.div_ceil(8)),
    }
}

/// The values of all records of a case.
fn values(case: &Case) -> (Vec<u32>, Vec<f64>) {
    let count = RECORDS * case.values;
    let codes = (0..count).map(|i| (i as u32).wrapping_mul(2_654_435_761) % case.inputs).collect();
    (codes, (0..count).map(|i| (i % 997) as f64 / 250.0 - 2.0).collect())
}

fn input<'a>(case: &Case, values: &'a (Vec<u32>, Vec<f64>)) -> Input<'a> {
    if case.grid.is_some() { Input::F64(&values.1) } else { Input::U32(&values.0) }
}

/// The reports of each record by itself.
fn alone(case: &Case, form: Form, randomness: &KeyedRandomness<'_>, input: Input<'_>) -> Vec<u32> {
    let mut digest = randomness.digest();
    (case.absorb)(&mut digest);
    let width = if randomness.ids.heard() == 0 { 0 } else { case.values };
    let mut own = vec![0; RECORDS * width];
    crate::codec::canonical(input, &mut own);
    let (column, columns) = (randomness.column, RECORDS / randomness.ids.len());
    let whole = WholeRecords { first: 0, count: RECORDS, column, columns, width, values: &own };
    let keys = RecordKeys::new(&digest, randomness.ids).keys_with(Isa::Scalar, &whole);
    let report = |at: usize| {
        reports(case, form, 1, |output| {
            let input = input.part(at * case.values..(at + 1) * case.values);
            let key = keys[at / 16].key(at % 16);
            (case.alone)(Call::new(case.grid.as_ref(), input, output, &key)).unwrap();
        })
    };
    (0..RECORDS).flat_map(report).collect()
}

/// Every form, instruction set and kind of id, one thread and three, and as many records as leave any number of lanes over.
#[test]
fn records_side_by_side_are_those_one_by_one() {
    let key = key();
    let numbers: Vec<u64> = (0..RECORDS as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let digests: Vec<[u8; 32]> =
        (0..RECORDS).map(|i| std::array::from_fn(|j| (i >> (j % 3) & 255) as u8)).collect();
    for case in cases() {
        let values = values(&case);
        let all = input(&case, &values);
        for ids in [Ids::Numbers(&numbers), Ids::Digests(&digests), Ids::Bound(&digests)] {
            let randomness = KeyedRandomness { column: 3, ..KeyedRandomness::new(&key, b"lanes", ids) };
            // What is packed: bits, or codes.
            let (unpacked, width) = if case.forms.contains(&Form::Bits) {
                (Form::Bits, 1)
            } else {
                (Form::U32, case.bits as u32)
            };
            let unpacked = alone(&case, unpacked, &randomness, all);
            for &form in &case.forms {
                let expected = match form {
                    Form::Packed => unpacked.clone(),
                    form => alone(&case, form, &randomness, all),
                };
                let some: &[usize] = if matches!(ids, Ids::Numbers(_)) { &[16, 17, 31, 256] } else { &[] };
                for &isa in Isa::available() {
                    // Of the shortest batches each: 1 to 16 records leave any number of lanes over.
                    let short =
                        if form == Form::Packed || isa == Isa::current().unwrap() { 1..16 } else { 15..16 };
                    for count in short.chain(some.iter().copied()).chain([RECORDS]) {
                        let (count, ids) = (count, taken(ids, count));
                        for threads in if count == RECORDS { &[1, 3][..] } else { &[1] } {
                            let randomness = KeyedRandomness { ids, ..randomness };
                            let input = all.part(0..count * case.values);
                            let threads = Some(*threads);
                            let drawn = reports(&case, form, count, |output| {
                                let codec = case.grid.as_ref();
                                let call =
                                    KeyedCall { codec, input, letters: None, output, randomness, threads };
                                (case.keyed)(isa, call).unwrap();
                            });
                            let each = expected.len() / RECORDS;
                            let first = &expected[..count * each];
                            let first = match form {
                                Form::Packed => {
                                    pack(first, width).unwrap().into_iter().map(u32::from).collect()
                                }
                                _ => first.to_vec(),
                            };
                            assert!(drawn == first, "{}, {form:?}, {isa}, {count} records", case.name);
                        }
                    }
                }
            }
        }
    }
}

/// The first of some ids.
fn taken(ids: Ids<'_>, count: usize) -> Ids<'_> {
    match ids {
        Ids::Numbers(ids) => Ids::Numbers(&ids[..count]),
        Ids::Digests(ids) => Ids::Digests(&ids[..count]),
        Ids::Bound(ids) => Ids::Bound(&ids[..count]),
    }
}
