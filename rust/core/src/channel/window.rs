//! Windows: some cells are likely, the rest are not, and all of either kind are equally so.

use super::categorical::{Request, randomize, report_bits};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, element};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{Flip, NarrowWindow, Sampler, WideWindow};
use crate::probability::{Probability, Rounding, abs_log_ratio};
use crate::random::Key;

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
    /// The law of two cells without an order.
    flip: Option<Flip>,
}

impl Window {
    /// A window over `cells` cells, 2 to 2^32 - 1, of `width` cells, 1 to `cells - 1`. `high`, the probability of a report
    /// inside, is rounded toward `width / cells`, where the report tells nothing.
    ///
    /// `order` holds `cells` rows, each all of the numbers `0 .. cells`; it allows at most 65,536 cells.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number outside its range or a `high` that is no probability, [`Error::Shape`] and
    /// [`Error::Value`] for an order of the wrong size or with a row that does not list every cell once.
    pub fn new(cells: u32, width: u32, high: f64, order: Option<Vec<u16>>) -> Result<Window> {
        let down = Probability::from_f64(high, Rounding::Down)
            .map_err(|_| argument("high", format!("must be a probability from 0 to 1, not {high}")))?;
        let uniform = u128::from(width) << 64;
        let above = down.numerator() * u128::from(cells) >= uniform;
        let high = if above { down } else { Probability::from_f64(high, Rounding::Up)? };
        Window::from_probability(cells, width, high, order)
    }

    /// [`Window::new`] with the integer itself.
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
            return Err(argument("cells", format!("{cells} are not allowed; 2 to 2^32 - 1 are")));
        }
        if !(1..cells).contains(&width) {
            let reason = format!("{width} is not allowed; with cells={cells}, 1 to {} are", cells - 1);
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
        Ok(Window { cells, width, high, order, epsilon, flip })
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

    /// The exact ε, rounded up, from the integers that the sampler compares with: the largest |ln P(z|x) / P(z|x')| over
    /// all reports z and all pairs of inputs.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// Bits of a packed report.
    pub fn report_bits(&self) -> u32 {
        report_bits(self.cells)
    }

    /// The first cell of the window of cell `x`, where there is no order.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` is no cell, or if there is an order: its windows need not be connected.
    pub fn start(&self, x: u32) -> Result<u32> {
        if self.order.is_some() {
            return Err(argument("order", "a window in an order has no first cell".into()));
        }
        if x >= self.cells {
            return Err(argument("x", format!("a cell from 0 to {} is needed", self.cells - 1)));
        }
        Ok(x.saturating_sub(self.width / 2).min(self.cells - self.width))
    }

    /// Whether `cell` lies in the window of `x`; both are below `cells`.
    fn contains(&self, x: u32, cell: u32) -> bool {
        match &self.order {
            Some(order) => {
                let row = x as usize * self.cells as usize;
                order[row..row + self.width as usize].iter().any(|&inside| u32::from(inside) == cell)
            }
            None => {
                let start = x.saturating_sub(self.width / 2).min(self.cells - self.width);
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
            let reason = format!(
                "a table of {0} by {0} probabilities is not written out; up to {PRINTED} cells are",
                self.cells
            );
            return Err(argument("cells", reason));
        }
        let inside = self.high.to_f64() / f64::from(self.width);
        let outside = self.high.complement().to_f64() / f64::from(self.cells - self.width);
        let pairs = (0..self.cells).flat_map(|x| (0..self.cells).map(move |cell| (x, cell)));
        Ok(pairs.map(|(x, cell)| if self.contains(x, cell) { inside } else { outside }).collect())
    }

    /// Randomizes `input` into `output`.
    ///
    /// `input` is cells (any integers) without a `grid`, or numbers (`F32`, `F64`) with a grid of `cells` points. `output`
    /// takes code words of any width that holds a cell, packed reports, or numbers if there are `letters`: what each of
    /// the cells stands for. The samples are chunks `first_chunk, first_chunk + 1, …` of [`CHUNK`](crate::CHUNK) in the
    /// key's stream; the answer does not depend on `threads`.
    ///
    /// # Errors
    /// An input, grid, output or letters that do not fit the channel; nothing is written then.
    #[allow(clippy::too_many_arguments, reason = "the three steps, and where the randomness comes from")]
    pub fn randomize(
        &self,
        grid: Option<&Grid>,
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: Output<'_>,
        key: &Key,
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        self.randomize_on(Isa::current()?, grid, input, letters, output, key, first_chunk, threads)
    }

    /// [`randomize`](Self::randomize) with the kernels of one instruction set: the answer does not depend on it.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize), and [`Error::Isa`] if this processor lacks it.
    #[allow(clippy::too_many_arguments, reason = "what randomize takes, and the instruction set")]
    pub fn randomize_on(
        &self,
        isa: Isa,
        grid: Option<&Grid>,
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: Output<'_>,
        key: &Key,
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        let request = Request { isa, grid, input, letters, output, key, first_chunk, threads };
        match self.law() {
            AnyWindow::Flip(law) => randomize(law, self.cells, request),
            AnyWindow::Narrow(law) => randomize(&law, self.cells, request),
            AnyWindow::Wide(law) => randomize(&law, self.cells, request),
        }
    }

    /// The law in the form in which it is sampled.
    fn law(&self) -> AnyWindow<'_> {
        if let Some(flip) = &self.flip {
            AnyWindow::Flip(flip)
        } else if self.cells <= NARROW {
            AnyWindow::Narrow(NarrowWindow::new(self.cells, self.width, self.high, self.order.as_deref()))
        } else {
            AnyWindow::Wide(WideWindow::new(self.cells, self.width, self.high))
        }
    }

    /// One chunk, with what the caller has checked.
    pub(super) fn chunk(&self, sampler: &Sampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match self.law() {
            AnyWindow::Flip(law) => sampler.chunk(law, chunk, input, output),
            AnyWindow::Narrow(law) => sampler.chunk(&law, chunk, input, output),
            AnyWindow::Wide(law) => sampler.chunk(&law, chunk, input, output),
        }
    }
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
        return Err(argument("order", format!("lists at most {NARROW} cells, not {cells}")));
    }
    let cells = cells as usize;
    if order.len() != cells * cells {
        let reason = format!("{} entries, where {cells} rows of {cells} are needed", order.len());
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

/// Whether every row's window holds the same cells.
fn windows_are_alike(cells: u32, width: u32, order: &[u16]) -> bool {
    let mut inside = vec![false; cells as usize];
    let mut windows = order.chunks_exact(cells as usize).map(|row| &row[..width as usize]);
    windows.next().into_iter().flatten().for_each(|&cell| inside[usize::from(cell)] = true);
    windows.flatten().all(|&cell| inside[usize::from(cell)])
}
