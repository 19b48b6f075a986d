"""What an estimate is to Python, NumPy and data frames."""

from __future__ import annotations

import numpy as np
import pytest
from bitldp import Estimate

DRINKS = np.array(["tea", "coffee", "milk"])
ESTIMATE = Estimate(np.array([0.5, 0.3, 0.2]), np.array([0.05, 0.03, 0.02]), 100, DRINKS)
TABLE = Estimate(np.arange(6.0).reshape(2, 3), np.ones((2, 3)), 9, DRINKS)
ONE = Estimate(np.array(0.25), np.array(0.5), 4)


def test_length_and_array() -> None:
    assert len(ESTIMATE) == 3
    assert len(TABLE) == 2
    with pytest.raises(TypeError):
        len(ONE)
    np.testing.assert_array_equal(np.asarray(ESTIMATE), ESTIMATE.value)
    assert np.array(ESTIMATE, dtype=np.float32).dtype == np.float32
    copied = np.array(ESTIMATE)
    copied[0] = 9.0
    assert ESTIMATE.value[0] == 0.5
    assert np.max(ESTIMATE) == 0.5  # type: ignore[call-overload]


def test_entries_by_number_and_by_label() -> None:
    one = ESTIMATE["coffee"]
    assert (float(one.value), float(one.stderr), one.n, one.labels) == (0.3, 0.03, 100, None)
    assert float(ESTIMATE[1].value) == 0.3
    some = ESTIMATE[1:]
    assert some.labels is not None
    assert some.labels.tolist() == ["coffee", "milk"]
    assert some.value.tolist() == [0.3, 0.2]
    masked = ESTIMATE[np.array([True, False, True])]
    assert masked.labels is not None
    assert masked.labels.tolist() == ["tea", "milk"]
    assert TABLE["milk"].value.tolist() == [2.0, 5.0]
    assert TABLE["milk"].labels is None
    row = TABLE[1]
    assert row.labels is not None
    assert row.labels.tolist() == DRINKS.tolist()
    assert row.value.tolist() == [3.0, 4.0, 5.0]
    assert float(TABLE[1, "tea"].value) == 3.0
    assert [float(each.value) for each in ESTIMATE] == [0.5, 0.3, 0.2]
    for wrong in ("wine", "3"):
        with pytest.raises(KeyError, match=wrong):
            ESTIMATE[wrong]
    with pytest.raises(IndexError):
        ESTIMATE[3]


def test_dictionaries() -> None:
    assert ESTIMATE.to_dict() == {"tea": 0.5, "coffee": 0.3, "milk": 0.2}
    assert ONE.to_dict() == {"value": 0.25}
    assert TABLE.to_dict()[1, "coffee"] == 4.0
    assert Estimate(np.ones(2), np.ones(2), 3).to_dict() == {0: 1.0, 1: 1.0}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames(backend: str) -> None:
    pytest.importorskip("narwhals", reason="the extra frames is not installed")
    library = pytest.importorskip(backend)
    frame = ESTIMATE.to_frame(backend)
    assert isinstance(frame, library.Table if backend == "pyarrow" else library.DataFrame)
    import narwhals

    plain = narwhals.from_native(frame).to_dict(as_series=False)
    assert plain == {"label": DRINKS.tolist(), "value": [0.5, 0.3, 0.2], "stderr": [0.05, 0.03, 0.02]}
    deep = narwhals.from_native(TABLE.to_frame(backend)).to_dict(as_series=False)
    assert deep["axis_0"] == [0, 0, 0, 1, 1, 1]
    assert deep["value"] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert narwhals.from_native(ONE.to_frame(backend)).shape == (1, 3)


def test_frames_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitldp.base import errors

    monkeypatch.setattr(errors, "missing", list)
    with pytest.raises(errors.MissingExtraError, match=r'narwhals: pip install "bitldp\[frames\]"'):
        ESTIMATE.to_frame()
