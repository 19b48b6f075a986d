"""BitRand, Figures 4 to 7 and 12 to 14: flip probabilities by bit, size and classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import bitldp
import numpy as np
from bitldp.bits import frr_flips
from numpy.typing import NDArray

from bitldp_papers.figures import Compared, FigureResult, FigureRun, Finding, Formula, figure
from bitldp_papers.figures.drawing import lines

FEATURES, BITS = 1000, 10
BUDGETS = (0.1, 1.0, 2.0)
SIZES, LENGTHS = (10, 100, 1000, 10_000), (5, 10, 20, 100, 1000)
CLASSES = (5, 10, 100, 500, 1000, 2000)
#: The paper's Equation 2, evaluated apart: flip probabilities of the bits at epsilon 1, r = 1000, l = 10.
FLIPS = (0.2939, 0.3151, 0.3371, 0.3598, 0.3831, 0.4070, 0.4313, 0.4560, 0.4809, 0.5059)
#: Of the sign bit at epsilon 1: {(r, l): q_0}.
SIGNS = {
    **{(1, 10): 0.3039, (10, 10): 0.2949, (100, 10): 0.2940, (1000, 10): 0.2939, (10_000, 10): 0.2939},
    **{(1000, 5): 0.3051, (1000, 20): 0.2887, (1000, 100): 0.2845, (1000, 1000): 0.2836},
}
#: Of the lowest fraction bit at epsilon 1 and r = 1000, by l.
LOWEST = {5: 0.494, 10: 0.506, 20: 0.512}
#: Of a label to any one other, at epsilon 1, by classes.
LABELS = {100: 0.0098, 1000: 0.0010, 2000: 0.0005}

_HONEST = (
    "bits that are flipped this rarely cannot be honest at this budget: at an exact epsilon of 1 for the "
    "record, "
    "the same bits of f-RR are flipped with {low:.5f} to {high:.5f}"
)


def exact(flips: NDArray[np.float64], features: int) -> float:
    """Return the exact epsilon of a record whose bits are flipped so: every bit may differ."""
    return features * math.fsum(np.abs(np.log(flips / (1.0 - flips))))


def corrected_latent(features: int, bits: int, epsilon: float, **more: Any) -> bitldp.MOUE:
    """Return LATENT at the paper's alpha, on the budget that Theorem 5 corrects to `epsilon`."""
    return bitldp.MOUE(
        features=features, bits=bits, epsilon=epsilon, alpha=7.0, calibration="corrected", **more
    )


def corrected_ome(features: int, bits: int, epsilon: float, **more: Any) -> bitldp.UER:
    """Return OME at alpha 1, as the paper compares it, on the budget that Theorem 6 corrects to `epsilon`."""
    return bitldp.UER(
        features=features, bits=bits, epsilon=epsilon, alpha=1.0, calibration="corrected", **more
    )


def _honest(features: int = FEATURES, bits: int = BITS) -> str:
    law = bitldp.FRR(features, bits=bits, epsilon=1.0).probabilities()[0, :, 1]
    return _HONEST.format(low=law.min(), high=law.max())


def _top(flips: NDArray[np.float64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.cumsum(flips) / np.arange(1, len(flips) + 1)
    return means


def _by_bit(budgets: Sequence[float]) -> FigureResult:
    """Return q by bit and its mean over the first k, for each budget a panel."""
    rows: list[dict[str, Any]] = []
    compared: list[Compared] = []
    findings: list[Finding] = []
    for epsilon in budgets:
        aware = frr_flips(FEATURES, BITS, epsilon)
        latent = corrected_latent(FEATURES, BITS, epsilon).probabilities()[0]
        even = corrected_ome(FEATURES, BITS, epsilon).probabilities()[0]
        uneven = bitldp.UER(
            features=FEATURES, bits=BITS, epsilon=epsilon, alpha=100.0, calibration="paper"
        ).probabilities()[0]
        laws = {
            "f-RR": aware,
            "f-RR, mean of the first k": _top(aware),
            "not bit-aware": frr_flips(FEATURES, BITS, epsilon, bit_aware=False),
            "LATENT, a 0 reported 1": latent[:, 1],
            "LATENT, a 1 reported 0": 1.0 - latent[:, 0],
            "OME, alpha 1": even[:, 1],
            "OME, alpha 100, a 1 reported 0": 1.0 - uneven[:, 0],
        }
        rows += [
            {"epsilon": epsilon, "law": name, "bit": bit, "q": float(q)}
            for name, law in laws.items()
            for bit, q in enumerate(law)
        ]
        paper = [Formula(q) for q in FLIPS] if epsilon == 1.0 else [None] * BITS
        shown = range(BITS) if epsilon == 1.0 else (0, BITS - 1)
        findings += _by_bit_findings(epsilon, aware, latent, even)
        compared += [
            Compared(
                f"q of bit {bit}, epsilon {epsilon:g}",
                paper[bit],
                float(aware[bit]),
                None,
                exact(aware, FEATURES),
                epsilon,
            )
            for bit in shown
        ]
    for what, q, ours in (
        ("a 0 reported 1", 1.0 / 8.0, latent[0, 1]),
        ("a 1 reported 0", 7.0 / 8.0, 1.0 - latent[0, 0]),
    ):
        compared.append(Compared(f"LATENT, alpha 7: {what}", Formula(q), float(ours)))

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(2.2 + 3.2 * len(budgets), 4.6)
        panels = canvas.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
        for axes, epsilon in zip(panels, budgets, strict=True):
            of = [row for row in rows if row["epsilon"] == epsilon]
            names = dict.fromkeys(row["law"] for row in of)
            shown = {n: (range(BITS), [row["q"] for row in of if row["law"] == n]) for n in names}
            lines(axes, shown, title=f"claimed epsilon {epsilon:g}", xlabel="bit, from the sign on")
        panels[0].set_ylabel("probability of a flip")

    return FigureResult(
        rows,
        draw,
        compared,
        honest=_honest(),
        findings=[*findings, claimed(budgets[-1])],
        parameters={"features": FEATURES, "bits": BITS, "budgets": list(budgets)},
    )


def claimed(epsilon: float, features: int = FEATURES, bits: int = BITS) -> Finding:
    """Return whether a record that is flipped so costs what is claimed."""
    cost = exact(frr_flips(features, bits, epsilon), features)
    return Finding(
        f"a record of r = {features:,}, l = {bits} costs {epsilon:g}", cost <= epsilon, f"exact {cost:,.0f}"
    )


def _by_bit_findings(
    epsilon: float, aware: NDArray[np.float64], latent: NDArray[np.float64], even: NDArray[np.float64]
) -> list[Finding]:
    """Return what the paper says of the flips at one budget: of all bits, and of the mean of the first k."""
    means = {
        "LATENT": 0.5 * (latent[:, 1] + 1.0 - latent[:, 0]),
        "OME": 0.5 * (even[:, 1] + 1.0 - even[:, 0]),
    }
    least = 0.5 * latent[0, 1] + 0.5 * (1.0 - latent[0, 0])
    below = int(np.sum(aware < means["LATENT"]))
    rare = int(np.sum(aware > latent[:, 1]))
    found = [
        Finding(
            f"a smaller q than corrected LATENT's in all cases, epsilon {epsilon:g}",
            below == BITS and rare == 0,
            f"{below} of {BITS} bits below LATENT's mean of a 0 and a 1, {least:.3f}; a 0 alone LATENT "
            f"flips with {latent[0, 1]:.3f}, less than f-RR any bit"
            if rare == BITS
            else f"{below} of {BITS} bits below LATENT's mean; on a 0, {rare} above",
        )
    ]
    if epsilon > 0.1:  # at .1 the paper calls them similar
        first = _top(aware) - _top(means["OME"])
        found.append(
            Finding(
                f"the mean of the first k is below corrected OME's for every k, epsilon {epsilon:g}",
                bool((first < 0.0).all()),
                f"{-first.max():.3f} to {-first.min():.3f} below, at the paper's alpha of 1 for OME: a fair "
                "coin a bit",
            )
        )
    return found


@figure(
    "bitrand-4",
    source="BitRand, Fig. 4",
    title="Flip probability by bit, epsilon 1",
    claim="f-RR flips the sign and the integer bits less often than corrected LATENT and OME.",
)
def flips(run: FigureRun) -> FigureResult:
    return _by_bit((1.0,))


@figure(
    "bitrand-12",
    source="BitRand, Fig. 12",
    title="Flip probability by bit, three budgets",
    claim="The larger the budget, the further f-RR is below corrected LATENT and OME.",
)
def flips_by_budget(run: FigureRun) -> FigureResult:
    return _by_bit(BUDGETS)


def _positions(bits: int) -> dict[str, int]:
    """Return the bits that the paper draws, with m = floor(l/2) integer bits."""
    integer = bits // 2
    return {
        "sign bit": 0,
        "highest integer bit": 1,
        "lowest integer bit": integer,
        "highest fraction bit": min(integer + 1, bits - 1),
        "lowest fraction bit": bits - 1,
    }


def _by_size(
    panels: Sequence[tuple[str, Sequence[tuple[int, int, float]]]],
    axis: str,
    expected: Callable[[int, int, float, str], float | None],
    says: str,
) -> FigureResult:
    """Return q of the drawn bits over (r, l, epsilon), a panel for each list of them."""
    rows: list[dict[str, Any]] = []
    compared: list[Compared] = []
    for panel, points in panels:
        for features, bits, epsilon in points:
            law = frr_flips(features, bits, epsilon)
            for name, position in _positions(bits).items():
                row = {"panel": panel, "features": features, "bits": bits, "epsilon": epsilon}
                rows.append({**row, "bit": name, "q": float(law[position])})
                paper = expected(features, bits, epsilon, name)
                if paper is not None:
                    what = f"q of the {name}, r = {features}, l = {bits}"
                    of_record = exact(law, features)
                    ours = float(law[position])
                    compared.append(Compared(what, Formula(paper), ours, None, of_record, epsilon))

    def draw(canvas: Any) -> None:
        columns = 1 if len(panels) == 1 else 3
        down = -(-len(panels) // columns)
        canvas.set_size_inches(5.6 if columns == 1 else 9.0, 1.6 + 2.4 * down)
        grid = canvas.subplots(down, columns, sharey=True, squeeze=False).flat
        for axes, (panel, _) in zip(grid, panels, strict=True):
            of = [row for row in rows if row["panel"] == panel]
            shown = {
                name: tuple(zip(*((row[axis], row["q"]) for row in of if row["bit"] == name), strict=True))
                for name in _positions(BITS)
            }
            label = "features r" if axis == "features" else "bits l"
            lines(axes, shown, xscale="log", xlabel=label, ylabel="flip", title=panel)

    return FigureResult(rows, draw, compared, honest=_honest(), findings=_elastic(rows, axis, says))


#: How far a flip probability may move for the paper's "marginal": a tenth of a fair coin.
MARGINAL = 0.05


def _elastic(rows: Sequence[dict[str, Any]], axis: str, says: str) -> list[Finding]:
    """Return whether q stays along an axis, and what the exact epsilon does meanwhile."""
    from_on = 10 if axis == "features" else 20
    other = "bits" if axis == "features" else "features"
    moved: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row[axis] >= from_on:
            moved.setdefault((row["bit"], row[other], row["epsilon"]), []).append(row["q"])
    worst = max(moved, key=lambda key: max(moved[key]) - min(moved[key]))
    width = max(moved[worst]) - min(moved[worst])
    ends = [row for row in rows if row[axis] >= from_on]
    low, high = (ends[0], ends[0])
    for row in ends:
        if (row[other], row["epsilon"]) == (ends[0][other], ends[0]["epsilon"]):
            low, high = min(low, row, key=lambda r: r[axis]), max(high, row, key=lambda r: r[axis])
    costs = [
        exact(frr_flips(row["features"], row["bits"], row["epsilon"]), row["features"]) for row in (low, high)
    ]
    return [
        Finding(
            says,
            width <= MARGINAL,
            f"q moves by at most {width:.4f} ({worst[0]}, {other} {worst[1]:,}, epsilon {worst[2]:g})",
        ),
        Finding(
            f"the privacy budget is not affected either, {axis} {low[axis]:,} to {high[axis]:,}",
            costs[1] <= 1.1 * costs[0],
            f"its exact epsilon goes from {costs[0]:,.0f} to {costs[1]:,.0f} at a claimed {low['epsilon']:g}",
        ),
    ]


def _sign_of(features: int, bits: int, epsilon: float, name: str) -> float | None:
    return SIGNS.get((features, bits)) if epsilon == 1.0 and name == "sign bit" else None


_R_ELASTIC = "q does not depend on the number of features (r = 10 to 10,000)"
_L_ELASTIC = "from l = 20 on, q does not depend on the number of bits"


@figure(
    "bitrand-5",
    source="BitRand, Fig. 5",
    title="Flip probability against features, l = 10, epsilon 1",
    claim="q does not depend on the number of features.",
)
def flips_by_features(run: FigureRun) -> FigureResult:
    points = [(features, 10, 1.0) for features in (1, *SIZES)]
    return _by_size([("l = 10, epsilon 1", points)], "features", _sign_of, _R_ELASTIC)


@figure(
    "bitrand-13",
    source="BitRand, Fig. 13",
    title="Flip probability against features, four lengths, three budgets",
    claim="q does not depend on the number of features, at any length and budget.",
)
def flips_by_features_all(run: FigureRun) -> FigureResult:
    panels = [
        (f"l = {bits}, epsilon {epsilon:g}", [(features, bits, epsilon) for features in SIZES])
        for bits in (5, 20, 100, 1000)
        for epsilon in BUDGETS
    ]
    return _by_size(panels, "features", _sign_of, _R_ELASTIC)


def _by_length(features: int, bits: int, epsilon: float, name: str) -> float | None:
    if features == FEATURES and epsilon == 1.0 and name == "lowest fraction bit":
        return LOWEST.get(bits)
    return _sign_of(features, bits, epsilon, name)


@figure(
    "bitrand-6",
    source="BitRand, Fig. 6",
    title="Flip probability against bits, r = 1000, epsilon 1",
    claim="More bits lower q of the sign and integer bits; from l = 20 on q stays.",
)
def flips_by_length(run: FigureRun) -> FigureResult:
    points = [(FEATURES, bits, 1.0) for bits in LENGTHS]
    return _by_size([("r = 1000, epsilon 1", points)], "bits", _by_length, _L_ELASTIC)


@figure(
    "bitrand-14",
    source="BitRand, Fig. 14",
    title="Flip probability against bits, four sizes, three budgets",
    claim="From l = 20 on q stays, at any number of features and budget.",
)
def flips_by_length_all(run: FigureRun) -> FigureResult:
    panels = [
        (f"r = {features}, epsilon {epsilon:g}", [(features, bits, epsilon) for bits in LENGTHS])
        for features in SIZES
        for epsilon in BUDGETS
    ]
    return _by_size(panels, "bits", _by_length, _L_ELASTIC)


@figure(
    "bitrand-7",
    source="BitRand, Fig. 7",
    title="Probability of a wrong label, by classes",
    claim="From 100 classes on, q_Y hardly depends on the number of classes.",
)
def label_flips(run: FigureRun) -> FigureResult:
    rows: list[dict[str, Any]] = []
    compared = []
    for epsilon in (1.0, 2.5, 5.0, 10.0):
        for classes in CLASSES:
            mechanism = bitldp.LabelRR(classes, epsilon=epsilon)
            q = float(mechanism.probabilities()[0, 1])
            rows.append({"epsilon": epsilon, "classes": classes, "q": q, "right": 1.0 - (classes - 1) * q})
            if epsilon == 1.0 and classes in LABELS:
                exact_epsilon = mechanism.guarantee.record
                compared.append(
                    Compared(
                        *(f"q_Y, C = {classes}", Formula(LABELS[classes]), q, None),
                        *(exact_epsilon, epsilon),
                    )
                )

    def draw(canvas: Any) -> None:
        left, right = canvas.subplots(1, 2)
        canvas.set_size_inches(7.6, 4.0)
        for axes, key, label in (
            (left, "q", "q_Y, of each other class"),
            (right, "right", "the label stays"),
        ):
            shown = {
                f"epsilon_Y {epsilon:g}": (CLASSES, [row[key] for row in rows if row["epsilon"] == epsilon])
                for epsilon in (1.0, 2.5, 5.0, 10.0)
            }
            lines(axes, shown, xscale="log", yscale="log", xlabel="classes", ylabel=label)

    many = [row for row in rows if row["classes"] >= 100 and row["epsilon"] <= 2.5]
    width = max(row["q"] for row in many) - min(row["q"] for row in many)
    stays = {row["classes"]: row["right"] for row in rows if row["epsilon"] == 1.0}
    return FigureResult(
        rows,
        draw,
        compared,
        honest="label-RR is honest: its exact epsilon is the claimed one",
        findings=[
            Finding(
                "from 100 classes on, q_Y is hardly moved by their number",
                width <= MARGINAL,
                f"it moves by at most {width:.4f} up to an epsilon of 2.5",
            ),
            Finding(
                "this is also true for p_Y, the probability that the label stays",
                stays[100] - stays[2000] <= 0.1 * stays[100],
                f"at epsilon 1 the true label is reported with {stays[100]:.4f} of 100 classes and "
                f"{stays[2000]:.5f} of 2,000",
            ),
        ],
    )
