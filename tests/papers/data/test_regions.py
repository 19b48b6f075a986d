"""Generated data of uneven weight, the majority class, and regions by common prefixes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bitldp_papers import data


def test_generated_features_are_of_uneven_weight() -> None:
    found = data.synthetic(400, 5000, shrunk=0.01, threshold=0.9, seed=7)
    assert found.train.shape == (4000, 400)
    assert found.test.shape == (1000, 400)
    assert found.train.dtype == np.float32
    spread = found.train.std(axis=0)
    heavy = spread > 0.5
    # Light with chance .9: of 400 weights, 40 +- 6 are heavy; 5 standard errors, alpha below 1e-6.
    assert 10 < heavy.sum() < 70
    assert np.all(spread[heavy] > 0.8)
    assert np.all(spread[~heavy] < 0.0095)
    # y is the side of a plane through the dense records: half of them.
    assert abs(found.train_labels.mean() - 0.5) < 0.05
    assert found.public_ranges
    again = data.synthetic(400, 5000, shrunk=0.01, threshold=0.9, seed=7)
    assert np.array_equal(found.train, again.train)
    other = data.synthetic(400, 5000, shrunk=0.01, threshold=0.9, seed=8)
    assert not np.array_equal(found.train, other.train)


def test_the_sets_of_fedsel_have_the_sizes_of_its_section() -> None:
    found = data.load("syn-L-0.01-0.9")
    assert (len(found.train) + len(found.test), found.train.shape[1]) == (60_000, 100)
    assert found.name == "syn-L-0.01-0.9"
    assert 0.45 < found.majority < 0.55
    with pytest.raises(ValueError, match="no data set 'syn-L-1-1'"):
        data.load("syn-L-1-1")


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"features": 0}, "features: must be"),
        ({"records": 4}, "records: must be"),
        ({"shrunk": 1.5}, "shrunk: must be in"),
        ({"threshold": float("nan")}, "threshold: must be"),
        ({"seed": -1}, "seed: must be"),
    ],
)
def test_parameters_of_generated_data_are_checked(given: dict[str, float], fragment: str) -> None:
    words = {"features": 3, "records": 10, "shrunk": 0.1, "threshold": 0.6, **given}
    with pytest.raises(ValueError, match=fragment):
        data.synthetic(**words)


def test_the_majority_class_is_that_of_the_training_part() -> None:
    pytest.importorskip("sklearn")
    found = data.load("breast_cancer")
    most = 1 if found.train_labels.mean() > 0.5 else 0
    assert found.majority == np.mean(found.test_labels == most) > 0.5


def test_regions_are_the_longest_shared_prefixes_and_nested_ones_are_one() -> None:
    codes = ["0000", "0001", "0010", "1100", "1101", "1111"]
    assert data.regions_by_prefix(codes, least=2).tolist() == ["00"] * 3 + ["11"] * 3
    assert data.regions_by_prefix(codes, least=1).tolist() == codes
    assert data.regions_by_prefix(codes, least=6).tolist() == [""] * 6
    # 000000 is shared by two; the third shares 0000 with them, so that all three are one region.
    assert data.regions_by_prefix(["000000", "000000", "000011"], least=2).tolist() == ["0000"] * 3
    with pytest.raises(ValueError, match="one even length"):
        data.regions_by_prefix(["000", "00"])
    with pytest.raises(ValueError, match="least: must be between"):
        data.regions_by_prefix(codes, least=7)


@pytest.mark.skipif("BITLDP_DATA" not in os.environ, reason="BITLDP_DATA does not name a folder of data sets")
def test_gowalla_has_fourteen_regions_of_7_to_235_places() -> None:
    if not (Path(os.environ["BITLDP_DATA"]) / "gowalla").is_dir():
        pytest.skip("gowalla is not in BITLDP_DATA")
    places = data.gowalla_places()
    assert repr(places) == "Places(1000)"
    sizes = sorted(Counter(data.regions_by_prefix(places.codes).tolist()).values())
    assert (len(sizes), sizes[0], sizes[-1]) == (14, 7, 235)
