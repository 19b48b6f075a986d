"""Channels: the randomization of codes into reports. No other part of the package provides privacy.

The channels are types of the extension module. Each holds its probabilities as integers over 2**64 and
computes its exact epsilon from them:

- `Bits`: independent bits on arbitrary bit strings, one (p, q) for each position;
- `Unary`: independent bits on one-hot input;
- `Window`: some cells of N share one probability, the others the rest;
- `Shift`: integer noise that is added, the sum clamped; exact delta at any epsilon, too;
- `Matrix`: any row-stochastic table;
- `Mixture`: a window or a matrix, by a random bit that does not depend on the input;
- `Select`: one coordinate of a vector, by the rank of its magnitude, or of its value with either sign; its
  integers are over their sum;
- `Cube`: whole records of signs, near the input in many places or in few;
- `Cap`: whole records of numbers and categories, uniform about the input or uniform on everything.
"""

from __future__ import annotations

from bitldp._core import Bits, Cap, Cube, Matrix, Mixture, Select, Shift, Unary, Window

__all__ = ["Bits", "Cap", "Cube", "Matrix", "Mixture", "Select", "Shift", "Unary", "Window"]
