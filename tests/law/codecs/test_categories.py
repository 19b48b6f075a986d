"""The dictionary of labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from bitldp import Categories


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "c"],
        [3, -1, 7],
        [2.5, 0.0, -1.0],
        np.array(["xx", "y"]),
        range(300),
        [False, True],
        [b"q", b"p"],
    ],
)
def test_round_trip(labels):
    table = Categories(labels)
    expected = np.array(list(labels))
    codes = table.encode(expected)
    np.testing.assert_array_equal(codes, np.arange(len(expected)))
    assert codes.dtype == np.min_scalar_type(len(expected) - 1)
    np.testing.assert_array_equal(table.decode(codes), expected)
    np.testing.assert_array_equal(table.labels, expected)
    assert len(table) == len(expected)
    assert table.encode(expected[::-1].reshape(1, -1)).shape == (1, len(expected))
    assert pickle.loads(pickle.dumps(table)) == table
    assert hash(table) == hash(Categories(labels))


def test_no_labels_to_encode():
    table = Categories(["a", "b"])
    assert table.encode([]).shape == (0,)
    assert table.decode(np.zeros(0, np.uint8)).shape == (0,)


def test_columns_of_objects():
    table = Categories(["a", "bb"])
    np.testing.assert_array_equal(table.encode(np.array(["bb", "a"], dtype=object)), [1, 0])


def test_unknown_labels_are_named_by_place_alone():
    table = Categories(["low", "high"])
    with pytest.raises(
        ValueError, match=r"x: the label at index \(1, 0\) is not one of the 2 labels"
    ) as caught:
        table.encode([["low"], ["secret"]])
    assert "secret" not in str(caught.value)
    assert "low" not in repr(table)
    with pytest.raises(ValueError, match="index"):
        Categories([1.0, 2.0]).encode([1.0, np.nan])


@pytest.mark.parametrize("bad", [[1, 2], [None, "low"], [1.5]])
def test_labels_of_another_kind(bad):
    with pytest.raises((TypeError, ValueError), match="x: "):
        Categories(["low", "high"]).encode(bad)
    with pytest.raises(TypeError, match="x: "):
        Categories([1, 2]).encode(["low"])


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        (["a"], ValueError),
        ([], ValueError),
        (["a", "a"], ValueError),
        ([1, 1], ValueError),
        ([-1, 2**63], ValueError),
        ([2**64, 1], ValueError),
        ([1, 1.0], TypeError),
        ([1, "1"], TypeError),
        ([True, 2], TypeError),
        (["a", b"a"], TypeError),
        (np.array(["a", 1], dtype=object), TypeError),
        ([[1, 2], [3, 4]], ValueError),
        ([1.0, np.nan], ValueError),
        ([1, None], TypeError),
        ([object(), object()], TypeError),
    ],
)
def test_bad_dictionaries(labels, error):
    with pytest.raises(error, match="labels"):
        Categories(labels)


def test_codes_are_checked():
    table = Categories(["a", "b"])
    for bad in ([2], [-1]):
        with pytest.raises(ValueError, match="codes"):
            table.decode(bad)
    with pytest.raises(TypeError, match="codes"):
        table.decode([0.5])


def test_labels_cannot_be_changed():
    labels = np.array([1, 2, 3])
    table = Categories(labels)
    labels[0] = 9
    assert table.labels[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        table.labels[0] = 9


@pytest.mark.parametrize(
    ("labels", "other"),
    [
        ([1, 2], [1.0]),
        ([1.0, 2.0], [1]),
        ([0, 1], [True]),
        (["a", "b"], [b"a"]),
        ([b"a", b"b"], ["a"]),
        (["1", "2"], ["1", 2]),
        (["1", "2"], np.array(["1", 2], dtype=object)),
    ],
)
def test_nothing_is_converted_from_one_type_to_another(labels, other):
    with pytest.raises(TypeError, match="x: must"):
        Categories(labels).encode(other)


def test_equal_labels_of_another_type_are_another_dictionary():
    assert Categories([1, 2]) != Categories([1.0, 2.0])
    assert Categories([0, 1]) != Categories([False, True])
    assert Categories(np.array([1, 2], np.uint8)) == Categories([1, 2])


def test_large_integers_keep_all_their_digits():
    large = 2**53
    table = Categories([large, large + 1, -large - 1])
    np.testing.assert_array_equal(table.encode([large + 1, large, -large - 1]), [1, 0, 2])
    with pytest.raises(ValueError, match=r"x: the label at index \(0,\) is not one of the 3 labels"):
        table.encode([large + 2])
    with pytest.raises(ValueError, match="index"):
        Categories([large, 1]).encode([large + 1])
    signed, unsigned = Categories([2**62, 2**62 + 1]), Categories([2**63, 2**63 + 1])
    np.testing.assert_array_equal(signed.encode(np.array([2**62 + 1], np.uint64)), [1])
    np.testing.assert_array_equal(unsigned.encode([2**63 + 1, 2**63]), [1, 0])
    for table, bad in (
        (signed, np.array([2**62, 2**63 + 2**62], np.uint64)),
        (unsigned, np.array([2**63 - 1, -1])),
    ):
        with pytest.raises(ValueError, match="the label at index"):
            table.encode(bad)
    assert Categories([2**63, 0]) != Categories([2**63 + 1, 0])
