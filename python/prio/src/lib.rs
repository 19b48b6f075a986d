//! The extension module `bitldp_prio._prio3`: Prio3 of two aggregators, by the crate `prio`.
//!
//! Messages go in and out as bytes, in the encoding of the VDAF draft. A message that cannot be read, and a
//! report whose proof does not hold, are a `ValueError` whose text says so and nothing else.

use prio::codec::{Encode, ParameterizedDecode};
use prio::field::{Field128, FieldElementWithInteger};
use prio::vdaf::prio3::{
    Prio3Histogram, Prio3InputShare, Prio3PublicShare, Prio3SumVec, Prio3VerifierMessage, Prio3VerifierShare,
    Prio3VerifyState, optimal_chunk_length,
};
use prio::vdaf::{
    Aggregatable, AggregateShare, Aggregator, Client, OutputShare, VdafError, VerifyTransition,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const AGGREGATORS: u8 = 2;
const SEED: usize = 32;

type Key = [u8; SEED];
type Nonce = [u8; 16];

#[pymodule]
mod _prio3 {
    #[pymodule_export]
    use super::{Prio3, Total, Verification};
}

enum Kind {
    Histogram(Prio3Histogram),
    Vector(Prio3SumVec),
}

/// Evaluates an expression with the VDAF, of whichever kind it is.
macro_rules! with {
    ($kind:expr, $vdaf:ident => $result:expr) => {
        match &$kind {
            Kind::Histogram($vdaf) => $result,
            Kind::Vector($vdaf) => $result,
        }
    };
}

/// Prio3 of two aggregators: what a measurement may be, and how it is shared and verified.
#[pyclass(frozen)]
struct Prio3 {
    kind: Kind,
    /// Entries of a sum.
    length: usize,
    /// The least number that is not allowed, of a category or an entry.
    end: u64,
}

/// What an aggregator keeps between the two steps of a report's verification.
#[pyclass]
struct Verification {
    state: Option<Prio3VerifyState<Field128, SEED>>,
}

/// Sum of the verified reports' shares that one aggregator has.
#[pyclass]
struct Total {
    share: AggregateShare<Field128>,
    count: usize,
}

fn refused(argument: &str, reason: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: {reason}"))
}

fn unreadable(argument: &str) -> PyErr {
    refused(argument, "is no message of this sum")
}

fn decoded<P, T: ParameterizedDecode<P>>(argument: &str, parameter: &P, bytes: &[u8]) -> PyResult<T> {
    T::get_decoded_with_param(parameter, bytes).map_err(|_| unreadable(argument))
}

fn encoded<'py>(py: Python<'py>, message: &impl Encode) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = message.get_encoded().map_err(|_| refused("message", "cannot be encoded"))?;
    Ok(PyBytes::new(py, &bytes))
}

fn made<T>(argument: &str, result: Result<T, VdafError>) -> PyResult<T> {
    result.map_err(|_| refused(argument, "is outside what Prio3 takes"))
}

#[pymethods]
impl Prio3 {
    /// Sums of one-hot vectors: a measurement is one category of `categories`.
    #[staticmethod]
    fn histogram(categories: usize) -> PyResult<Self> {
        let chunk = optimal_chunk_length(categories);
        let vdaf = made("categories", Prio3Histogram::new_histogram(AGGREGATORS, categories, chunk))?;
        Ok(Self { kind: Kind::Histogram(vdaf), length: categories, end: categories as u64 })
    }

    /// Sums of vectors: a measurement is `features` integers, each from 0 to `most`.
    #[staticmethod]
    fn vector(features: usize, most: u64) -> PyResult<Self> {
        if most == 0 || most >= 1 << 32 {
            return Err(refused("most", "must be from 1 to 2**32 - 1"));
        }
        let bits = (u64::BITS - most.leading_zeros()) as usize;
        let chunk = optimal_chunk_length(bits.saturating_mul(features));
        let vdaf = Prio3SumVec::new_sum_vec(AGGREGATORS, most.into(), features, chunk);
        Ok(Self { kind: Kind::Vector(made("features", vdaf)?), length: features, end: most + 1 })
    }

    /// Shares of a measurement, and their proof: the public part, and one for each aggregator.
    fn shard<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        nonce: Nonce,
        measurement: Vec<u64>,
    ) -> PyResult<[Bound<'py, PyBytes>; 3]> {
        let wanted = if matches!(self.kind, Kind::Histogram(_)) { 1 } else { self.length };
        if measurement.len() != wanted || measurement.iter().any(|&each| each >= self.end) {
            return Err(refused("measurement", "has another length, or a value that is out of range"));
        }
        let (public, inputs) = py
            .detach(|| match &self.kind {
                Kind::Histogram(vdaf) => vdaf.shard(context, &(measurement[0] as usize), &nonce),
                Kind::Vector(vdaf) => {
                    let wide = measurement.iter().map(|&each| each.into()).collect();
                    vdaf.shard(context, &wide, &nonce)
                }
            })
            .map_err(|_| refused("measurement", "could not be shared"))?;
        Ok([encoded(py, &public)?, encoded(py, &inputs[0])?, encoded(py, &inputs[1])?])
    }

    /// The first step of a report's verification: what stays here, and what goes to the other aggregator.
    #[pyo3(signature = (key, context, place, nonce, public, share))]
    #[allow(clippy::too_many_arguments)] // as the draft's own function
    fn begin<'py>(
        &self,
        py: Python<'py>,
        key: Key,
        context: &[u8],
        place: usize,
        nonce: Nonce,
        public: &[u8],
        share: &[u8],
    ) -> PyResult<(Verification, Bound<'py, PyBytes>)> {
        if place >= AGGREGATORS.into() {
            return Err(refused("place", "must be 0 or 1"));
        }
        let (state, message) = with!(self.kind, vdaf => {
            let public: Prio3PublicShare<SEED> = decoded("public", vdaf, public)?;
            let input: Prio3InputShare<Field128, SEED> = decoded("share", &(vdaf, place), share)?;
            py.detach(|| vdaf.verify_init(&key, context, place, &(), &nonce, &public, &input))
                .map_err(|_| unreadable("share"))?
        });
        Ok((Verification { state: Some(state) }, encoded(py, &message)?))
    }

    /// The message that ends a verification, of both aggregators' first messages.
    fn combine<'py>(
        &self,
        py: Python<'py>,
        context: &[u8],
        verification: &Verification,
        messages: [Vec<u8>; 2],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let state = verification.state.as_ref().ok_or_else(|| refused("verification", "has ended"))?;
        let [leader, helper] = messages;
        let shares: [Prio3VerifierShare<Field128, SEED>; 2] =
            [decoded("messages", state, &leader)?, decoded("messages", state, &helper)?];
        let message = with!(self.kind, vdaf => vdaf.verifier_shares_to_message(context, &(), shares))
            .map_err(|_| refused("messages", "the proof of the report does not hold"))?;
        encoded(py, &message)
    }

    /// The second step: adds the report to a total if its proof holds.
    fn finish(
        &self,
        context: &[u8],
        verification: &mut Verification,
        message: &[u8],
        total: &mut Total,
    ) -> PyResult<()> {
        let state = verification.state.take().ok_or_else(|| refused("verification", "has ended"))?;
        let message: Prio3VerifierMessage<SEED> = decoded("message", &state, message)?;
        let wrong = || refused("message", "the proof of the report does not hold");
        let output: OutputShare<Field128> = with!(self.kind, vdaf => {
            match vdaf.verify_next(context, state, message).map_err(|_| wrong())? {
                VerifyTransition::Finish(output) => output,
                VerifyTransition::Continue(..) => return Err(wrong()),
            }
        });
        total.share.accumulate(&output).map_err(|_| unreadable("total"))?;
        total.count += 1;
        Ok(())
    }

    /// An empty total.
    fn total(&self) -> Total {
        Total { share: with!(self.kind, vdaf => vdaf.aggregate_init(&())), count: 0 }
    }

    /// The sum of both aggregators' totals: integers around 0, since noise may make them negative.
    fn unshard(&self, totals: [Vec<u8>; 2]) -> PyResult<Vec<i128>> {
        let [first, second] = totals;
        let mut sum: AggregateShare<Field128> = self.read(&first)?;
        sum.merge(&self.read(&second)?).map_err(|_| unreadable("totals"))?;
        Ok(sum.as_ref().iter().map(|&each| centred(each)).collect())
    }
}

impl Prio3 {
    fn read(&self, bytes: &[u8]) -> PyResult<AggregateShare<Field128>> {
        with!(self.kind, vdaf => decoded("totals", &(vdaf, &()), bytes))
    }
}

#[pymethods]
impl Total {
    /// How many reports it is of.
    #[getter]
    fn count(&self) -> usize {
        self.count
    }

    /// Adds an integer to each entry.
    fn add(&mut self, noise: Vec<i64>) -> PyResult<()> {
        if noise.len() != self.share.as_ref().len() {
            return Err(refused("noise", "has another length than the sum"));
        }
        let elements = noise.iter().map(|&each| {
            let size = Field128::from(u128::from(each.unsigned_abs()));
            if each < 0 { -size } else { size }
        });
        let noise: Vec<Field128> = elements.collect();
        self.share.merge(&noise.into()).map_err(|_| unreadable("noise"))
    }

    /// The total as bytes, for the collector.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        encoded(py, &self.share)
    }
}

fn centred(element: Field128) -> i128 {
    let (value, modulus) = (u128::from(element), Field128::modulus());
    if value > modulus / 2 { -((modulus - value) as i128) } else { value as i128 }
}
