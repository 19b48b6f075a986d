"""Points and locations: a report is another candidate, and closer ones are more likely."""

from __future__ import annotations

from bitldp.points.brr import BRR, limit_ratio, printed_limit_ratio
from bitldp.points.exponential import Exponential
from bitldp.points.lsrr import LSRR, location_codes
from bitldp.points.metric import MetricPoints
from bitldp.points.optimal import OptimalUtility
from bitldp.points.width import equidistant_width, nearest_first, paper_width, printed_equidistant_width

__all__ = [
    "BRR",
    "LSRR",
    "Exponential",
    "MetricPoints",
    "OptimalUtility",
    "equidistant_width",
    "limit_ratio",
    "location_codes",
    "nearest_first",
    "paper_width",
    "printed_equidistant_width",
    "printed_limit_ratio",
]
