"""Categories by their labels: what is given, released, decoded and estimated."""

from __future__ import annotations

import json
import pickle

import bitldp
import numpy as np
import pytest

CITIES = ["Paris", "Rome", "Oslo", "Bonn"]
_IDS = {bitldp.LabelRR: "classes", bitldp.LabelLaplace: "classes"}  # in fingerprints, as ever
MAKERS = {
    "GRR": bitldp.GRR,
    "LabelRR": bitldp.LabelRR,
    "OUE": bitldp.OUE,
    "SUE": bitldp.SUE,
    "LabelLaplace": bitldp.LabelLaplace,
}
TRUTH = np.random.default_rng(3).choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1])
NAMES = np.array(CITIES)[TRUTH]


class Categorical:
    """What a column of pandas or polars is to NumPy: an array of objects."""

    def __init__(self, codes):
        self.codes = codes

    def __array__(self, dtype=None, copy=None):
        return np.array(CITIES, object)[self.codes]


@pytest.mark.parametrize("kind", MAKERS.values(), ids=MAKERS)
def test_labels_in_labels_out(kind):
    """The law and the stream are those of the codes; only the names are new."""
    named, coded = kind(CITIES, epsilon=3.0), kind(4, epsilon=3.0)
    assert named.guarantee == coded.guarantee
    assert named.labels.tolist() == CITIES
    assert coded.labels is None
    expected = coded.randomize(TRUTH, rng=5)
    for same in (NAMES, NAMES.tolist(), NAMES.astype(object), Categorical(TRUTH)):
        np.testing.assert_array_equal(named.randomize(same, rng=5), expected)
    np.testing.assert_array_equal(named.randomize("Oslo", rng=5), coded.randomize(2, rng=5))
    found, plain = named.estimate_frequencies(expected), coded.estimate_frequencies(expected)
    np.testing.assert_array_equal(found.value, plain.value)
    assert found.labels.tolist() == CITIES
    assert plain.labels is None
    assert "Paris" in str(found)
    accumulator = named.accumulator()
    accumulator.update(expected)
    again = type(accumulator).from_json(accumulator.to_json(), named)
    assert again.estimate().labels.tolist() == CITIES
    assert named.estimate_frequencies(expected, project=True).labels.tolist() == CITIES


def test_reports_decode_to_labels():
    for kind in (bitldp.GRR, bitldp.LabelRR):
        mechanism = kind(CITIES, epsilon=6.0)
        codes = mechanism.randomize(NAMES, rng=1)
        assert codes.dtype == np.uint8
        assert mechanism.decode(codes).tolist() == np.array(CITIES)[codes].tolist()
    mechanism = bitldp.LabelLaplace(CITIES, epsilon=30.0)
    assert np.mean(mechanism.classify(mechanism.randomize(NAMES, rng=1)) == NAMES) > 0.9
    mechanism = bitldp.GRR([1, 5, 9], epsilon=6.0)  # integers as labels are labels, too
    assert set(mechanism.decode(mechanism.randomize([9, 9, 1, 5], rng=1)).tolist()) <= {1, 5, 9}
    with pytest.raises(ValueError, match=r"x: the label at index \(1,\)"):
        mechanism.randomize(np.array([9, 2]))


def test_several_features():
    mechanism = bitldp.GRR(CITIES, epsilon=20.0, features=2)
    x = np.stack([NAMES, np.full(len(NAMES), "Oslo")], axis=1)
    estimate = mechanism.estimate_frequencies(mechanism.randomize(x, rng=1))
    assert estimate.value.shape == (2, 4)
    assert "1, Oslo" in str(estimate)


def test_labels_beside_features():
    both = bitldp.BitRand(3, categories=CITIES, epsilon_x=9.0, epsilon_y=2.0)
    plain = bitldp.BitRand(3, categories=4, epsilon_x=9.0, epsilon_y=2.0)
    x = np.zeros((len(NAMES), 3))
    reports, expected = both.randomize(x, NAMES, rng=1), plain.randomize(x, TRUTH, rng=1)
    np.testing.assert_array_equal(reports[1], expected[1])
    assert both.decode(reports)[1].tolist() == np.array(CITIES)[reports[1]].tolist()
    assert both.estimate_frequencies(reports[1]).labels.tolist() == CITIES
    accumulator = both.accumulator()
    accumulator.update(*reports)
    assert accumulator.estimate()[1].labels.tolist() == CITIES
    with pytest.raises(ValueError, match=r"^y: the label at index \(0,\)"):
        both.randomize(x[:1], ["Secretville"])
    assert both.extremes().inputs[1][1] == 3


@pytest.mark.parametrize("kind", MAKERS.values(), ids=MAKERS)
def test_what_is_saved(kind):
    """Pickles hold the labels, fingerprints a digest of them; without labels both are as they were."""
    named = kind(CITIES, epsilon=1.0)
    again = pickle.loads(pickle.dumps(named))
    assert again == named
    assert hash(again) == hash(named)
    assert again.labels.tolist() == CITIES
    assert named == kind(bitldp.Categories(CITIES), epsilon=1.0)
    assert named != kind(CITIES[::-1], epsilon=1.0)
    assert named != kind(4, epsilon=1.0)
    assert json.dumps(named.fingerprint()) != json.dumps(kind(CITIES[::-1], epsilon=1.0).fingerprint())
    assert kind(4, epsilon=1.0).fingerprint()["parameters"][_IDS.get(kind, "categories")] == 4
    assert repr(named).startswith(f"{kind.__name__}(categories=Categories(4 labels), epsilon=1.0")


def test_dictionary_arrays_of_arrow():
    pa = pytest.importorskip("pyarrow", reason='needs pip install "bitldp[cli]"')
    mechanism = bitldp.GRR(CITIES, epsilon=3.0)
    expected = mechanism.randomize(NAMES, rng=2)
    column = pa.array(NAMES.tolist()).dictionary_encode()
    for same in (column, pa.chunked_array([column, column.slice(0, 0)]), pa.array(NAMES.tolist())):
        np.testing.assert_array_equal(mechanism.randomize(same, rng=2), expected)
    with pytest.raises(TypeError, match=r"^x: must be all of one type"):
        mechanism.randomize(pa.array(["Paris", None]))


@pytest.mark.parametrize("kind", MAKERS.values(), ids=MAKERS)
def test_refusals(kind):
    mechanism = kind(CITIES, epsilon=1.0)
    for bad, error, message in (
        (["Paris", "Secretville"], ValueError, r"^x: the label at index \(1,\) is not one of the 4 labels"),
        ("Secretville", ValueError, r"^x: the label"),
        ([0, 1], TypeError, "^x: must hold str labels, not int"),
        ([b"Paris"], TypeError, "^x: must hold str labels, not bytes"),
        (["Paris", None], TypeError, "^x: must be all of one type"),
        (["Paris", float("nan")], TypeError, "^x: must be all of one type"),
        (np.ma.masked_array(["Paris", "Rome"], [True, False]), TypeError, "masked"),
    ):
        with pytest.raises(error, match=message) as caught:
            mechanism.randomize(bad)
        assert "Secretville" not in str(caught.value)
    for bad, error, message in (
        ("Paris", TypeError, "must be an integer, not str"),
        (["Paris"], ValueError, "at least 2 are needed, got 1"),
        (["Paris", "Paris"], ValueError, "must be distinct"),
        (["Paris", 1], TypeError, "must be all of one type"),
        ({"Paris", "Rome"}, TypeError, "must be a sequence"),
        (2.5, TypeError, "must be an integer, not float"),
        (None, TypeError, "must be an integer, not NoneType"),
        (1, ValueError, "must be at least 2"),
    ):
        with pytest.raises(error, match=f"^categories: {message}"):
            kind(bad, epsilon=1.0)


def test_labels_without_names_show_the_way():
    for mechanism in (bitldp.GRR(4, epsilon=1.0), bitldp.OUE(4, epsilon=1.0), bitldp.LabelRR(4, epsilon=1.0)):
        for labels in (["Paris", "Rome"], NAMES, Categorical(TRUTH), "Paris"):
            with pytest.raises(
                TypeError, match=r'\(\["red", "green"\], epsilon=...\), or encode .* bitldp.Categories'
            ):
                mechanism.randomize(labels)
    with pytest.raises(TypeError, match=r'take bitldp.GRR\(\["no", "yes"\], epsilon=...\)'):
        bitldp.WarnerRR(epsilon=1.0).randomize(["yes", "no"])


# -- records


GIVEN = [3, CITIES, [10, 20]]  # counts and labels, of integers too, side by side
RECORDS = [[2, "Oslo", 20], [0, "Paris", 10], [1, "Rome", 20]] * 20
CODES = np.array([[2, 2, 1], [0, 0, 0], [1, 1, 1]] * 20)


@pytest.mark.parametrize("spend", ["sample", "split"])
@pytest.mark.parametrize("oracle", ["GRR", "OUE"])
def test_labels_of_a_record(spend, oracle):
    """The law and the stream are those of the codes."""
    named = bitldp.CategoricalRecord(GIVEN, epsilon=9.0, spend=spend, oracle=oracle)
    coded = bitldp.CategoricalRecord([3, 4, 2], epsilon=9.0, spend=spend, oracle=oracle)
    assert named.guarantee == coded.guarantee
    reports = coded.randomize(CODES, rng=5)
    for same in (RECORDS, np.array(RECORDS, object), [tuple(each) for each in RECORDS]):
        for mine, expected in zip(named.randomize(same, rng=5), reports, strict=True):
            np.testing.assert_array_equal(mine, expected)
    keyed = {"key": b"k" * 32, "ids": np.arange(60)}
    for mine, expected in zip(
        named.randomize_keyed(RECORDS, **keyed), coded.randomize_keyed(CODES, **keyed), strict=True
    ):
        np.testing.assert_array_equal(mine, expected)
    plain, estimates = coded.estimate_frequencies(reports), named.estimate_frequencies(reports)
    for mine, expected in zip(estimates, plain, strict=True):
        np.testing.assert_array_equal(mine.value, expected.value)
    assert [None if each.labels is None else each.labels.tolist() for each in estimates] == [None, *GIVEN[1:]]
    for mine, expected, own in zip(named.decode(reports), coded.decode(reports), GIVEN, strict=True):
        labels = np.array(own)[expected.reports] if own != 3 and oracle == "GRR" else expected.reports
        np.testing.assert_array_equal(mine.reports, labels)
    np.testing.assert_array_equal(named.variance(RECORDS[0])[1], coded.variance(CODES[0])[1])
    first, last = named.extremes().inputs[:2]
    assert [first.tolist(), last.tolist()] == [[0, "Paris", 10], [2, "Bonn", 20]]


def test_labels_beside_numbers():
    named = bitldp.MixedRecord(GIVEN, features=1, epsilon=9.0, oracle="GRR")
    coded = bitldp.MixedRecord([3, 4, 2], features=1, epsilon=9.0, oracle="GRR")
    x = np.zeros((60, 1))
    reports = coded.randomize(x, CODES, rng=5)
    for mine, expected in zip(named.randomize(x, RECORDS, rng=5), reports, strict=True):
        np.testing.assert_array_equal(mine, expected)
    assert [each.labels is None for each in named.estimate_frequencies(reports)] == [True, False, False]
    numbers, _, cities, _ = named.decode(reports)
    assert numbers.reports.dtype == np.float64
    assert set(cities.reports.tolist()) <= set(CITIES)
    assert named.extremes().inputs[1][1].tolist() == [2, "Bonn", 20]


def test_what_is_saved_of_a_record():
    named, coded = (bitldp.CategoricalRecord(each, epsilon=1.0) for each in (GIVEN, [3, 4, 2]))
    again = pickle.loads(pickle.dumps(named))
    assert again == named
    assert hash(again) == hash(named)
    assert named != coded
    assert named != bitldp.CategoricalRecord([3, CITIES[::-1], [10, 20]], epsilon=1.0)
    assert coded.fingerprint()["parameters"]["sizes"] == [3, 4, 2]
    count, cities, _ = json.loads(json.dumps(named.fingerprint()))["parameters"]["sizes"]
    assert count == 3
    assert cities["labels"] == 4
    assert repr(named).startswith(
        "CategoricalRecord(attributes=(3, Categories(4 labels), Categories(2 labels))"
    )


def test_refusals_of_a_record():
    mechanism = bitldp.CategoricalRecord([3, CITIES], epsilon=1.0)
    for bad, error, message in (
        ([[0, "Paris"], [0, "Secretville"]], ValueError, r"^x\[:, 1\]: the label at index \(1,\) is not one"),
        ([[3, "Paris"]], ValueError, r"^x\[:, 0\]: the integer at index \(0,\) is outside \[0, 3\)"),
        ([["Secretville", "Paris"]], TypeError, r"^x\[:, 0\]: must be an array of integers"),
        ([[0, 1]], TypeError, r"^x\[:, 1\]: must hold str labels, not int"),
        ([[0, ["Secretville"]]], ValueError, r"^x"),
        ([[0, "Paris", 1]], ValueError, r"^x: shape must be \(n, 2\)"),
        (np.ma.masked_array([[0, 1]], [[True, False]]), TypeError, "masked"),
    ):
        with pytest.raises(error, match=message) as caught:
            mechanism.randomize(bad)
        assert "Secretville" not in str(caught.value)
    for bad, error, message in (
        (3, TypeError, "attributes: must be a sequence of numbers"),
        (bitldp.Categories(CITIES), TypeError, "attributes: must be a sequence of numbers"),
        (["Paris", "Rome"], TypeError, r"attributes\[0\]: must be an integer, not str"),
        ([3, ["Paris"]], ValueError, r"attributes\[1\]: at least 2 are needed"),
        ([], ValueError, "attributes: must be of 1 to"),
    ):
        with pytest.raises(error, match=f"^{message}"):
            bitldp.CategoricalRecord(bad, epsilon=1.0)
