//! Golden streams of every channel: a change of one is a breaking change. `tests/vectors/streams.txt` has them; the builds
//! for WebAssembly are compared with the same file.

use bitldp_core::Isa;

#[path = "common/streams.rs"]
mod streams;

#[test]
fn streams_are_those_of_old_on_every_instruction_set() {
    let old = include_str!("../../../tests/vectors/streams.txt");
    for &isa in Isa::available() {
        let lines: Vec<String> = streams::streams(isa)
            .into_iter()
            .map(|(name, stream)| format!("{stream:016x} {name}\n"))
            .collect();
        assert_eq!(lines.concat(), old, "{isa}");
    }
}
