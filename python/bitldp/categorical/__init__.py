"""Categories: randomized response, unary encodings, subsets and block designs."""

from __future__ import annotations

from bitldp.categorical.blocks import BlockDesign
from bitldp.categorical.responses import GRR, LabelRR, WarnerRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.categorical.unary import OUE, SUE

__all__ = ["GRR", "OUE", "SUE", "BlockDesign", "LabelRR", "SubsetSelection", "WarnerRR"]
