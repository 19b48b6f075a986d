//! Block designs: an input makes the reports of its block likely, and any two blocks share equally many, or on average do.

use super::call::{Call, Channel};
use super::categorical::{Categorical, check_grid, check_output, no_row, randomize, report_bits};
use super::keyed::{Keyed, KeyedCall, records};
use super::window::{Window, toward_uniform};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{
    Blocks, CategoricalSampler, DesignLaw, DrawFirst, FirstReports, Halves, Law, Letters, NarrowWindow,
    ProgressionLaw, Translates, WideWindow, first_outside,
};
use crate::probability::Probability;
use crate::random::{Digest, Key, Keys, Lanes};

/// The most cells that are sampled in lanes of 16 bits.
const NARROW: u32 = 1 << 16;

/// The most cells of any design: an order of them takes a gigabyte.
const MOST: u32 = 1 << 28;

/// Nanoseconds that a single thread takes for a record with a key of its own, roughly.
const NANOSECONDS: usize = 10;

/// The moduli of progressions are below it.
const MODULI: u32 = 1 << 16;

/// The channel in which every input has a block of reports, as large for all: a report is of the block, uniformly, with
/// probability `high`, and otherwise one of the others, uniformly.
///
/// It is a window, the block in front of an order of the reports that follows from the input: no table of inputs and reports
/// is needed. Blocks of two inputs differ, so the exact ε is the window's.
pub struct Design {
    inputs: u32,
    /// Its cells are the ranks.
    window: Window,
    family: Family,
}

/// The kind of a [`Design`], which with its numbers says which cells a block has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesignFamily<'a> {
    /// Translates of the cells in front of an order of all of them: [`Design::translates`].
    Translates(&'a [u32]),
    /// Arithmetic progressions: [`Design::progressions`].
    Progressions,
    /// Halves by the rows of Hadamard matrices: [`Design::halves`].
    Halves,
}

/// Where the blocks lie.
enum Family {
    Translates(Vec<u32>),
    /// The common divisors of the steps and the modulus.
    Progressions(Vec<u16>),
    Halves(Halves),
}

impl Design {
    /// The translates of a set of cells, modulo their number: input `x` has the block `x + order[0], …, x + order[width-1]`.
    /// `order` lists all cells once.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for more inputs than cells, fewer than two inputs, and as [`Window::new`]; [`Error::Value`](crate::Error::Value) for
    /// an order that does not list every cell once.
    pub fn translates(inputs: u32, width: u32, high: f64, order: Vec<u32>) -> Result<Design> {
        let cells = u32::try_from(order.len()).unwrap_or(u32::MAX);
        Design::ordered(inputs, (cells, width, toward_uniform(cells, width, high)?), order)
    }

    fn ordered(inputs: u32, law: (u32, u32, Probability), order: Vec<u32>) -> Result<Design> {
        let design = Design::over(inputs, law, Family::Translates(Vec::new()))?;
        let mut seen: Vec<bool> = zeros(order.len())?;
        for (index, &cell) in order.iter().enumerate() {
            match seen.get_mut(cell as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(element("order", index, "it lists every cell once")),
            }
        }
        Ok(Design { family: Family::Translates(order), ..design })
    }

    /// Arithmetic progressions of `width` numbers of `modulus`: input `x` has the block `x, x + a, x + 2a, …`, for a step `a`
    /// from 1 to `(modulus - 1) / 2` that is drawn uniformly whatever the input is, and reported. A report is the number
    /// `(a - 1) modulus + y`, with `y` of the block where it is likely.
    ///
    /// The modulus has no divisor from 2 to `width - 1`, and is odd. So for every difference of two inputs and every m below
    /// the width, one step or its negative takes one m-th of it: any two inputs share `width (width - 1) / (modulus - 1)`
    /// cells, on average over the steps.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for another modulus, or one not below `2^16`, and as
    /// [`Design::translates`].
    pub fn progressions(inputs: u32, modulus: u32, width: u32, high: f64) -> Result<Design> {
        Design::stepped(inputs, (modulus, width, toward_uniform(modulus, width, high)?))
    }

    fn stepped(inputs: u32, law: (u32, u32, Probability)) -> Result<Design> {
        let (modulus, width, _) = law;
        // A width that is no width is refused with the window.
        let divided = || (2..width.max(3).min(modulus)).any(|divisor| modulus.is_multiple_of(divisor));
        if !(3..MODULI).contains(&modulus) || divided() {
            let reason = reason!(
                "{modulus} is not allowed; 3 to {} are, without divisors from 2 to {}",
                MODULI - 1,
                width.max(3) - 1
            );
            return Err(argument("modulus", reason));
        }
        let divisors = ProgressionLaw::divisors(modulus);
        Design::over(inputs, law, Family::Progressions(divisors))
    }

    /// Halves of blocks, by the rows of Hadamard matrices: `2^apart` blocks of `2^bits` cells; input `x` has the half of
    /// block `x mod 2^apart` whose numbers have an even parity along `1 + x / 2^apart`.
    ///
    /// # Errors
    /// As [`Design::translates`]; more inputs than `(2^bits - 1) 2^apart`.
    pub fn halves(inputs: u32, bits: u32, apart: u32, high: f64) -> Result<Design> {
        if bits == 0 || bits.saturating_add(apart) > MOST.ilog2() {
            let reason = reason!("2^{bits} is not allowed; with apart={apart}, 2 to {MOST} cells are");
            return Err(argument("bits", reason));
        }
        let (cells, width) = (1 << (bits + apart), 1 << (bits - 1));
        let law = (cells, width, toward_uniform(cells, width, high)?);
        Design::halved(inputs, law, Halves { bits, apart })
    }

    fn halved(inputs: u32, law: (u32, u32, Probability), halves: Halves) -> Result<Design> {
        let most = ((1u64 << halves.bits) - 1) << halves.apart;
        if u64::from(inputs) > most {
            return Err(argument("inputs", reason!("{inputs} are not allowed; up to {most} are")));
        }
        Design::over(inputs, law, Family::Halves(halves))
    }

    /// The design whose probability is an integer over 2^64: what [`family`](Self::family), [`inputs`](Self::inputs),
    /// [`cells`](Self::cells), [`width`](Self::width) and [`high`](Self::high) say makes it again.
    ///
    /// # Errors
    /// As the constructor of that family; [`Error::Shape`] for an order of another number of cells, and
    /// [`Error::Argument`] for halves of other sizes than powers of two.
    pub fn from_probability(
        family: DesignFamily<'_>,
        inputs: u32,
        cells: u32,
        width: u32,
        high: Probability,
    ) -> Result<Design> {
        let law = (cells, width, high);
        match family {
            DesignFamily::Translates(order) if order.len() != cells as usize => {
                let reason = reason!("{} entries, where {cells} cells are", order.len());
                Err(Error::Shape { name: "order", reason })
            }
            DesignFamily::Translates(order) => {
                let mut own = zeros(order.len())?;
                own.copy_from_slice(order);
                Design::ordered(inputs, law, own)
            }
            DesignFamily::Progressions => Design::stepped(inputs, law),
            DesignFamily::Halves => {
                if !cells.is_power_of_two() || !width.is_power_of_two() || width >= cells {
                    let reason = reason!("{width} of {cells} cells is not allowed; powers of two are");
                    return Err(argument("width", reason));
                }
                let bits = width.ilog2() + 1;
                let halves = Halves { bits, apart: cells.ilog2() - bits };
                Design::halved(inputs, law, halves)
            }
        }
    }

    fn over(inputs: u32, (cells, width, high): (u32, u32, Probability), family: Family) -> Result<Design> {
        if !(2..=MOST).contains(&cells) {
            return Err(argument("cells", reason!("{cells} are not allowed; 2 to {MOST} are")));
        }
        if !(2..=cells).contains(&inputs) {
            return Err(argument("inputs", reason!("{inputs} are not allowed; 2 to {cells} are")));
        }
        Ok(Design { inputs, window: Window::from_probability(cells, width, high, None)?, family })
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0.
    #[must_use]
    pub fn muted(self) -> Design {
        Design { window: self.window.muted(), ..self }
    }

    /// Inputs, k.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Cells that a block is of, v.
    pub fn cells(&self) -> u32 {
        self.window.cells()
    }

    /// Cells of a block, b.
    pub fn width(&self) -> u32 {
        self.window.width()
    }

    /// How many reports there are: the cells, or, of progressions, the pairs of a step and a cell.
    pub fn outputs(&self) -> u32 {
        match self.family {
            Family::Progressions(_) => (self.cells() - 1) / 2 * self.cells(),
            _ => self.cells(),
        }
    }

    /// The probability of a report of the block.
    pub fn high(&self) -> Probability {
        self.window.high()
    }

    /// The kind of its blocks.
    pub fn family(&self) -> DesignFamily<'_> {
        match &self.family {
            Family::Translates(order) => DesignFamily::Translates(order),
            Family::Progressions(_) => DesignFamily::Progressions,
            Family::Halves(_) => DesignFamily::Halves,
        }
    }

    /// All cells, the block of input 0 in front, where blocks are translates.
    pub fn order(&self) -> Option<&[u32]> {
        if let Family::Translates(order) = &self.family { Some(order) } else { None }
    }

    /// Gives `work` the law in the form in which it is sampled.
    fn with_law(&self, work: impl WithLaw) {
        match &self.family {
            Family::Translates(order) => self.with_blocks(Translates { order }, work),
            Family::Halves(halves) => self.with_blocks(*halves, work),
            Family::Progressions(divisors) => {
                let window = NarrowWindow::new(self.cells(), self.width(), self.high(), None);
                work.run(&ProgressionLaw::new(window, self.cells(), self.inputs, divisors));
            }
        }
    }

    fn with_blocks(&self, blocks: impl Blocks, work: impl WithLaw) {
        let (cells, width, high, inputs) = (self.cells(), self.width(), self.high(), self.inputs);
        if cells <= NARROW {
            work.run(&DesignLaw { window: NarrowWindow::new(cells, width, high, None), blocks, inputs });
        } else {
            work.run(&DesignLaw { window: WideWindow::new(cells, width, high), blocks, inputs });
        }
    }
}

/// Work with a law of any kind.
trait WithLaw {
    fn run<L: Law + DrawFirst>(self, law: &L);
}

/// Samples a chunk.
struct ChunkLaw<'a, 'b> {
    sampler: &'a CategoricalSampler<'b>,
    chunk: u64,
    input: Input<'a>,
    output: Output<'a>,
}

impl WithLaw for ChunkLaw<'_, '_> {
    fn run<L: Law + DrawFirst>(self, law: &L) {
        self.sampler.chunk(law, self.chunk, self.input, self.output);
    }
}

/// Samples records that have a key each.
struct FirstLaw<'a, F> {
    reports: FirstReports<'a>,
    input: Input<'a>,
    anew: F,
    output: Output<'a>,
}

impl<F: Fn(usize) -> u32> WithLaw for FirstLaw<'_, F> {
    fn run<L: Law + DrawFirst>(self, law: &L) {
        self.reports.write(law, self.input, self.anew, self.output);
    }
}

impl Channel for Design {
    type Codec<'a> = ();
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.window.epsilon()
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.outputs())
    }

    fn is_mute(&self) -> bool {
        self.window.is_mute()
    }

    /// The input is integers below the number of inputs. The output takes code words of any width that holds a report, and
    /// packed reports.
    fn randomize_on(&self, isa: Isa, call: Call<'_, (), &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { input, output, keys, first_chunk, threads, .. } = call;
        randomize(
            self,
            isa,
            Call { codec: None::<&Grid>, input, letters: None, output, keys, first_chunk, threads },
        )
    }
}

impl Keyed for Design {
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Design {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(&self, heard: u64, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        call.refuse_letters()?;
        let (inputs, outputs, mute, bits) = (self.inputs, self.outputs(), self.is_mute(), self.report_bits());
        let law = |digest: &mut Digest| self.absorb(digest);
        let description = records::WholeRecordCall {
            isa,
            values: 1,
            words: 1,
            codes: 1,
            bits,
            numbers: false,
            mute,
            law: &law,
            heard,
        };
        check_grid("grid", inputs, None, call.input)?;
        check_output(outputs, None, &call.output, &description.chunks(&call)?)?;
        let refused = |input: Input<'_>| first_outside(isa, input, inputs);
        let draw = |keys: &[Keys], input: Input<'_>, output: Output<'_>| {
            let anew = |at: usize| {
                let (letters, mut code) = (Letters { double: None, single: &[] }, [0]);
                let key = &keys[at / Lanes::COUNT].key(at % Lanes::COUNT);
                let sampler = CategoricalSampler { isa, key, grid: None, letters, bits };
                self.sample(&sampler, 0, input.part(at..at + 1), Output::U32(&mut code));
                code[0]
            };
            let reports = FirstReports { isa, keys, rows: inputs, bits };
            self.with_law(FirstLaw { reports, input, anew, output });
            None
        };
        description
            .randomize_together(call, NANOSECONDS, refused, draw)?
            .map_err(|index| no_row(inputs, None, index))
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        let sizes = [self.inputs.into(), self.cells().into(), self.width().into(), self.high().numerator()];
        digest.text(b"design");
        digest.numbers(sizes.into_iter());
        digest.numbers([self.is_mute().into()].into_iter());
        match &self.family {
            Family::Translates(order) => {
                digest.text(b"translates");
                digest.numbers(order.iter().map(|&cell| cell.into()));
            }
            Family::Progressions(_) => digest.text(b"progressions"),
            Family::Halves(halves) => {
                digest.text(b"halves");
                digest.numbers([halves.bits.into(), halves.apart.into()].into_iter());
            }
        }
    }
}

impl Categorical for Design {
    fn rows(&self) -> u32 {
        self.inputs
    }

    fn columns(&self) -> u32 {
        self.outputs()
    }

    fn sample(&self, sampler: &CategoricalSampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>) {
        self.with_law(ChunkLaw { sampler, chunk, input, output });
    }
}
