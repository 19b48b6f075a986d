"""What is timed of the numeric mechanisms and of small tables: float32 to reports.

The reference has the law of ours: dither to a grid, then a window or a table, as codes or as the
letters that they stand for. The tuned NumPy has the continuous law of the paper, which reports letters only.
"""

from __future__ import annotations

from collections.abc import Callable

import _checks
import bitldp
import numpy as np
from _cases import SAMPLES, SEED, Array, Case
from bitldp import reference
from bitldp.mechanism.numeric import Numeric
from bitldp.numeric import Duchi, Hybrid, Laplace, Piecewise, ThreeOutputs
from bitldp.numeric.laplace import layout

EPSILON = 2.0
NOISE_EPSILON = 1.0
_ONE = 2.0**64
FINER = 0.02  # by which share the variance on a grid may differ from that of the continuous law


def cases() -> list[Case]:
    """Return the numeric cases, with inputs and outputs allocated and touched."""
    rng = np.random.default_rng(SEED + 3)
    x = rng.uniform(-1.0, 1.0, SAMPLES).astype(np.float32)
    three = ThreeOutputs(epsilon=EPSILON)
    letter = float(three.letters[2])
    # Bytes of keystream a sample: 1 of dither, then half a one of flips, 4 of a window or a table, 2 of
    # noise.
    return [
        *_numeric(Duchi(epsilon=EPSILON), x, 1.5, _windowed, lambda: reference.duchi(x, EPSILON, rng), rng),
        *_numeric(
            Piecewise(epsilon=EPSILON), x, 5.0, _windowed, lambda: reference.piecewise(x, EPSILON, rng), rng
        ),
        *_numeric(Hybrid(epsilon=EPSILON), x, 10.0, _mixed, lambda: reference.hybrid(x, EPSILON, rng), rng),
        *_numeric(
            three,
            x,
            5.0,
            _tabled,
            lambda: reference.three_outputs(x, three.probabilities(), letter, rng),
            rng,
        ),
        *_numeric(Laplace(epsilon=NOISE_EPSILON), x, 3.0, _noisy, None, rng),
        *_table(8, 8, rng),
        *_table(64, 32, rng),
    ]


def _windowed(mechanism: Numeric, x: Array, rng: np.random.Generator) -> Array:
    """Return the codes of a dithered window."""
    channel = mechanism.channels[0]
    assert isinstance(channel, bitldp.Window)
    rows = reference.dither(x, channel.cells - channel.width + 1, -1.0, 1.0, rng)
    rows += channel.width // 2
    return reference.window(rows, channel.cells, channel.width, channel.high / _ONE, rng)


def _tabled(mechanism: Numeric, x: Array, rng: np.random.Generator) -> Array:
    """Return the codes of a dithered table."""
    table = reference.alias_table(mechanism.channels[-1].probabilities())
    return reference.matrix_alias(reference.dither(x, len(table[0]), -1.0, 1.0, rng), table, rng)


def _mixed(mechanism: Numeric, x: Array, rng: np.random.Generator) -> Array:
    """Return the codes of a window where a table of two rows answers 0, else its answers behind them."""
    answers = _tabled(mechanism, x, rng)
    return np.where(answers == 0, _windowed(mechanism, x, rng), answers + (mechanism.alphabet - 3))


def _noisy(mechanism: Numeric, x: Array, rng: np.random.Generator) -> Array:
    """Return the codes of geometric noise: a grid of as many steps as the mechanism's."""
    steps, beyond = layout(mechanism.epsilon)
    return reference.discrete_laplace(x, steps, mechanism.epsilon, beyond, rng)


def _numeric(
    mechanism: Numeric,
    x: Array,
    keystream: float,
    law: Callable[[Numeric, Array, np.random.Generator], Array],
    continuous: Callable[[], Array] | None,
    rng: np.random.Generator,
) -> list[Case]:
    """Return a case for codes and one for letters."""
    others = [] if continuous is None else [(continuous, FINER)]

    def letters() -> Array:
        return mechanism.letters.astype(x.dtype)[law(mechanism, x, rng)]

    def case(output: str, plain: Callable[[], Array]) -> Case:
        out = np.ones_like(mechanism.randomize(x, output=output))
        return Case(
            f"{type(mechanism).__name__}, float32 to {output}",
            ours=lambda threads: mechanism.randomize(x, output=output, out=out, threads=threads),
            reference=plain,
            tuned=continuous,
            check=lambda: _checks.letters(mechanism, x, output, [(letters, 0.0), *others]),
            keystream=int(keystream * x.size),
            read=x.nbytes,
            written=out.nbytes,
        )

    return [case("codes", lambda: law(mechanism, x, rng)), case("values", letters)]


def _table(rows: int, columns: int, rng: np.random.Generator) -> list[Case]:
    """Return a dithered table like a compressing mechanism's, against alias tables and inversion."""
    law = rng.random((rows, columns))
    law /= law.sum(axis=1, keepdims=True)
    channel = bitldp.Matrix(law)
    grid = bitldp.Grid(rows, low=0.0, high=1.0)
    x = rng.random(SAMPLES, dtype=np.float32)
    out = np.ones_like(channel.randomize(x, grid, None, None, "codes", None, None, 0))
    table = reference.alias_table(law)

    def dithered() -> Array:
        return reference.dither(x, rows, 0.0, 1.0, rng)

    def case(name: str, plain: Callable[[], Array]) -> Case:
        return Case(
            f"table {rows} x {columns}, dithered, against {name}",
            ours=lambda threads: channel.randomize(x, grid, None, None, "codes", out, threads, 0),
            reference=plain,
            tuned=None,
            check=lambda: _checks.rows(
                lambda rng, threads: channel.randomize(
                    x, grid, None, _checks.key(rng), "codes", None, threads, 0
                ),
                [plain],
                _checks.expected(_checks.dithered_counts(x, rows), channel.probabilities()),
            ),
            keystream=(1 + (4 if channel.constant_time else 2)) * SAMPLES,
            read=x.nbytes,
            written=out.nbytes,
        )

    return [
        case("alias tables", lambda: reference.matrix_alias(dithered(), table, rng)),
        case("inversion", lambda: reference.matrix_inversion(dithered(), law, rng)),
    ]
