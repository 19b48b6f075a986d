"""The same laws in plain NumPy: the oracle of the tests and the baseline of the benchmarks.

Three kinds of functions, none of which touches the extension module:

- samplers, the vectorised NumPy that one would write for them, whole arrays at a time: `encode`, `decode`,
  `flip_bits`, `randomize_bits`, `unary`, `grr`, `window`, `ordered_window`, `joint_window`, `dither`,
  `matrix_alias`, `matrix_inversion`, of numbers `duchi`, `piecewise`, `hybrid`, `three_outputs`,
  `discrete_laplace`, of vectors `cap`, `half_cube`, `select_by_rank`, `select_top`, `perturbed_encoding`,
  of several categories `categories_cap`;
- laws, written out from the integer probabilities of a channel (units of 2**-64): `bits_law`, `unary_law`,
  `window_law`, `matrix_law`, `cube_law`;
- `exact_epsilon` of a law, by enumeration.

The samplers are NOT for private data: their generator is not cryptographic and they compare floating-point
numbers, so their probabilities are multiples of 2**-24 or 2**-53 and their exact epsilon is not that of the
channel. They trust their parameters.
"""

from __future__ import annotations

from bitldp.reference.bits import (
    bits_of,
    codes_of,
    decode,
    encode,
    flip_bits,
    randomize_bits,
    unary,
)
from bitldp.reference.categories import (
    categories_cap,
    grr,
    joint_window,
    ordered_window,
    window,
    window_starts,
)
from bitldp.reference.cube import cap, cube_law, half_cube
from bitldp.reference.laws import bits_law, exact_epsilon, matrix_law, probabilities, unary_law, window_law
from bitldp.reference.noise import discrete_laplace
from bitldp.reference.numeric import duchi, hybrid, piecewise, three_outputs
from bitldp.reference.sampling import alias_table, dither, matrix_alias, matrix_inversion
from bitldp.reference.selection import among_equals, perturbed_encoding, select_by_rank, select_top

__all__ = [
    "alias_table",
    "among_equals",
    "bits_law",
    "bits_of",
    "cap",
    "categories_cap",
    "codes_of",
    "cube_law",
    "decode",
    "discrete_laplace",
    "dither",
    "duchi",
    "encode",
    "exact_epsilon",
    "flip_bits",
    "grr",
    "half_cube",
    "hybrid",
    "joint_window",
    "matrix_alias",
    "matrix_inversion",
    "matrix_law",
    "ordered_window",
    "perturbed_encoding",
    "piecewise",
    "probabilities",
    "randomize_bits",
    "select_by_rank",
    "select_top",
    "three_outputs",
    "unary",
    "unary_law",
    "window",
    "window_law",
    "window_starts",
]
