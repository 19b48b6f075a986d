"""Channels: the only place where privacy happens. The types of the extension module, under their own name.

Each holds its law as integers over 2**64 and computes its exact epsilon from them:

- `Bits`: independent bits on arbitrary bit strings, one (p, q) for each position;
- `Unary`: independent bits on one-hot input;
- `Window`: some cells of N share one probability, the others the rest;
- `Matrix`: any row-stochastic table;
- `Cube`: whole records of signs, near the input in many places or in few.
"""

from __future__ import annotations

from bitldp._core import Bits, Cube, Matrix, Unary, Window

__all__ = ["Bits", "Cube", "Matrix", "Unary", "Window"]
