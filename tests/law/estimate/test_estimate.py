"""What an estimate shows of itself: intervals, text, tables."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from bitldp import Estimate


def made(value, stderr, **more):
    return Estimate(np.asarray(value, float), np.asarray(stderr, float), more.pop("n", 100), **more)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    """800 estimates of n = 2,000: coverage of the 95 % and the 50 % interval within 5 standard deviations."""
    mechanism, truth = bitldp.GRR(3, epsilon=1.0), np.repeat([0, 1, 1, 2], 500)
    shares = np.array([0.25, 0.5, 0.25])
    hits = {0.95: [], 0.5: []}
    rng = np.random.default_rng(1)
    for _ in range(800):
        # the records are a sample, too, as the standard error takes them to be
        estimate = mechanism.estimate_frequencies(mechanism.randomize(rng.choice(truth, 2000), rng=rng))
        for level, found in hits.items():
            low, high = estimate.confidence_interval(level)
            found.append((low <= shares) & (shares <= high))
    for level, found in hits.items():
        # of 2,400 answers, three of which are dependent: as if there were 800
        assert abs(np.mean(found) - level) < 5 * np.sqrt(level * (1 - level) / 800)


def test_an_interval_is_the_normal_law_s():
    low, high = made([1.0, -2.0], [0.5, 0.0]).confidence_interval()
    np.testing.assert_allclose(low, [1.0 - 1.959964 * 0.5, -2.0], rtol=1e-6)
    np.testing.assert_allclose(high, [1.0 + 1.959964 * 0.5, -2.0], rtol=1e-6)
    low, _ = made([1.0], [0.5]).confidence_interval(level=0.6826894921)
    assert low == pytest.approx(0.5)
    assert np.isnan(made([1.0], [np.nan]).confidence_interval()[0]).all()
    for bad in (0.0, 1.0, -0.1, 95, np.nan):
        with pytest.raises(ValueError, match=r"^level: "):
            made([1.0], [0.5]).confidence_interval(bad)
    with pytest.raises(TypeError, match=r"^level: "):
        made([1.0], [0.5]).confidence_interval("95%")


@pytest.mark.parametrize("kind", [bitldp.GRR, bitldp.OUE, bitldp.LabelLaplace, bitldp.Exponential])
def test_no_interval_around_what_was_projected(kind):
    mechanism = kind(4, epsilon=1.0)
    reports = mechanism.randomize(np.zeros(500, int), rng=1)
    plain, projected = (mechanism.estimate_frequencies(reports, project=flag) for flag in (False, True))
    assert not plain.projected
    assert projected.projected
    plain.confidence_interval()
    with pytest.raises(ValueError, match="estimate with project=False"):
        projected.confidence_interval()
    assert "projected to the simplex" in str(projected)
    assert "projected" not in str(plain)


def test_text():
    text = str(made([0.51234, -0.0017], [0.0123, 0.0123], labels=np.array(["Paris", "Rome"]), n=10_000))
    assert text.splitlines() == [
        "2 values of 10,000 reports, with standard errors",
        "  Paris   0.512 ± 0.012",
        "   Rome  -0.002 ± 0.012",
    ]
    assert str(made([[1.0, 2.0]], [[0.1, 0.1]])).splitlines()[2] == "  0, 1  2.00 ± 0.10"
    assert str(made([3.0], [np.nan], n=1)).splitlines() == [
        "1 value of 1 report, with standard errors",
        "  0  3 ± nan",
    ]
    assert "1.5e+06 ± 2.5e+05" in str(made([1.5e6], [2.5e5])) or "1500000 ± 250000" in str(
        made([1.5e6], [2.5e5])
    )
    assert "1.5e-12 ± 2.5e-13" in str(made([1.5e-12], [2.5e-13]))
    assert "0 ± 0" in str(made([0.0], [0.0]))
    long = str(made(np.zeros(5000), np.ones(5000)))
    assert len(long.splitlines()) == 22
    assert long.endswith("  and 4,980 more")
    assert str(made(np.zeros(0), np.zeros(0))).startswith("0 values")


def test_notebooks():
    shown = made([0.5, 0.25], [0.01, 0.01], labels=np.array(["<b>", "a&b"]))._repr_html_()
    assert "<th>&lt;b&gt;</th><td>0.500 ± 0.010</td>" in shown
    assert "a&amp;b" in shown
    assert "<b>" not in shown
    assert "and 10 more" in made(np.zeros(30), np.ones(30))._repr_html_()
