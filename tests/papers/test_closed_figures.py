"""The figures that are closed forms, against the papers' numbers to 1 %, and what is claimed of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp.bits import frr_flips
from bitldp_papers.bitrand import figures_errors, figures_flips, figures_means
from bitldp_papers.brr import figures_points
from bitldp_papers.figures import FigureResult, FigureRun
from bitldp_papers.mvu import figures as mvu_figures


def near(value: float) -> object:
    return pytest.approx(value, rel=0.01)


@pytest.fixture
def run(tmp_path: Path) -> FigureRun:
    return FigureRun(tmp_path, form="quick")


def ours(outcome: FigureResult, what: str) -> float:
    (found,) = (each.ours for each in outcome.compared if each.what == what)
    return float(found)


def test_bitrand_3(run: FigureRun) -> None:
    outcome = figures_errors.expected_error(run)
    assert [each.ours for each in outcome.compared] == [
        near(each) for each in (38.83, 29.58, 19.11, 3.272, 0.326)
    ]
    for epsilon in figures_errors.EPSILONS:
        errors = {row["mechanism"]: row["error"] for row in outcome.rows if row["epsilon"] == epsilon}
        itself = errors.pop("f-RR, E|error| itself")
        assert min(errors, key=errors.get) == "f-RR"
        assert itself < errors["f-RR"]  # a bound


def test_bitrand_flips(run: FigureRun) -> None:
    flips = (0.2939, 0.3151, 0.3371, 0.3598, 0.3831, 0.4070, 0.4313, 0.4560, 0.4809, 0.5059)
    assert frr_flips(1000, 10, 1.0).tolist() == [near(each) for each in flips]
    signs = {(1, 10): 0.3039, (10, 10): 0.2949, (10_000, 10): 0.2939}
    signs |= {(1000, 5): 0.3051, (1000, 20): 0.2887, (1000, 100): 0.2845, (1000, 1000): 0.2836}
    for (features, bits), q in signs.items():
        assert frr_flips(features, bits, 1.0)[0] == near(q)
    for bits, q in {5: 0.494, 10: 0.506, 20: 0.512}.items():
        assert frr_flips(1000, bits, 1.0)[-1] == near(q)
    latent = figures_flips.corrected_latent(1000, 10, 1.0).probabilities()[0]
    assert latent[:, 0] == near(0.125)
    assert latent[:, 1] == near(0.125)
    assert figures_flips.corrected_ome(1000, 10, 1.0).probabilities() == near(0.5)
    compared = figures_flips.flips(run).compared
    assert {each.kind for each in compared} == {"formula"}
    assert [each.ours for each in compared] == [near(each.stands) for each in compared]
    assert figures_flips.exact(frr_flips(768, 10, 1.0), 768) == near(3311.0)


def test_bitrand_7_and_9(run: FigureRun) -> None:
    labels = figures_flips.label_flips(run)
    # Printed to one or two digits: half a unit of the last, or 1 %.
    for each, expected in zip(labels.compared, (0.0098, 0.0010, 0.0005), strict=True):
        assert each.ours == near(expected)
    corrected = figures_means.corrected(run)
    assert ours(corrected, "LATENT, alpha 7, least") == near(4.571)
    assert ours(corrected, "LATENT, alpha 7, most") == near(4.573)
    assert ours(corrected, "OME, alpha 100, least") == near(4.6e5)
    assert ours(corrected, "OME, alpha 100, most") == near(4.6e9)
    assert ours(corrected, "OME, alpha 1") == near(2.0)


def test_bitrand_10(run: FigureRun) -> None:
    """RMSE of 768 means of 1000 records, 3 seeds, whose spread is about 4 %: 10 % are allowed."""
    outcome = figures_means.mean_error(run)
    uniform, with_a_mean = figures_means.DATA
    for what, expected in {
        "f-RR, epsilon 1": 0.020,
        "corrected OME, epsilon 1": 0.027,
        "corrected LATENT, epsilon 1": 0.095,
        "f-RR, epsilon 10": 0.0010,
        "say 0": 0.0182,  # 1/sqrt(3 n)
    }.items():
        assert ours(outcome, f"{uniform}: {what}") == pytest.approx(expected, rel=0.1)
    assert ours(outcome, f"{with_a_mean}: say 0") == pytest.approx(12**-0.5, rel=0.05)
    rest = [
        row["rmse"]
        for row in outcome.rows
        if row["epsilon"] == 1.0 and row["mechanism"] in ("Duchi", "PM", "HM")
    ]
    assert 46 < min(rest) < max(rest) < 60
    said = {each.says: each.word for each in outcome.findings}
    assert said[f"f-RR has the least error, {uniform}, epsilon 1"] == "a constant does better"
    assert said[f"f-RR has the least error, {with_a_mean}, epsilon 10"] == "holds"


def test_mvu_2() -> None:
    x = np.linspace(-1.0, 1.0, 801)
    for epsilon, expected in ((1.0, 0.83), (3.0, 0.93), (5.0, 0.0)):
        found = mvu_figures.scalar_variances(epsilon, x)
        assert mvu_figures.lowest_share(found) == pytest.approx(expected, abs=0.01)
        assert found["MVU, 1 bit"] == near(found["CLDP"])


def test_mvu_3_where_it_is_a_closed_form() -> None:
    from bitldp import compression

    x1, x2 = mvu_figures.vectors(1, 1), mvu_figures.vectors(1, 2)
    features, delta = mvu_figures.FEATURES, mvu_figures.DELTA
    for epsilon, two, one in (
        (0.5, 3.20e-3, 8.0e-4),
        (1.0, 8.0e-4, 2.0e-4),
        (3.0, 8.9e-5, 2.22e-5),
        (5.0, 3.2e-5, 8.0e-6),
    ):
        for scale, expected in ((1.0, two), (2.0, one)):
            made = compression.LaplaceBall(features, epsilon=scale * epsilon)
            assert mvu_figures.closed_error(made, x1) == near(expected)
    for epsilon, expected in ((0.5, 6.95e-3), (1.0, 2.03e-3), (3.0, 2.99e-4), (5.0, 1.27e-4)):
        made = compression.BallGaussian(features, epsilon=epsilon, delta=delta, radius=0.5**0.5)
        assert mvu_figures.closed_error(made, x2) == pytest.approx(expected, rel=0.012)
    for epsilon, one_bit in ((0.5, 1.69e-2), (1.0, 4.85e-3), (3.0, 6.94e-4), (5.0, 2.87e-4)):
        made = compression.VectorMVU(features, epsilon=epsilon, delta=delta, output_bits=1)
        assert mvu_figures.closed_error(made, x2) == near(one_bit)
    for epsilon, cldp in ((0.5, 1.67e-3), (1.0, 4.68e-4), (3.0, 1.22e-4), (5.0, 1.03e-4)):
        made = compression.CLDP(features, epsilon=epsilon)
        assert mvu_figures.closed_error(made, x1) == near(cldp)


def test_brr_points() -> None:
    for epsilon, expected in {1.0: (0.2466, 0.3310, 0.3115), 2.0: (0.1705, 0.3164, 0.2874)}.items():
        found = figures_points.quality_losses(100, epsilon)
        assert found[:3] == tuple(near(each) for each in expected)
        assert found[0] < found[3]  # the exponential mechanism that spends all of epsilon, too
    assert figures_points.jaccard_utilities(100, 1.0)[:3] == tuple(
        near(each) for each in (0.667, 0.617, 0.649)
    )


def test_brr_loses_no_more_than_grr_anywhere() -> None:
    for count in (2, 3, 5, 10, 37, 100, 400):
        for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0):
            brr, grr, *_ = figures_points.quality_losses(count, epsilon)
            assert brr <= grr * (1.0 + 1e-12)


def test_closed_forms_of_m() -> None:
    rows = figures_points.width_faults(range(5, 60), [0.25 * step for step in range(1, 17)])
    assert all(row["corrected"] == row["algorithm_2"] for row in rows)
    late = [row for row in rows if row["epsilon"] >= 1.0]
    wrong = sum(row["printed"] != row["algorithm_2"] for row in late)
    assert 0.2 < wrong / len(late) < 0.3


def test_the_limit_of_theorem_3(run: FigureRun) -> None:
    for epsilon in (0.5, 1.0, 2.0):
        assert figures_points._ratio(20_000, epsilon) == pytest.approx(
            figures_points.limit_ratio(epsilon), rel=1e-3
        )
        assert (
            abs(figures_points.printed_limit_ratio(epsilon) / figures_points.limit_ratio(epsilon) - 1.0)
            > 0.01
        )
