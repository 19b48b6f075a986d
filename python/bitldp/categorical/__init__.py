"""Categories: randomized response and unary encodings."""

from __future__ import annotations

from bitldp.categorical.responses import GRR, LabelRR, WarnerRR
from bitldp.categorical.unary import OUE, SUE

__all__ = ["GRR", "OUE", "SUE", "LabelRR", "WarnerRR"]
