"""Categories: randomized response, unary encodings, subsets, block designs and hashes."""

from __future__ import annotations

from bitldp.categorical.blocks import BlockDesign
from bitldp.categorical.given import MatrixResponse, from_matrix
from bitldp.categorical.hadamard import HadamardResponse
from bitldp.categorical.hashing import OLH
from bitldp.categorical.loloha import LOLOHA
from bitldp.categorical.rappor import RAPPOR
from bitldp.categorical.responses import GRR, LabelRR, WarnerRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.categorical.unary import OUE, SUE

__all__ = [
    "GRR",
    "LOLOHA",
    "OLH",
    "OUE",
    "RAPPOR",
    "SUE",
    "BlockDesign",
    "HadamardResponse",
    "LabelRR",
    "MatrixResponse",
    "SubsetSelection",
    "WarnerRR",
    "from_matrix",
]
