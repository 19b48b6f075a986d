"""Statements of the documents that are numbers in words: each is computed here."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import bitldp
import numpy as np
import pytest
from bitldp.report.claims import claims

ROOT = Path(__file__).parents[2]
BUDGETS = np.geomspace(0.1, 12.0, 25)


def page(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_pm_sub_is_below_pm_at_every_epsilon() -> None:
    assert "below it at every ε, by less than 3 % up to 1 and by more than half from 8 on" in page(
        "docs/numeric.md"
    )
    assert "`PiecewiseSub` has less variance at every ε" in page("docs/numeric.md")
    for epsilon in [*BUDGETS.tolist(), 1.0, 8.0]:
        sub, pm = bitldp.PiecewiseSub(epsilon=epsilon), bitldp.Piecewise(epsilon=epsilon)
        for one, other in (
            (sub.mean_variance(), pm.mean_variance()),
            (sub.worst_variance(), pm.worst_variance()),
        ):
            assert one < other
            assert one > 0.97 * other or epsilon > 1.0
            assert one < 0.5 * other or epsilon < 8.0


def test_duchi_is_one_bit_and_hybrid_is_even() -> None:
    text = page("docs/numeric.md")
    assert "`Duchi`, one bit; its variance is the largest at 0 and 1 less at the ends" in text
    assert "in 8 bits to ε = 4 (above ε = 0.61; below that it is `Duchi`)" in text
    points = np.linspace(-1.0, 1.0, 41)
    for epsilon in BUDGETS[BUDGETS < 6.0].tolist():
        duchi, hybrid = bitldp.Duchi(epsilon=epsilon), bitldp.Hybrid(epsilon=epsilon)
        spread = duchi.variance(points)
        assert duchi.report_bits == 1
        assert spread.argmax() == 20
        assert spread[20] - spread[0] == pytest.approx(1.0, rel=1e-9)
        if epsilon < 0.61:
            assert hybrid.report_bits == 1
            assert hybrid.variance(points) == pytest.approx(spread)
        else:
            assert hybrid.report_bits == 8 or epsilon > 4.0
            assert np.ptp(hybrid.variance(points)) < 2e-3 * hybrid.worst_variance()


def test_no_other_number_moves_less_under_liars_than_duchi() -> None:
    said = "none of these is less sensitive to them than `Duchi` at any ε of this table"
    assert said in page("docs/numeric.md")
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        least = bitldp.Duchi(epsilon=epsilon).influence(0.01)
        kinds = ("Piecewise", "PiecewiseSub", "Hybrid", "ThreeOutputs", "MinimaxVariance", "Laplace")
        assert all(
            getattr(bitldp, kind)(epsilon=epsilon).influence(0.01) > least * (1 - 1e-9) for kind in kinds
        )


def test_sampling_wins() -> None:
    """The sentence on 768 numbers at epsilon 4."""
    assert "200,000 split against 361 sampled" in page("docs/numeric.md")
    split, sampled = (bitldp.Piecewise(epsilon=4.0, features=768, spend=each) for each in ("split", "sample"))  # type: ignore[arg-type]
    assert round(split.mean_variance(), -5) == 200_000.0
    assert round(sampled.mean_variance()) == 361


def test_which_papers_claim_what_is_not_so() -> None:
    """Three of the five by a mechanism's own epsilon; the others by a statement on a setting."""
    text = page("docs/papers.md")
    assert (
        "Three of the five claim an ε that a mechanism of theirs does not have (BitRand's f-RR, LDPFL's UER, "
        in text
    )
    assert (
        "FedSel's PE); settings of the other two exceed a stated ε, too (BRR within regions, MVU's " in text
    )
    failing = {each.source.split(",")[0] for each in claims() if not each.guarantee.holds}
    assert {"BitRand", "LDPFL", "FedSel"} <= failing
    assert not failing & {"BRR", "MVU"}
    false = dict(
        re.findall(r"\| ([^|]+) \| ([^|]+) \| NO \|", text)
    )  # of the tables that `docs/fill.py` checks
    assert false["Within regions the release is epsilon-LDP"].startswith("BRR")
    assert false["The l1 sensitivity of vectors of norm 1 is 1"].startswith("MVU")


@pytest.mark.parametrize(
    ("features", "exact", "places"),
    [
        (1000, 4311, {"docs/start.md": "4311.28", "docs/bits.md": "4311.28"}),
        (
            768,
            3311,
            {"README.md": "3,311 (BitRand, 768 features)", "docs/index.md": "3,311 (BitRand, 768 features)"},
        ),
        (384, 1655, {"docs/guides/auditing.md": "384 features, claimed 1, exact 1,655"}),
    ],
)
def test_the_epsilon_of_bitrand_is_of_so_many_features(
    features: int, exact: int, places: dict[str, str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        record = bitldp.FRR(features, epsilon=1.0, calibration="paper").guarantee.record
    assert round(record) == exact
    for place, words in places.items():
        assert words in page(place)


def test_every_3311_and_1655_says_of_how_many_features() -> None:
    """A page that names one of these numbers names its features, too."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        for number, features in (("3,311", "768"), ("1,655", "384"), ("4,311", "1,000")):
            if number in text:
                assert features in text, path


def test_hidden_results_of_the_attack_on_a_claim() -> None:
    """The setting of 64 features that the guide attacks, and the ceiling of the honest one."""
    text = page("docs/guides/claims.md")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        exact = bitldp.UER(64, epsilon=0.5, alpha=10.0, calibration="paper").guarantee.record
    assert f"│ {exact:.5g} │ 1.0000 │ 1.0000 │" in text
    assert f"the exact ε is {exact:,.0f}.)" in text
    # of 359 records, whoever guesses the source of a report
    assert f"│ {np.e / (np.e + 358):.4f} │" in text
    assert 'a share of .0075 ("at most")' in text


def test_the_wheel_of_make_is_the_one_that_is_promised() -> None:
    """Only the build of `make wheel` asks for an old C library."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    rule = rules[rules.index("dist/index.html: .venv/tools") :]
    assert re.search(r"maturin build .*--zig --compatibility manylinux2014 --out dist", rule)
    built = re.findall(r"maturin build [^\n]*", rules)
    assert any("manylinux2014" not in each for each in built)
    assert "`make wheel` builds a wheel for Linux on x86-64 with glibc 2.17" in page("docs/guides/install.md")
    assert "needs the C library of the machine that built it" in page("docs/guides/install.md")


def test_the_guide_to_lying_clients() -> None:
    text = page("docs/guides/liars.md")
    mechanism = bitldp.HeavyHitters(epsilon=2.0, bits=30)
    assert "moves by .087 at ε = 2 in 30 bits, by .023 with numbers" in text
    assert round(mechanism.influence(0.01), 3) == 0.087
    assert round(mechanism.influence(0.01, numbered=True), 3) == 0.023
    assert "raises each of 64 shares by .03" in text
    assert round(bitldp.OUE(64, epsilon=1.0).influence(0.01), 2) == 0.03
    assert bitldp.GRR(64, epsilon=0.5).influence(0.01) > 0.98


def test_the_front_page_counts_the_mechanisms_of_the_family_pages() -> None:
    families = ("bits", "categorical", "numeric", "ordered", "compression", "record", "selection")
    count = sum(
        len(re.findall(r"(?m)^### `", (ROOT / f"docs/{name}.md").read_text("utf-8"))) for name in families
    )
    assert f"distribution and variance of {count} mechanisms" in page("docs/index.md")
