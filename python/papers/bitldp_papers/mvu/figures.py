"""MVU, Figures 1 to 3, and two statements of its text: designs of a number, and means of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import bitldp
import numpy as np
from bitldp.compression import (
    CLDP,
    MVU,
    BallGaussian,
    BitwiseRR,
    GeneralizedRR,
    InterpolatedMVU,
    LaplaceBall,
    Skellam,
    VectorMVU,
)
from numpy.typing import NDArray

from bitldp_papers.figures import (
    Compared,
    FigureResult,
    FigureRun,
    Finding,
    figure,
)
from bitldp_papers.figures.drawing import lines, panels

ENDS = (-1.0, 1.0)
_LITTLE = 1.1  # norm up to which a unit vector has grown by a small amount
_FAR = 10.0  # an order of magnitude
_PLACES = 801  # inputs at which variances are compared


@figure(
    "mvu-1",
    source="MVU (UAI 2022), Fig. 1",
    title="MVU with 3 bits: the probability of each report, and its decoded value",
    claim="At epsilon 1 the rows are alike and the letters far out; at 10 P is near the identity, a_j near "
    "j/7.",
)
def designs(run: FigureRun) -> FigureResult:
    budgets = (1.0, 3.0, 5.0, 10.0)
    made = {epsilon: MVU(epsilon=epsilon, interval=(0.0, 1.0)) for epsilon in budgets}
    order = {epsilon: np.argsort(each.letters) for epsilon, each in made.items()}
    rows = [
        {
            "epsilon": epsilon,
            "input": row,
            "report": report,
            "probability": float(each.probabilities()[row, code]),
            "letter": float(each.letters[code]),
        }
        for epsilon, each in made.items()
        for row in range(8)
        for report, code in enumerate(order[epsilon])
    ]

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(9.0, 4.4)
        top, bottom = canvas.subplots(2, 4, height_ratios=(2, 1))
        for axes, under, (epsilon, each) in zip(top, bottom, made.items(), strict=True):
            axes.imshow(each.probabilities()[:, order[epsilon]], cmap="Blues", vmin=0.0, vmax=1.0)
            axes.set(title=f"epsilon {epsilon:g}", xlabel="report j", ylabel="input i")
            axes.grid(visible=False)
            under.stem(range(8), each.letters[order[epsilon]])
            under.set(xlabel="report j", ylabel="worth")

    ideal = np.arange(8) / 7.0
    last = np.sort(made[10.0].letters)
    apart = float(np.abs(last - ideal).max())
    true = float(np.diag(made[10.0].probabilities()[:, order[10.0]]).mean())
    compared = [
        *(
            Compared(
                f"largest letter, epsilon {epsilon:g}",
                None,
                float(each.letters.max()),
                None,
                each.guarantee.record,
                epsilon,
            )
            for epsilon, each in made.items()
        ),
        Compared("largest |a_j - j/7|, epsilon 10", None, apart),
        Compared("mean chance of the true report, epsilon 10", None, true),
    ]
    alike = float((made[1.0].probabilities().max(axis=0) / made[1.0].probabilities().min(axis=0)).max())
    letters = {epsilon: float(each.letters.max()) for epsilon, each in made.items()}
    return FigureResult(
        rows,
        draw,
        compared,
        honest="the exact epsilon is the claimed one",
        findings=[
            Finding(
                "at epsilon 1 letters are far out, and come in as epsilon grows",
                all(letters[a] > letters[b] for a, b in pairwise(budgets)),
                "largest letter " + ", ".join(f"{letters[e]:.3g} at {e:g}" for e in budgets),
            ),
            Finding(
                "at epsilon 10 the table is near the identity, a_j near j/7",
                true > 0.9 and apart < 0.1,
                f"a true report has chance {true:.3f} on average, letters are off by {apart:.3f} at most; "
                f"rows at epsilon 1 differ by a factor of {alike:.3g} at most",
            ),
        ],
        parameters={"input_bits": 3, "output_bits": 3},
    )


def _scalar(epsilon: float) -> dict[str, Any]:
    """Return the mechanisms of Figure 2, each of a number of [-1, 1]."""
    return {
        "MVU, 3 bits": MVU(epsilon=epsilon, interval=ENDS),
        "MVU, 1 bit": MVU(epsilon=epsilon, input_bits=1, output_bits=1, interval=ENDS),
        "CLDP": CLDP(1, epsilon=epsilon),
        "bitwise RR, 3 bits": BitwiseRR(epsilon=epsilon, bits=3, interval=ENDS),
        "generalized RR, 3 bits": GeneralizedRR(epsilon=epsilon, bits=3, interval=ENDS),
        "Laplace": bitldp.Laplace(epsilon=epsilon, interval=ENDS),
    }


def scalar_variances(epsilon: float, x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the variance of one report at each of `x`, by mechanism."""
    return {
        name: np.asarray(each.variance(x[:, None] if name == "CLDP" else x)).reshape(-1)
        for name, each in _scalar(epsilon).items()
    }


def lowest_share(variances: Mapping[str, NDArray[np.float64]]) -> float:
    """Return on how many inputs MVU with 3 bits has the least variance of all that compress."""
    others = [each for name, each in variances.items() if name not in ("MVU, 3 bits", "Laplace")]
    return float(np.mean(variances["MVU, 3 bits"] < np.min(others, axis=0)))


@figure(
    "mvu-2",
    source="MVU, Fig. 2",
    title="Variance of one number, by input",
    claim="With one bit MVU is CLDP; with 3 bits it has the least variance of all that compress, everywhere.",
)
def variances(run: FigureRun) -> FigureResult:
    budgets = (1.0, 3.0, 5.0)
    x = np.linspace(*ENDS, _PLACES)
    variances = {epsilon: scalar_variances(epsilon, x) for epsilon in budgets}
    rows = [
        {"epsilon": epsilon, "mechanism": name, "x": float(number), "variance": float(value)}
        for epsilon, each in variances.items()
        for name, values in each.items()
        for number, value in zip(x[::20], values[::20], strict=True)
    ]

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(9.0, 4.2)
        for axes, (epsilon, each) in zip(canvas.subplots(1, 3), variances.items(), strict=True):
            shown = {name: (x[::50], values[::50]) for name, values in each.items()}
            lines(axes, shown, yscale="log", xlabel="input", title=f"epsilon {epsilon:g}")
            axes.set_ylabel("variance")

    shares = {epsilon: lowest_share(each) for epsilon, each in variances.items()}
    apart = max(float(np.abs(each["MVU, 1 bit"] / each["CLDP"] - 1.0).max()) for each in variances.values())
    compared = [
        *(
            Compared(
                f"share of inputs on which MVU, 3 bits, is lowest, epsilon {epsilon:g}",
                None,
                share,
                None,
                epsilon,
                epsilon,
            )
            for epsilon, share in shares.items()
        ),
        Compared("largest relative gap between MVU, 1 bit, and CLDP", None, apart),
    ]
    near = {
        epsilon: float(np.mean(each["MVU, 3 bits"] <= each["Laplace"])) for epsilon, each in variances.items()
    }
    best = bitldp.recommend("mean", epsilon=3.0)
    return FigureResult(
        rows,
        draw,
        compared,
        honest=f"at epsilon 3 the recommended mechanism of one number is {type(best.mechanism).__name__}, "
        f"worst variance {best.mechanism.worst_variance():.3g}; MVU's, 3 bits: "
        f"{float(variances[3.0]['MVU, 3 bits'].max()):.3g}",
        findings=[
            Finding(
                "MVU with 3 bits has consistently the least variance of all that compress",
                all(share == 1.0 for share in shares.values()),
                "lowest on "
                + ", ".join(f"{share:.0%} of the inputs at epsilon {e:g}" for e, share in shares.items()),
            ),
            Finding("MVU with 1 bit is CLDP", apart < 1e-3, f"apart by at most {apart:.1e}"),
            Finding(
                "for larger epsilon it is comparable to Laplace or slightly below",
                near[5.0] > 0.0,
                ", ".join(f"below on {share:.0%} at {e:g}" for e, share in near.items()),
            ),
        ],
    )


_OWN = "settings of our own: the text that states this refers to Appendix B, and prints no number of it"


@figure(
    "mvu-b1",
    source="MVU, Section 3.4, on its Appendix B",
    title="Variance against the bits of a report",
    claim="As epsilon falls, more bits give less and less.",
    minutes=(0.2, 1.0),
)
def variance_by_bits(run: FigureRun) -> FigureResult:
    budgets, most = (0.5, 1.0, 3.0, 5.0), 3 if run.quick else 4
    rows: list[dict[str, Any]] = []
    for epsilon in run.each(budgets, "epsilon"):
        for bits in range(1, most + 1):
            made = MVU(epsilon=epsilon, input_bits=bits, output_bits=bits, interval=ENDS)
            rows.append(
                {
                    "epsilon": epsilon,
                    "bits": bits,
                    "variance": made.mean_variance(),
                    "worst": made.worst_variance(),
                }
            )

    def of(epsilon: float) -> list[float]:
        return [row["variance"] for row in rows if row["epsilon"] == epsilon]

    def draw(canvas: Any) -> None:
        shown = {f"epsilon {epsilon:g}": (range(1, most + 1), of(epsilon)) for epsilon in budgets}
        axes = canvas.subplots()
        lines(axes, shown, yscale="log", xlabel="bits in and out", ylabel="mean variance")
        axes.set_xticks(range(1, most + 1))

    gains = {epsilon: of(epsilon)[0] / of(epsilon)[2] for epsilon in budgets}
    compared = [
        Compared(
            f"variance with 1 bit over that with 3, epsilon {epsilon:g}", None, gain, None, epsilon, epsilon
        )
        for epsilon, gain in gains.items()
    ]
    return FigureResult(
        rows,
        draw,
        compared,
        stand_in=_OWN,
        findings=[
            Finding(
                "as epsilon falls, more bits give less",
                all(gains[a] < gains[b] for a, b in pairwise(budgets)),
                "3 bits in place of 1 divide the variance by "
                + ", ".join(f"{gain:.2f} at {epsilon:g}" for epsilon, gain in gains.items()),
            )
        ],
    )


@figure(
    "mvu-b2",
    source="MVU, Section 7, on its Appendix B",
    title="Growth of a vector's norm under dither",
    claim="The norm of a vector grows by a small additive amount when it is dithered.",
)
def norm_growth(run: FigureRun) -> FigureResult:
    sizes, depths = (16, 64, 128, 512, 2048), (3, 5, 7, 9)
    rows: list[dict[str, Any]] = []
    for seed in run.seeds:
        rng = np.random.default_rng(seed)
        for size in sizes:
            x = np.abs(rng.normal(size=(200, size)))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            for bits in depths:
                step = 2.0 / ((1 << bits) - 1)
                dithered = np.floor((x + 1.0) / step + rng.random(x.shape)) * step - 1.0
                rows.append(
                    {
                        "seed": seed,
                        "features": size,
                        "bits": bits,
                        "norm": float(np.linalg.norm(dithered, axis=1).mean()),
                    }
                )

    def of(bits: int, size: int) -> list[float]:
        return [row["norm"] for row in rows if (row["bits"], row["features"]) == (bits, size)]

    shown = {f"b_in {bits}": (sizes, [float(np.mean(of(bits, size))) for size in sizes]) for bits in depths}
    draw = panels({"": shown}, xscale="log", yscale="log", xlabel="coordinates d", ylabel="norm after dither")

    compared = [
        Compared(
            f"norm of a unit vector after dither, d = 128, b_in {bits}",
            None,
            float(np.mean(of(bits, 128))),
            float(np.std(of(bits, 128), ddof=1)),
        )
        for bits in depths
    ]
    return FigureResult(
        rows,
        draw,
        compared,
        stand_in=_OWN,
        findings=[
            Finding(
                "the growth of the norm is small",
                all(float(each.ours) < _LITTLE for each in compared),
                "d = 128: norm "
                + ", ".join(
                    f"{float(c.ours):.3g} with {b} bits" for b, c in zip(depths, compared, strict=True)
                )
                + "; an l2 guarantee must be accounted at it",
            )
        ],
        parameters={"vectors": 200},
    )


VECTORS, FEATURES = 10_000, 128
DELTA = 1.0 / (VECTORS + 1)
BUDGETS = (0.5, 1.0, 3.0, 5.0)

_WHOLE, _HALF = "Laplace, sensitivity 2", "Laplace, sensitivity 1 (paper)"

_Build = Callable[[float], Any]


def vectors(seed: int, norm: int) -> NDArray[np.float64]:
    """Return the paper's vectors: of [0, 1]^d over their l1 norm, or of the sphere's non-negative part."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(VECTORS, FEATURES)) if norm == 1 else np.abs(rng.normal(size=(VECTORS, FEATURES)))
    return np.asarray(x / np.linalg.norm(x, ord=norm, axis=1, keepdims=True))


def closed_error(mechanism: Any, x: NDArray[np.float64]) -> float:
    """Return the mean squared error of the estimated mean, exactly, from the law: variance over n."""
    error: float = float(np.mean(mechanism.variance(x[:400]))) / VECTORS
    return error


def _compared(
    run: FigureRun, norm: int, mechanisms: Mapping[str, _Build]
) -> tuple[list[dict[str, Any]], list[Compared], Callable[[Any], None]]:
    """Return rows, comparison and drawing: closed errors, and simulated ones over the seeds."""
    rows: list[dict[str, Any]] = []
    compared: list[Compared] = []
    steps = [(name, epsilon) for name in mechanisms for epsilon in BUDGETS]
    for name, epsilon in run.each(steps, ""):
        step = run.cached(f"{norm} {name} {epsilon}", partial(_step, run, norm, mechanisms[name], epsilon))
        rows.append({"mechanism": name, "epsilon": epsilon, **step})
        what = f"{name}, epsilon {epsilon:g}"
        compared.append(Compared(what, None, step["error"], step["spread"], step["exact"], epsilon))

    def draw(canvas: Any) -> None:
        canvas.set_size_inches(5.6, 4.8)
        shown = {
            name: (BUDGETS, [row["error"] for row in rows if row["mechanism"] == name]) for name in mechanisms
        }
        lines(
            canvas.subplots(), shown, yscale="log", xlabel="epsilon", ylabel="mean squared error of the mean"
        )

    return rows, compared, draw


def _step(run: FigureRun, norm: int, build: _Build, epsilon: float) -> dict[str, float]:
    """Return the error of a mechanism: closed, simulated with its spread, its bits, its exact epsilon."""
    mechanism, simulated = build(epsilon), []
    for seed in run.seeds:
        x = vectors(seed, norm)
        # Noise for neighbours that are nearer than the ball's diameter: that of a smaller ball, about 0.
        given = x if getattr(mechanism, "radius", 1.0) == 1.0 else np.zeros_like(x)
        estimate = mechanism.estimate_mean(mechanism.randomize(given, rng=seed)).value
        simulated.append(float(np.mean((estimate - given.mean(axis=0)) ** 2)))
    return {
        "error": closed_error(mechanism, vectors(run.seeds[0], norm)),
        "simulated": float(np.mean(simulated)),
        "spread": float(np.std(simulated, ddof=1)),
        "bits": mechanism.report_bits,
        "exact": mechanism.guarantee.record,
        "delta": mechanism.guarantee.delta,
    }


def _times(error: Mapping[tuple[str, float], float], of: str, against: str) -> str:
    """Return how many times as large an error is as another, by budget."""
    return ", ".join(f"{error[of, e] / error[against, e]:.3g} times at {e:g}" for e in BUDGETS)


@figure(
    "mvu-3-left",
    source="MVU, Fig. 3, left",
    title="Mean of 10,000 vectors of the l1 ball, d = 128",
    claim="MVU with 3 bits is close to Laplace; CLDP and Skellam are more than ten times worse.",
    minutes=(0.2, 0.3),
)
def l1(run: FigureRun) -> FigureResult:
    mechanisms: dict[str, _Build] = {
        _WHOLE: lambda e: LaplaceBall(FEATURES, epsilon=e),
        _HALF: lambda e: LaplaceBall(FEATURES, epsilon=2.0 * e),
        "MVU, 3 bits": lambda e: VectorMVU(FEATURES, epsilon=e, norm="l1"),
        "MVU, 1 bit": lambda e: VectorMVU(FEATURES, epsilon=e, norm="l1", output_bits=1),
        "CLDP": lambda e: CLDP(FEATURES, epsilon=e),
        "Skellam, of the l2 ball": lambda e: Skellam(FEATURES, epsilon=e, delta=DELTA),
        "CrossPolytope": lambda e: bitldp.CrossPolytope(FEATURES, epsilon=e),
    }
    rows, compared, draw = _compared(run, 1, mechanisms)
    error = {(row["mechanism"], row["epsilon"]): row["error"] for row in rows}
    return FigureResult(
        rows,
        draw,
        compared,
        honest=f"CrossPolytope at the same exact epsilon: {error['CrossPolytope', 1.0]:.3g} at 1, "
        f"{error['CrossPolytope', 5.0]:.3g} at 5",
        findings=[
            Finding(
                "MVU with 3 bits is close to Laplace as the paper calibrates it (sensitivity 1)",
                all(error["MVU, 3 bits", e] < 2.0 * error[_HALF, e] for e in BUDGETS),
                _times(error, "MVU, 3 bits", _HALF),
            ),
            Finding(
                "it is close to Laplace of the right sensitivity: two vectors of the l1 ball are 2 apart",
                all(error["MVU, 3 bits", e] < 2.0 * error[_WHOLE, e] for e in BUDGETS),
                _times(error, "MVU, 3 bits", _WHOLE),
            ),
            *(
                Finding(
                    f"{name} is more than ten times worse than Laplace ({how})",
                    all(error[of, e] > _FAR * error[against, e] for e in BUDGETS),
                    _times(error, of, against),
                )
                for name, of in (("CLDP", "CLDP"), ("Skellam", "Skellam, of the l2 ball"))
                for how, against in (("sensitivity 1", _HALF), ("sensitivity 2", _WHOLE))
            ),
        ],
        parameters={"vectors": VECTORS, "features": FEATURES},
    )


@figure(
    "mvu-3-right",
    source="MVU, Fig. 3, right",
    title="Mean of 10,000 vectors of the l2 ball, d = 128",
    claim="MVU in the l1 metric with 3 bits slightly outperforms CLDP and Skellam.",
    minutes=(0.3, 0.5),
)
def l2(run: FigureRun) -> FigureResult:
    common: dict[str, Any] = {"delta": DELTA}
    mechanisms: dict[str, _Build] = {
        "Gaussian, diameter 2": lambda e: BallGaussian(FEATURES, epsilon=e, **common),
        "Gaussian, orthant": lambda e: BallGaussian(FEATURES, epsilon=e, radius=math.sqrt(0.5), **common),
        "MVU, 3 bits": lambda e: VectorMVU(FEATURES, epsilon=e, **common),
        "MVU, 1 bit": lambda e: VectorMVU(FEATURES, epsilon=e, output_bits=1, **common),
        "InterpolatedMVU, 3 bits": lambda e: InterpolatedMVU(FEATURES, epsilon=e, output_bits=3, **common),
        "Skellam": lambda e: Skellam(FEATURES, epsilon=e, **common),
        "CLDP": lambda e: CLDP(FEATURES, epsilon=e, norm="l2"),
        "CrossPolytope": lambda e: bitldp.CrossPolytope(FEATURES, epsilon=e),
    }
    rows, compared, draw = _compared(run, 2, mechanisms)
    error = {(row["mechanism"], row["epsilon"]): row["error"] for row in rows}
    return FigureResult(
        rows,
        draw,
        compared,
        honest="CrossPolytope, without delta and in "
        f"{next(r['bits'] for r in rows if r['mechanism'] == 'CrossPolytope')} bits a "
        f"record: {error['CrossPolytope', 1.0]:.3g} at 1, {error['CrossPolytope', 5.0]:.3g} at 5, below "
        "every mechanism of the paper",
        findings=[
            *(
                Finding(
                    f"MVU with 3 bits slightly outperforms {name}",
                    all(error["MVU, 3 bits", e] < error[name, e] for e in BUDGETS),
                    _times(error, "MVU, 3 bits", name),
                )
                for name in ("Skellam", "CLDP")
            ),
            Finding(
                "it is close to the Gaussian mechanism, of diameter 2",
                all(error["MVU, 3 bits", e] < 2.0 * error["Gaussian, diameter 2", e] for e in BUDGETS),
                _times(error, "MVU, 3 bits", "Gaussian, diameter 2"),
            ),
            Finding(
                "and to that for the data's own orthant, where neighbours are sqrt(2) apart",
                all(error["MVU, 3 bits", e] < 2.0 * error["Gaussian, orthant", e] for e in BUDGETS),
                _times(error, "MVU, 3 bits", "Gaussian, orthant"),
            ),
        ],
        parameters={"vectors": VECTORS, "features": FEATURES, "delta": DELTA},
    )
