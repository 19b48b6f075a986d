"""Privacy-aware compression: numbers and vectors as reports of a few bits.

The mechanisms and their names are those of Chaudhuri, Guo and Rabbat, "Privacy-aware compression for
federated data analysis" (UAI 2022), together with those that the paper compares with. A packed report takes
exactly b bits per number.
"""

from __future__ import annotations

from bitldp.compression.ball.additive import BallGaussian, Skellam
from bitldp.compression.ball.cldp import CLDP
from bitldp.compression.ball.cross_polytope import CrossPolytope, OneRotationWarning
from bitldp.compression.ball.interpolated_mvu import InterpolatedMVU
from bitldp.compression.ball.laplace import LaplaceBall
from bitldp.compression.ball.random_codebook import RandomCodebook
from bitldp.compression.ball.signsgd import SignSGD
from bitldp.compression.ball.vector_mvu import VectorMVU
from bitldp.compression.ball.window import BallWindow
from bitldp.compression.mvu import MVU, MetricMVU
from bitldp.compression.response import BitwiseRR, GeneralizedRR, best_bits

__all__ = [
    "CLDP",
    "MVU",
    "BallGaussian",
    "BallWindow",
    "BitwiseRR",
    "CrossPolytope",
    "GeneralizedRR",
    "InterpolatedMVU",
    "LaplaceBall",
    "MetricMVU",
    "OneRotationWarning",
    "RandomCodebook",
    "SignSGD",
    "Skellam",
    "VectorMVU",
    "best_bits",
]
