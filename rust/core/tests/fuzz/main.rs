//! Calls drawn at random: of every channel, codec and count, with parameters, values, types, lengths and outputs that
//! mostly do not fit together.
//!
//! Nothing panics; every instruction set and number of threads gives the scalar oracle's answer or its refusal, word for
//! word; reports are of the alphabet; a refused value leaves zeros, and a call that does not fit leaves the output as it
//! was. A moment in `cargo test`; `BITLDP_FUZZ_SECONDS` says for how long otherwise, and under AddressSanitizer
//! (`make fuzz`) nothing is read or written beside its slice.

mod blocks;
mod channels;
mod codecs;
mod counts;
mod data;
mod keyed;

use std::cell::Cell;
use std::time::{Duration, Instant};

use bitldp_core::{Isa, Result};
use data::{Data, Room};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The options in which calls may differ without a difference in their answers.
#[derive(Clone, Copy)]
pub struct Way {
    isa: Isa,
    threads: Option<usize>,
}

/// One thread of the scalar kernels.
pub const ORACLE: Way = Way { isa: Isa::Scalar, threads: Some(1) };

/// Every other way.
pub fn ways() -> impl Iterator<Item = Way> {
    let threads = [Some(1), Some(3), None];
    Isa::available().iter().flat_map(move |&isa| threads.map(move |threads| Way { isa, threads }))
}

/// Cases between two looks at the clock.
const AT_ONCE: u32 = 50;

/// Tries `test` on data drawn from fresh seeds, until the time is up. It says whether there was an answer: where hardly any
/// call is answered, hardly anything is tried.
pub fn fuzz(name: &str, test: impl Fn(&mut Data) -> bool) {
    let seconds = std::env::var("BITLDP_FUZZ_SECONDS").map_or(0.0, |text| text.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut cases, answered) = (0u64, Cell::new(0u64));
    loop {
        let config = Config { cases: AT_ONCE, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let tried = runner.run(&any::<u64>(), |seed| {
            answered.set(answered.get() + u64::from(test(&mut Data::new(seed))));
            Ok(())
        });
        cases += u64::from(AT_ONCE);
        if let Err(failed) = tried {
            panic!("{name}, after {cases} cases: {failed}");
        }
        if Instant::now() >= end {
            break;
        }
    }
    let answered = answered.get();
    println!("fuzzed {name}: {cases} cases, {answered} answered");
    assert!(10 * answered > cases || cases < 1000, "{name}: hardly any call is answered");
}

/// Calls in every way, with an output that `room` makes; gives the oracle's answer and what it left.
///
/// `alphabet`: how many reports there are, where they leave as code words.
pub fn same_on_all(
    room: &Room,
    alphabet: Option<u64>,
    call: impl Fn(Way, &mut Room) -> Result<()>,
) -> Result<()> {
    let mut expected = room.clone();
    let answer = call(ORACLE, &mut expected);
    match &answer {
        Ok(()) => assert!(expected.codes_are_below(alphabet), "a report outside the alphabet"),
        Err(bitldp_core::Error::Value { .. }) => {
            assert!(expected.is_zeros(), "{answer:?} leaves more than zeros")
        }
        Err(_) => assert!(expected.is(room), "{answer:?} writes"),
    }
    for way in ways() {
        let mut left = room.clone();
        let again = call(way, &mut left);
        assert_eq!(again, answer, "on {}, {:?} threads", way.isa, way.threads);
        assert!(left.is(&expected), "another answer on {}, {:?} threads", way.isa, way.threads);
    }
    answer
}
