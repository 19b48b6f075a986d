//! Updates of models: rows are clipped by their norm, mapped to the mechanism's interval, and cut into records.

use crate::fields::{Fields, integer};
use crate::prepared::within;
use crate::program::Program;
use crate::refused::{Kind, Refused, Result};
use crate::values::{ValueType, Values, with_room};

/// Coordinates of a vector at most.
const MOST_COORDINATES: usize = 1 << 28;

/// Rows of a message at most.
const MOST_ROWS: i64 = 1 << 20;

/// The factor of a clipped norm, so that rounding of the products never leads past it.
const SLACK: f64 = 1.0 - 1.0 / (1u64 << 48) as f64;

/// A norm; its number is the one of the header.
#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
pub(crate) enum Norm {
    L2 = 0,
    L1 = 1,
    LInf = 2,
}

/// How a vector becomes records.
pub(crate) struct Update {
    pub(crate) clip: f64,
    pub(crate) norm: Norm,
    /// The ends that -clip and clip are mapped to.
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) records: usize,
    /// Updates that a vector is, each of which is clipped by itself.
    rows: usize,
    /// Coordinates of all rows.
    pub(crate) coordinates: usize,
}

impl Update {
    /// The update that an object of a document describes, for a program of one part that takes numbers.
    pub(crate) fn read(fields: &Fields<'_>, program: &Program) -> Result<Update> {
        let norm = match fields.text("norm")? {
            "l2" => Norm::L2,
            "l1" => Norm::L1,
            "linf" => Norm::LInf,
            _ => return Err(fields.wrong()),
        };
        let records = fields.integer("records", 1, 1 << 32)? as usize;
        let rows = match fields.maybe("rows") {
            Some(rows) => integer(rows, 2, MOST_ROWS)? as usize,
            None => 1,
        };
        let Some(part) = program.single() else { return Err(fields.wrong()) };
        if part.record.kind != ValueType::F64 {
            return Err(fields.unknown());
        }
        let coordinates = part.record.columns.checked_mul(records);
        let (clip, low, high) = (fields.double("clip")?, fields.double("low")?, fields.double("high")?);
        if clip <= 0.0 || low >= high || !records.is_multiple_of(rows) {
            return Err(fields.wrong());
        }
        match coordinates.filter(|&count| count <= MOST_COORDINATES) {
            Some(coordinates) => Ok(Update { clip, norm, low, high, records, rows, coordinates }),
            None => Err(Refused { kind: Kind::Size, ..fields.wrong() }),
        }
    }

    /// Coordinates of a row.
    pub(crate) fn columns(&self) -> usize {
        self.coordinates / self.rows
    }

    /// Bytes of a vector.
    pub(crate) fn bytes(&self) -> usize {
        self.coordinates * 8
    }

    /// Refuses what is no vector of this length, or not finite.
    pub(crate) fn check(&self, x: Values<'_>) -> Result<()> {
        let (count, endless) = match x {
            Values::F64(x) => (x.len(), x.iter().position(|x| !x.is_finite())),
            Values::Bytes(x) if x.len().is_multiple_of(8) => {
                let (numbers, _) = x.as_chunks::<8>();
                (numbers.len(), numbers.iter().position(|&bytes| !f64::from_le_bytes(bytes).is_finite()))
            }
            _ => return Err(Kind::Shape.into()),
        };
        match endless {
            _ if count != self.coordinates => Err(Kind::Shape.into()),
            Some(index) => Err(Refused::at(Kind::Value, index)),
            None => Ok(()),
        }
    }

    /// Gives `work` the records of a checked vector; the copy is overwritten afterwards.
    pub(crate) fn with(&self, x: Values<'_>, work: &mut dyn FnMut(Values<'_>) -> Result<()>) -> Result<()> {
        with_room(self.coordinates, |own: &mut [f64]| {
            match x {
                Values::F64(x) => own.copy_from_slice(x),
                Values::Bytes(x) => {
                    let (numbers, _) = x.as_chunks::<8>();
                    own.iter_mut().zip(numbers).for_each(|(own, &bytes)| *own = f64::from_le_bytes(bytes));
                }
                _ => return Err(Kind::Shape.into()),
            }
            own.chunks_exact_mut(self.columns()).for_each(|row| self.clip(row));
            for x in own.iter_mut() {
                let share = 0.5 + 0.5 * (*x / self.clip);
                *x = within(self.low + (self.high - self.low) * share, (self.low, self.high));
            }
            work(Values::F64(own))
        })?
    }

    /// Clips a row by the norm.
    fn clip(&self, x: &mut [f64]) {
        let largest = x.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let length = match self.norm {
            Norm::LInf => return x.iter_mut().for_each(|x| *x = within(*x, (-self.clip, self.clip))),
            Norm::L1 => sum(x.iter().map(|x| (x / unit).abs())),
            Norm::L2 => sum(x.iter().map(|x| (x / unit) * (x / unit))).sqrt(),
        };
        if length * largest > self.clip {
            let factor = self.clip * SLACK / length;
            x.iter_mut().for_each(|x| *x = *x / unit * factor);
        }
    }
}

/// The sum, whose error does not grow with the number of terms: what rounding loses is added up, too.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (sum, lost) = terms.fold((0.0, 0.0), |(sum, lost), term| {
        let next: f64 = sum + term;
        let of_term = next - sum;
        (next, lost + ((sum - (next - of_term)) + (term - of_term)))
    });
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(norm: Norm, x: &[f64]) -> Vec<f64> {
        let (clip, low, high) = (2.0, -1.0, 1.0);
        let update = Update { clip, norm, low, high, records: 1, rows: 1, coordinates: x.len() };
        let mut own = x.to_vec();
        update.clip(&mut own);
        own
    }

    #[test]
    fn a_norm_is_never_above_the_clip() {
        for count in [1, 3, 1000, 100_000] {
            let x: Vec<f64> = (0..count).map(|i| f64::from(i % 7 - 3) * 1e3 + 0.1).collect();
            let l2 = clipped(Norm::L2, &x).iter().map(|x| x * x).sum::<f64>().sqrt();
            let l1 = clipped(Norm::L1, &x).iter().map(|x| x.abs()).sum::<f64>();
            assert!((1.999_999..=2.000_000_1).contains(&l2) && (1.999_999..=2.000_000_1).contains(&l1));
            assert!(clipped(Norm::LInf, &x).iter().all(|x| x.abs() <= 2.0));
        }
        assert_eq!(clipped(Norm::L2, &[0.0, -0.5, 1.0]), [0.0, -0.5, 1.0]);
        assert_eq!(clipped(Norm::L1, &[0.0; 3]), [0.0; 3]);
        assert!(clipped(Norm::L2, &[f64::MAX, -f64::MAX]).iter().all(|x| x.abs() < 1.42));
        assert!(clipped(Norm::L2, &[5e-324, 0.0]) == [5e-324, 0.0]);
    }

    #[test]
    fn each_row_is_clipped_by_itself() {
        let (norm, low, high) = (Norm::LInf, -1.0, 1.0);
        let update = Update { clip: 1.0, norm, low, high, records: 2, rows: 2, coordinates: 4 };
        let l1 = Update { norm: Norm::L1, ..update };
        let mut made = Vec::new();
        l1.with(Values::F64(&[0.5, 0.5, -4.0, 0.0]), &mut |x| {
            let Values::F64(x) = x else { return Err(Kind::Shape.into()) };
            made.extend_from_slice(x);
            Ok(())
        })
        .unwrap();
        assert_eq!((made[0], made[1], made[3], l1.columns()), (0.5, 0.5, 0.0, 2));
        assert!((-1.0..-0.999_999).contains(&made[2]));
    }

    #[test]
    fn a_sum_of_many_terms_loses_nothing() {
        assert_eq!(sum((0..10_000_000).map(|_| 0.1)), 1_000_000.0);
        assert_eq!(sum([1e16, 1.0, 1.0, 1.0].into_iter()), 1e16 + 3.0 + 1.0);
    }
}
