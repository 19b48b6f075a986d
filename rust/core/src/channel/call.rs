//! The trait of all channels, and one call of it.

use crate::error::{Result, argument, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::parallel::CHUNK;

/// Randomizes values: the only step where privacy happens.
///
/// A channel says how much its reports tell, how long they are, and how they are drawn; how it is called follows.
pub trait Channel: Sync {
    /// How numbers become codes before the channel.
    type Codec<'a>: Copy + Send + Sync;
    /// The keys that a call takes.
    type Keys<'a>: Copy + Send + Sync;

    /// The exact ε of a record, rounded up, from the integers that are sampled: the largest ln P(z|x) / P(z|x') over all
    /// reports z and any two records; infinite where one record never gives a report that another gives.
    fn epsilon(&self) -> f64;

    /// Bits of a packed report.
    fn report_bits(&self) -> u32;

    /// Randomizes on the kernels of one instruction set: the answer does not depend on it, nor on the threads.
    ///
    /// # Errors
    /// A call that does not fit the channel; nothing is written then. [`Error::Value`](crate::Error::Value) for a value
    /// that has no law, at the first such position: values are checked in the pass that randomizes them, and the whole output
    /// is zeros then.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Self::Codec<'_>, Self::Keys<'_>>) -> Result<()>;

    /// Randomizes on the kernels of [`Isa::current`].
    ///
    /// # Errors
    /// As [`randomize_on`](Self::randomize_on), and [`Error::Isa`](crate::Error::Isa) as [`Isa::current`].
    fn randomize(&self, call: Call<'_, Self::Codec<'_>, Self::Keys<'_>>) -> Result<()> {
        self.randomize_on(Isa::current()?, call)
    }

    /// Reports in a chunk of the key's stream.
    fn chunk(&self) -> usize {
        CHUNK
    }

    /// True where the input is checked, and then zeros are randomized in its place: so ε is 0 whatever the law is.
    fn is_mute(&self) -> bool {
        false
    }
}

/// One call of a channel: the three steps, and where the randomness comes from.
pub struct Call<'a, C, K> {
    /// How numbers become codes.
    pub codec: C,
    /// The values.
    pub input: Input<'a>,
    /// The decoded value of each report: needed where numbers leave, unless the codec says it.
    pub letters: Option<&'a [f64]>,
    /// Where the reports go.
    pub output: Output<'a>,
    /// The key, or one for each of several streams.
    pub keys: K,
    /// The chunk of the key's stream that the first report belongs to; each has [`Channel::chunk`] reports.
    pub first_chunk: u64,
    /// Threads to work on; where there is no number, as many as pay off.
    pub threads: Option<usize>,
}

impl<'a, C, K> Call<'a, C, K> {
    /// A call without letters, from the start of the key's stream.
    pub fn new(codec: C, input: Input<'a>, output: Output<'a>, keys: K) -> Call<'a, C, K> {
        Call { codec, input, letters: None, output, keys, first_chunk: 0, threads: None }
    }

    /// Refuses letters, where reports stand for none.
    pub(super) fn refuse_letters(&self) -> Result<()> {
        refuse(self.letters)
    }
}

/// Refuses letters, where reports stand for none.
pub(super) fn refuse(letters: Option<&[f64]>) -> Result<()> {
    match letters {
        None => Ok(()),
        Some(_) => Err(argument("letters", words("the reports of this channel have none"))),
    }
}
