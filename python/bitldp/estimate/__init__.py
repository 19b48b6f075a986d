"""Estimates with standard errors, and accumulators that stream, merge and serialise."""

from __future__ import annotations

from bitldp.estimate.accumulators import Accumulator, CountAccumulator
from bitldp.estimate.estimates import Estimate, frequencies, project_simplex
from bitldp.estimate.means import MeanAccumulator
from bitldp.estimate.post import likeliest_frequencies, maximum_likelihood, norm_sub

__all__ = [
    "Accumulator",
    "CountAccumulator",
    "Estimate",
    "MeanAccumulator",
    "frequencies",
    "likeliest_frequencies",
    "maximum_likelihood",
    "norm_sub",
    "project_simplex",
]
