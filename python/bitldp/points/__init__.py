"""Points and locations: a report is another candidate, and closer ones are more likely."""

from __future__ import annotations

from bitldp.points.brr import BRR
from bitldp.points.exponential import Exponential
from bitldp.points.lsrr import LSRR, location_codes
from bitldp.points.optimal import OptimalUtility

__all__ = ["BRR", "LSRR", "Exponential", "OptimalUtility", "location_codes"]
