"""Ordered values and unknown words: distributions, ranges, quantiles and the most frequent words."""

from __future__ import annotations

from bitldp.ordered.grids import HDG
from bitldp.ordered.heavy_hitters import HeavyHitters, WordReports
from bitldp.ordered.hierarchy import Hierarchy
from bitldp.ordered.square_wave import SquareWave
from bitldp.ordered.workload import WorkloadDesign

__all__ = ["HDG", "HeavyHitters", "Hierarchy", "SquareWave", "WordReports", "WorkloadDesign"]
