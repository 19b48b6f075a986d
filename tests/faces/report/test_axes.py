"""Plots on axes: what is drawn is what the mechanisms and estimates say."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from bitldp import report

pytest.importorskip("matplotlib", reason='needs pip install "bitldp[plot]"')

from matplotlib.figure import Figure


def test_variance_is_drawn_at_the_exact_epsilon() -> None:
    ax = Figure().subplots()
    found = report.plot_variance({"Duchi": bitldp.Duchi, "PM": bitldp.Piecewise}, [0.5, 1.0, 2.0], ax=ax)
    assert found is ax
    duchi, _ = ax.get_lines()
    made = [bitldp.Duchi(epsilon=e) for e in (0.5, 1.0, 2.0)]
    np.testing.assert_array_equal(duchi.get_xdata(), [each.guarantee.record for each in made])
    np.testing.assert_array_equal(duchi.get_ydata(), [each.mean_variance() for each in made])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Duchi", "PM"]
    assert ax.get_xscale() == "log"


def test_claims_are_drawn_side_by_side() -> None:
    ax = Figure().subplots()
    report.plot_claims(ax=ax)
    rows = report.claims()
    claimed, exact = ax.get_lines()
    np.testing.assert_array_equal(claimed.get_xdata(), [each.guarantee.claimed for each in rows])
    np.testing.assert_array_equal(exact.get_xdata(), [each.guarantee.record for each in rows])
    assert [label.get_text() for label in ax.get_yticklabels()] == [each.setting for each in rows]


def test_an_estimate_is_drawn_with_its_intervals() -> None:
    survey = bitldp.GRR(["tea", "coffee", "water"], epsilon=1.0)
    shares = survey.estimate_frequencies(survey.randomize(["tea", "water"] * 500, rng=1))
    ax = Figure().subplots()
    report.plot_estimate(shares, level=0.9, ax=ax)
    low, high = shares.confidence_interval(0.9)
    (drawn,) = ax.containers
    segments = np.array(drawn.lines[2][0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], low)
    np.testing.assert_allclose(segments[:, 1, 1], high)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["tea", "coffee", "water"]


def test_an_estimate_of_two_axes_is_refused() -> None:
    many = bitldp.Estimate(np.zeros((2, 2)), np.ones((2, 2)), 10)
    with pytest.raises(ValueError, match=r"^estimate: must have one axis, not 2"):
        report.plot_estimate(many)


def test_an_audit_is_a_table_in_notebooks() -> None:
    text = bitldp.audit.audit(bitldp.GRR(3, epsilon=1.0), n=2_000, rng=1)._repr_html_()
    assert text.startswith("<table>")
    assert "passes" in text
    assert "claimed" in text
