"""Estimates with standard errors, and accumulators that stream, merge and serialise."""

from __future__ import annotations

from bitldp.estimate.accumulators import Accumulator, CountAccumulator
from bitldp.estimate.estimates import Estimate, frequencies, project_simplex
from bitldp.estimate.means import MeanAccumulator

__all__ = ["Accumulator", "CountAccumulator", "Estimate", "MeanAccumulator", "frequencies", "project_simplex"]
