"""Tables and plots of `bitldp.report`."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp import report
from bitldp.report.claims import _SampledAmongFake


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.45454545, "0.4545"),
        (4311.28, "4311"),
        (34884.84, "34,885"),
        (1e12, "1.000e+12"),
        (1.8e-7, "1.800e-07"),
        (math.inf, "infinite"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert report.number(value) == text


def test_claims_agree_with_the_reference_cases(vectors: dict[int, dict[str, Any]]) -> None:
    rows = {(row.setting, row.source): row.guarantee for row in report.claims()}
    frr = rows["f-RR, 1000 features of 10 bits, paper", "BitRand, Theorem 2"]
    expected = vectors[3]["expected"]
    assert frr.record == pytest.approx(expected["record"], rel=1e-9)
    assert frr.feature == pytest.approx(expected["feature"], rel=1e-9)
    assert frr.bit == pytest.approx(expected["bit_max"], rel=1e-9)
    moue = rows["MOUE, 1024 features of 10 bits, alpha 10, paper", "LDPFL, Theorem 1"]
    assert moue.record == pytest.approx(0.45455, abs=1e-5)
    uer = rows["UER, 1024 features of 10 bits, alpha 10, paper", "LDPFL, Theorem 2"]
    assert uer.record == pytest.approx(34884.84, abs=0.01)
    far = rows["label-RR, 10 classes, beta = -5", "BitRand, Theorem 3"]
    assert far.record == pytest.approx(vectors[8]["expected"], abs=1e-12)
    pe = rows["PE, 2 dimensions, k 1, paper", "FedSel, Lemma 2"]
    assert pe.record == pytest.approx(vectors[17]["expected"]["exact_2_1_1"], abs=1e-9)
    half_cubes = rows["Duchi, 2 dimensions by half-cubes, paper", "Duchi et al. 2018"]
    assert half_cubes.record == pytest.approx(math.log(math.e + 1.0), abs=1e-12)
    failing = {setting for (setting, _), guarantee in rows.items() if not guarantee.holds}
    assert failing == {
        "f-RR, 1000 features of 10 bits, paper",
        "UER, 1024 features of 10 bits, alpha 10, paper",
        "label-RR, 10 classes, beta = -5",
        "L-SRR, 60 places in the plane, paper",
        "PE, 2 dimensions, k 1, paper",
        "Duchi, 2 dimensions by half-cubes, paper",
        "RS+FD, GRR, 2 attributes of 10 categories",
        "RS+FD, GRR, 10 attributes of 10 categories",
    }


def test_claims_as_markdown() -> None:
    lines = report.claims_markdown().splitlines()
    assert len(lines) == len(report.claims()) + 2
    assert {line.count("|") for line in lines} == {8}
    assert sum(line.endswith("| NO |") for line in lines) == 8


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3, 2), (2, 5)])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_sampling_among_fake_data_by_enumeration(sizes: tuple[int, ...], epsilon: float) -> None:
    """Every report of every two records: the whole law, written as Algorithm 1 of the paper is."""
    claim = _SampledAmongFake(sizes, epsilon)
    laws, every = claim.responses(), list(itertools.product(*map(range, sizes)))
    count = math.prod(sizes)

    def chance(record: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
        return sum(
            Fraction(1, len(sizes))
            * laws[drawn][report[drawn] != record[drawn]]
            * Fraction(sizes[drawn], count)  # the fake categories of the others are uniform
            for drawn in range(len(sizes))
        )

    table = {record: [chance(record, report) for report in every] for record in every}
    assert all(sum(law) == 1 for law in table.values())
    for one_alone, exact in ((True, claim.guarantee.feature), (False, claim.guarantee.record)):
        worst = max(
            max(map(Fraction.__truediv__, table[a], table[b]))
            for a, b in itertools.permutations(every, 2)
            if not one_alone or sum(map(int.__ne__, a, b)) == 1
        )
        truth = (Decimal(worst.numerator) / Decimal(worst.denominator)).ln(Context(prec=60))
        assert truth <= Decimal(exact) <= truth + Decimal("1e-14")
    expected = math.log1p(len(sizes) * math.expm1(epsilon))  # claimed epsilon, and nothing amplified
    assert claim.guarantee.record == pytest.approx(expected, abs=1e-12)
    if len(set(sizes)) == 1:
        assert claim.guarantee.feature == pytest.approx(epsilon, abs=1e-12)
    else:  # where sizes differ, the claim fails for a single attribute, too
        assert claim.guarantee.feature > epsilon


def test_sampling_among_fake_data_amplifies_nothing() -> None:
    exact = [_SampledAmongFake((10,) * d, 1.0).guarantee.record for d in (1, 2, 10)]
    assert exact == pytest.approx([1.0, 1.490, 2.900], abs=5e-4)


def test_verdicts_are_computed() -> None:
    """Each figure in a reason is one that was computed beforehand by other means (scratch programs, LPs)."""
    found = {each.source: each for each in report.verdicts()}
    assert [source for source, each in found.items() if each.holds] == ["L-SRR, Wang et al. 2022"]
    for source, words in {
        "BRR, Theorem 3": ("0.4954", "0.5068"),
        "BRR, Theorem 1.2": ("111 of 440",),
        "BRR, Section 5.3": ("infinite",),
        "MVU, Fig. 2": ("83%, 94%, 0%",),
        "MVU, Fig. 3": ("exactly 2",),
        "MVU, Section 4.1": ("3.745", "7.299"),
        "BitRand, Theorem 5": ("0.457", "0.0875"),
        "BitRand, Theorem 6": ("69,028",),
        "BitRand, Table 2": ("9 of 9",),
        "LDPFL, Section IV": ("0.9990", "4.51"),
    }.items():
        for word in words:
            assert word in found[source].reason
    pytest.importorskip("scipy", reason='needs pip install "bitldp[design]"')
    assert "1.207, 1.141, 1.088, 1.017" in found["BRR, Section 1"].reason


def test_verdicts_as_markdown() -> None:
    lines = report.verdicts_markdown().splitlines()
    assert len(lines) == len(report.verdicts()) + 2
    assert {line.count("|") for line in lines} == {5}


def test_total_is_rounded_up() -> None:
    parts = [bitldp.GRR(3, epsilon=epsilon).guarantee for epsilon in (0.1, 0.2, 0.3)]
    whole = report.total(parts)
    assert Fraction(whole.record) >= sum(Fraction(part.record) for part in parts)
    assert whole.record == pytest.approx(0.6, abs=1e-12)
    assert whole.claimed == pytest.approx(0.6, abs=1e-12)
    assert whole.holds
    assert whole.delta == 0.0


def test_total_of_claims_about_features() -> None:
    frr = bitldp.FRR(4, epsilon=2.0, unit="feature").guarantee
    whole = report.total([frr, bitldp.GRR(3, epsilon=1.0).guarantee])
    assert whole.claimed == pytest.approx(9.0)
    assert whole.record == pytest.approx(9.0)
    assert whole.holds
    assert report.total([bitldp.FRR(2, epsilon=8.0, unit="feature").guarantee], [2]).claimed == 16.0
    with pytest.raises(ValueError, match="shorter"):
        report.total([frr, frr], [4])


def test_total_with_infinity() -> None:
    endless = bitldp.Guarantee(1.0, math.inf, math.inf, math.inf, holds=False)
    whole = report.total([endless, bitldp.GRR(3, epsilon=1.0).guarantee])
    assert whole.record == math.inf
    assert not whole.holds


@pytest.mark.slow
def test_plot(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    path = tmp_path / "plot.png"
    points = [(1.0, 0.2), (100.0, 0.8), (math.inf, 0.9)]  # what has no exact epsilon has no place on the axis
    report.accuracy_plot(
        {"one": {"A": points, "B": points[:2]}, "two": {"B": points}},
        {"one": {"unperturbed": 0.9, "chance": 0.1}, "two": {"unperturbed": 0.95, "chance": 0.5}},
        path,
        title="A title",
    )
    pixels = image.imread(path)
    assert pixels.shape[1] > pixels.shape[0] > 400
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10
