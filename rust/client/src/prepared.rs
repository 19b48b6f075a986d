//! Numbers before they are checked: a public one in place of one that is missing, and intervals of columns mapped to another.

use crate::fields::{Fields, double, integer, list, wrong};
use crate::json::Json;
use crate::refused::Result;

/// Points of an interval at most.
const MOST_POINTS: i64 = 1 << 31;

/// The two ends of an interval.
pub(crate) type Ends = (f64, f64);

/// Steps that numbers of each column go through before they are checked.
pub(crate) struct Prepared {
    /// The number that takes the place of NaN.
    fill: Option<f64>,
    /// The interval of each column, and the one that all are mapped to.
    scaled: Option<(Vec<Ends>, Ends)>,
    /// True where numbers outside the interval of their column are refused.
    strict: bool,
}

impl Prepared {
    /// The steps that the record of a document says; nothing where numbers are taken as they are.
    pub(crate) fn read(fields: &Fields<'_>, columns: usize) -> Result<Option<Prepared>> {
        let fill = fields.maybe("fill").map(double).transpose()?;
        let span = match fields.maybe("points") {
            None => fields.maybe("span").map(interval).transpose()?,
            Some(points) => Some((0.0, integer(points, 2, MOST_POINTS)? as f64 - 1.0)),
        };
        let scaled = match (fields.maybe("intervals"), span) {
            (None, None) => None,
            (Some(own), Some(span)) => {
                let intervals = list(own, columns)?.iter().map(interval).collect::<Result<Vec<_>>>()?;
                if intervals.len() != columns {
                    return Err(wrong(own));
                }
                Some((intervals, span))
            }
            _ => return Err(fields.wrong()),
        };
        let strict = fields.text("outside")? == "refuse";
        Ok((fill.is_some() || scaled.is_some()).then_some(Prepared { fill, scaled, strict }))
    }

    /// True where columns are mapped, which takes numbers in double precision.
    pub(crate) fn maps(&self) -> bool {
        self.scaled.is_some()
    }

    /// A number of single precision; columns are not mapped then.
    pub(crate) fn single(&self, x: f32) -> f32 {
        match self.fill {
            Some(fill) if x.is_nan() => fill as f32,
            _ => x,
        }
    }

    /// Prepares the numbers of records.
    pub(crate) fn apply(&self, numbers: &mut [f64]) {
        if let Some(fill) = self.fill {
            numbers.iter_mut().for_each(|x| *x = if x.is_nan() { fill } else { *x });
        }
        if let Some((intervals, (first, last))) = &self.scaled {
            for (x, (low, high)) in numbers.iter_mut().zip(intervals.iter().cycle()) {
                let share = (within(*x, (*low, *high)) - low) / (high - low);
                // The end is met exactly.
                let mapped = if share >= 1.0 { *last } else { first + share * (last - first) };
                // What is infinite is refused, by its place.
                let outside = self.strict && (*x < *low || *x > *high);
                *x = if outside { f64::INFINITY } else { within(mapped, (*first, *last)) };
            }
        }
    }
}

/// A number, or the end of an interval that it is beyond; NaN stays.
pub(crate) fn within(x: f64, (low, high): Ends) -> f64 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

/// Two finite numbers that ascend.
pub(crate) fn interval(json: &Json<'_>) -> Result<Ends> {
    match list(json, 2)? {
        [low, high] => Some((double(low)?, double(high)?)).filter(|(low, high)| low < high),
        _ => None,
    }
    .ok_or_else(|| wrong(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(fill: Option<f64>) -> Prepared {
        Prepared { fill, scaled: Some((vec![(0.0, 10.0), (-1.0, 3.0)], (-1.0, 1.0))), strict: false }
    }

    #[test]
    fn intervals_are_mapped_column_by_column() {
        let mut numbers = [0.0, 3.0, 5.0, -9.0, f64::INFINITY, 1.0];
        prepared(None).apply(&mut numbers);
        assert_eq!(numbers, [-1.0, 1.0, 0.0, -1.0, 1.0, 0.0]);
    }

    #[test]
    fn what_is_missing_is_filled_or_stays() {
        let (mut filled, mut missing) = ([f64::NAN, f64::NAN], [f64::NAN, 3.0]);
        prepared(Some(2.5)).apply(&mut filled);
        assert_eq!(filled, [-0.5, 0.75]);
        prepared(None).apply(&mut missing);
        assert!(missing[0].is_nan() && missing[1] == 1.0);
        let single = Prepared { fill: Some(0.5), scaled: None, strict: false };
        assert_eq!((single.single(f32::NAN), single.single(2.0)), (0.5, 2.0));
    }

    #[test]
    fn numbers_outside_the_interval_of_their_column_are_infinite() {
        let mut numbers = [0.0, 3.0, 10.5, -1.0, f64::NAN, f64::NEG_INFINITY];
        Prepared { strict: true, ..prepared(None) }.apply(&mut numbers);
        assert_eq!((numbers[0], numbers[1], numbers[3]), (-1.0, 1.0, -1.0));
        assert!(numbers[2].is_infinite() && numbers[4].is_nan() && numbers[5].is_infinite());
    }
}
