"""The goals of each case, on AVX-512, on AVX2, and without vector kernels.

A ratio to the NumPy reference is of one thread in the same process. The scalar kernels, which remain for
every other processor, are faster than NumPy in every case.
"""

from __future__ import annotations

from dataclasses import dataclass

GATE = 0.75  # of each goal: below it the run fails
SCALING = 1.8  # two threads over one
WORTH_TWO = 1e-3  # seconds of one thread from which that is a goal
OF_FLOOR = 0.65  # of the faster stream, keystream or memory
AVX2 = 1.0 / 3.0  # of the ratio on AVX-512, where none is given
AVX2_SLOWER = 2.0  # times the time on AVX-512
SCALAR = 1.0 / GATE  # of every ratio: the run fails where NumPy is faster


@dataclass(frozen=True)
class Goal:
    """What a case should reach.

    Attributes
    ----------
    ratio, ratio_avx2 : float or None
        Time of the reference over ours.
    seconds : float or None
        A call of one thread on AVX-512.
    floor : float or None
        Time of the binding limit over ours.
    """

    ratio: float | None = None
    ratio_avx2: float | None = None
    seconds: float | None = None
    floor: float | None = None

    def on(self, isa: str) -> Goal | None:
        """Return the goal on an instruction set, as one of AVX-512 is written."""
        if isa == "avx512":
            return self
        if isa != "avx2":
            return None
        ratio = self.ratio_avx2
        if ratio is None and self.ratio is not None:
            ratio = self.ratio * AVX2
        return Goal(ratio, ratio, None if self.seconds is None else self.seconds * AVX2_SLOWER)


_CALL = Goal(seconds=1e-6)
_NUMERIC = {"codes": Goal(20), "values": Goal(17)}

GOALS = {
    "float32 to codes": Goal(50, 13, floor=OF_FLOOR),
    "float32 to values": Goal(50, 14),
    "float32 to bits": Goal(42, 15),
    **{f"UER, l = {bits}, float32 to codes": Goal(18) for bits in (9, 10, 11)},
    "GRR, k = 128": Goal(16, 5.5),
    "BRR, N = 1000": Goal(25, 9),
    "matrix 256 x 256, dithered": Goal(13, 5.5),
    "OUE, k = 128, to bits": Goal(9),
    "one record of 768, FRR": _CALL,
    **{f"one value, {name}": _CALL for name in ("GRR", "Duchi", "Piecewise")},
    "keyed coins, GRR, 65,536 cells": Goal(seconds=65_536 * 50e-9),
    **{
        f"{name}, float32 to {output}": goal
        for name in ("Duchi", "Piecewise", "Hybrid", "ThreeOutputs")
        for output, goal in _NUMERIC.items()
    },
    **{f"Laplace, float32 to {output}": Goal(15) for output in ("codes", "values")},
    **{
        f"table {size}, dithered, against {by}": goal
        for size in ("8 x 8", "64 x 32")
        for by, goal in (("alias tables", Goal(18)), ("inversion", Goal(55)))
    },
    "PS, d = 10,000, float32": Goal(11),
    "EXP, d = 10,000, float32": Goal(35),
    "HypercubePrivUnit, r = 768": Goal(15),
    "RecordCap, 64 attributes of 4": Goal(seconds=2_000 * 64 * 8e-9),
    **{f"BlockDesign, k = 1024, eps = {epsilon}": Goal(5, seconds=(1 << 20) * 5e-9) for epsilon in (2, 4)},
    "BlockDesign, k = 65,536, estimate of 10^6": Goal(seconds=1.0),
    "SubsetSelection, k = 1024, to bits": Goal(5),
    "OLH, k = 1024, estimate": Goal(12),
    **{
        f"CrossPolytope, d = 768, {part}": Goal(seconds=1_000 * 5e-6)
        for part in ("float32", "decode and sum")
    },
    "encode, float32": Goal(10),
}


def goal_of(case: str, isa: str, compared: bool) -> Goal | None:
    """Return what a case should reach on an instruction set; `compared` says whether it has a reference."""
    if isa == "scalar":
        return Goal(ratio=SCALAR) if compared else None
    goal = GOALS.get(case)
    return None if goal is None else goal.on(isa)
