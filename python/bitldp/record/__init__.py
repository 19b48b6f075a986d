"""Whole records of numbers in one release."""

from __future__ import annotations

from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns

__all__ = ["HypercubePrivUnit", "SampledSigns"]
