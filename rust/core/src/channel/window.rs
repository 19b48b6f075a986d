//! Windows: some cells are equally likely to be reported, all others equally unlikely.

use super::call::{Call, Channel};
use super::categorical::{Categorical, randomize, report_bits};
use super::keyed::{self, Keyed, KeyedCall};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, element, reason, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{CategoricalSampler, Flip, NarrowWindow, WideWindow};
use crate::probability::{Probability, Rounding, abs_log_ratio};
use crate::random::{Digest, Key};

/// The most cells that are sampled in lanes of 16 bits, and the most that an order can list.
const NARROW: u32 = 1 << 16;

/// The most cells whose probabilities are written out, half a gigabyte.
const PRINTED: u32 = 1 << 13;

/// The channel in which an input makes `width` of `cells` cells likely: the report is one of them, uniformly, with
/// probability `high`, and otherwise one of the others, uniformly.
///
/// Randomized response on `cells` categories is a window of width 1; bipartite randomized response one of width `m`.
/// Without an order, the window of cell `x` is the `width` cells nearest to it, the lower of two that are equally near,
/// moved inside at the edges. Sampling it takes no branch and no address that depends on `x` (and placing numbers on a grid
/// only the branch that [`Grid`] describes, which is as likely for every number). With an order, row `x`
/// lists all cells from best to worst, and the window is the first `width` of them; that row's address depends on `x`, so
/// it is not constant-time.
pub struct Window {
    cells: u32,
    width: u32,
    high: Probability,
    order: Option<Vec<u16>>,
    epsilon: f64,
    mute: bool,
    /// The law of two cells without an order.
    flip: Option<Flip>,
}

impl Window {
    /// A window over `cells` cells, 2 to 2^32 - 1, of `width` cells, 1 to `cells - 1`.
    ///
    /// `high`, the probability of a report
    /// inside, is rounded toward `width / cells`, where the report tells nothing.
    ///
    /// `order` holds `cells` rows, each all of the numbers `0 .. cells`; it allows at most 65,536 cells.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number outside its range or a `high` that is no probability, [`Error::Shape`] and
    /// [`Error::Value`] for an order of the wrong size or with a row that does not list every cell once.
    pub fn new(cells: u32, width: u32, high: f64, order: Option<Vec<u16>>) -> Result<Window> {
        Window::from_probability(cells, width, toward_uniform(cells, width, high)?, order)
    }

    /// A window whose probability is an integer over 2^64.
    ///
    /// # Errors
    /// As [`Window::new`].
    pub fn from_probability(
        cells: u32,
        width: u32,
        high: Probability,
        order: Option<Vec<u16>>,
    ) -> Result<Window> {
        if cells < 2 {
            return Err(argument("cells", reason!("{cells} are not allowed; 2 to 2^32 - 1 are")));
        }
        if !(1..cells).contains(&width) {
            let reason = reason!("{width} is not allowed; with cells={cells}, 1 to {} are", cells - 1);
            return Err(argument("width", reason));
        }
        let alike = match &order {
            None => false,
            Some(order) => check_order(cells, order)? && windows_are_alike(cells, width, order),
        };
        // P(cell | inside) / P(cell | outside) = (T / width) / ((2^64 - T) / (cells - width)). Two inputs with different
        // windows have a cell that is inside for one and outside for the other, and another the other way round.
        let inside = high.numerator() * u128::from(cells - width);
        let outside = high.complement().numerator() * u128::from(width);
        let epsilon = if alike { 0.0 } else { abs_log_ratio(inside, outside) };
        let flip = (cells == 2 && order.is_none()).then(|| Flip::new(high));
        Ok(Window { cells, width, high, order, epsilon, mute: false, flip })
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0, which no `high` gives unless
    /// `width / cells` is a multiple of 2^-64.
    #[must_use]
    pub fn muted(self) -> Window {
        Window { epsilon: 0.0, mute: true, ..self }
    }

    /// Cells, N.
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Cells in a window, m.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The probability of a report inside the window.
    pub fn high(&self) -> Probability {
        self.high
    }

    /// The cells from best to worst, row after row, where an order was given.
    pub fn order(&self) -> Option<&[u16]> {
        self.order.as_deref()
    }

    /// The first cell of the window of cell `x`, where there is no order.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` is no cell, or if there is an order: its windows need not be connected.
    pub fn start(&self, x: u32) -> Result<u32> {
        if self.order.is_some() {
            return Err(argument("order", words("a window in an order has no first cell")));
        }
        if x >= self.cells {
            return Err(argument("x", reason!("a cell from 0 to {} is needed", self.cells - 1)));
        }
        Ok(self.first(x))
    }

    fn first(&self, x: u32) -> u32 {
        x.saturating_sub(self.width / 2).min(self.cells - self.width)
    }

    /// True where `cell` lies in the window of `x`; both are below `cells`.
    fn contains(&self, x: u32, cell: u32) -> bool {
        match &self.order {
            Some(order) => {
                let row = x as usize * self.cells as usize;
                order[row..row + self.width as usize].iter().any(|&inside| u32::from(inside) == cell)
            }
            None => {
                let start = self.first(x);
                (start..start + self.width).contains(&cell)
            }
        }
    }

    /// `P(report | input)`, one row of `cells` an input.
    ///
    /// # Errors
    /// [`Error::Argument`] with more than 8192 cells: the table would take over half a gigabyte.
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        if self.cells > PRINTED {
            let reason = reason!(
                "a table of {0} by {0} probabilities is not written out; up to {PRINTED} cells are",
                self.cells
            );
            return Err(argument("cells", reason));
        }
        let inside = self.high.to_f64() / f64::from(self.width);
        let outside = self.high.complement().to_f64() / f64::from(self.cells - self.width);
        let pairs = (0..self.cells).flat_map(|x| (0..self.cells).map(move |cell| (x, cell)));
        let row = |x| if self.mute { 0 } else { x };
        Ok(pairs.map(|(x, cell)| if self.contains(row(x), cell) { inside } else { outside }).collect())
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        let numbers = [self.cells.into(), self.width.into(), self.high.numerator(), self.mute.into()];
        digest.text(b"window");
        digest.numbers(numbers.into_iter());
        digest.numbers(self.order().unwrap_or(&[]).iter().map(|&cell| cell.into()));
    }

    /// The law of at most 65,536 cells.
    pub(super) fn narrow(&self) -> NarrowWindow<'_> {
        NarrowWindow::new(self.cells, self.width, self.high, self.order.as_deref())
    }

    /// The law in the form in which it is sampled.
    fn law(&self) -> AnyWindow<'_> {
        if let Some(flip) = &self.flip {
            AnyWindow::Flip(flip)
        } else if self.cells <= NARROW {
            AnyWindow::Narrow(self.narrow())
        } else {
            AnyWindow::Wide(WideWindow::new(self.cells, self.width, self.high))
        }
    }
}

impl Channel for Window {
    type Codec<'a> = Option<&'a Grid>;
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.cells)
    }

    fn is_mute(&self) -> bool {
        self.mute
    }

    /// The input is cells (any integers) without a codec, or numbers (`F32`, `F64`) with a grid of `cells` points. The
    /// output takes code words of any width that holds a cell, packed reports, or numbers if there are letters, one for
    /// each cell.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&Grid>, &Key>) -> Result<()> {
        randomize(self, isa, call)
    }
}

impl Categorical for Window {
    fn rows(&self) -> u32 {
        self.cells
    }

    fn columns(&self) -> u32 {
        self.cells
    }

    fn sample(&self, sampler: &CategoricalSampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match self.law() {
            AnyWindow::Flip(law) => sampler.chunk(law, chunk, input, output),
            AnyWindow::Narrow(law) => sampler.chunk(&law, chunk, input, output),
            AnyWindow::Wide(law) => sampler.chunk(&law, chunk, input, output),
        }
    }
}

impl Keyed for Window {
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        let description = keyed::ValueCall {
            rows: &[("grid", self.cells)],
            columns: self.cells,
            mute: self.mute,
            law: &|digest| self.absorb(digest),
        };
        // Two cells, too: their other kernel draws for four samples together.
        if self.cells <= NARROW {
            let law = self.narrow();
            keyed::randomize(&description, isa, call.pair(), |sampler, first, input, output| {
                sampler.samples(&law, first, input, output);
            })
        } else {
            let law = WideWindow::new(self.cells, self.width, self.high);
            keyed::randomize(&description, isa, call.pair(), |sampler, first, input, output| {
                sampler.samples(&law, first, input, output);
            })
        }
    }
}

/// The probability beside `high` that is nearer to `width / cells`, where a report tells nothing.
///
/// # Errors
/// [`Error::Argument`] for what is no probability.
pub(super) fn toward_uniform(cells: u32, width: u32, high: f64) -> Result<Probability> {
    let down = Probability::from_f64(high, Rounding::Down)
        .map_err(|_| argument("high", reason!("must be a probability from 0 to 1, not {high}")))?;
    let above = down.numerator() * u128::from(cells) >= u128::from(width) << 64;
    if above { Ok(down) } else { Probability::from_f64(high, Rounding::Up) }
}

/// The laws of all widths.
enum AnyWindow<'a> {
    Flip(&'a Flip),
    Narrow(NarrowWindow<'a>),
    Wide(WideWindow),
}

/// Refuses an order in which a row does not list every cell once; otherwise answers yes.
fn check_order(cells: u32, order: &[u16]) -> Result<bool> {
    if cells > NARROW {
        return Err(argument("order", reason!("lists at most {NARROW} cells, not {cells}")));
    }
    let cells = cells as usize;
    if order.len() != cells * cells {
        let reason = reason!("{} entries, where {cells} rows of {cells} are needed", order.len());
        return Err(Error::Shape { name: "order", reason });
    }
    let mut last_seen = vec![usize::MAX; cells];
    for (index, &cell) in order.iter().enumerate() {
        let row = index / cells;
        match last_seen.get_mut(usize::from(cell)) {
            Some(seen) if *seen != row => *seen = row,
            _ => return Err(element("order", index, "a row lists every cell once")),
        }
    }
    Ok(true)
}

/// True where every row's window holds the same cells.
fn windows_are_alike(cells: u32, width: u32, order: &[u16]) -> bool {
    let mut inside = vec![false; cells as usize];
    let mut windows = order.chunks_exact(cells as usize).map(|row| &row[..width as usize]);
    windows.next().into_iter().flatten().for_each(|&cell| inside[usize::from(cell)] = true);
    windows.flatten().all(|&cell| inside[usize::from(cell)])
}
