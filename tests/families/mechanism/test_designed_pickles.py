"""A pickle of a designed mechanism holds its table: another solver at the other end changes nothing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from bitldp import MVU, MetricMVU, MinimaxVariance, OptimalUtility
from bitldp.compression import VectorMVU, mvu
from bitldp.compression.ball import vector_mvu
from bitldp.design import mvu as design

pytest.importorskip("scipy")


def plain(mechanism):
    channel = getattr(mechanism, "channel", None) or mechanism.channels[0]
    return channel.weights()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "modules"),
    [
        (lambda: MVU(epsilon=2.0, features=3), [mvu]),
        (lambda: MVU(epsilon=1.7, input_bits=2, output_bits=2, interval=(-1.0, 1.0)), [mvu]),
        (lambda: MetricMVU(epsilon=2.0, input_bits=2, output_bits=2, features=2), [mvu]),
        (lambda: VectorMVU(4, epsilon=3.0, norm="l1", input_bits=2, output_bits=2), [vector_mvu]),
    ],
    ids=["shipped", "solved", "metric", "vector"],
)
def test_no_design_is_looked_for(make, modules, monkeypatch):
    mechanism = make()
    text = pickle.dumps(mechanism)
    for module in modules:  # as if another version of the solver were installed
        monkeypatch.setattr(module, "load_or_solve", None)
        if hasattr(module, "_solved"):
            module._solved.cache_clear()
    again = pickle.loads(text)
    assert again == mechanism
    assert again.guarantee == mechanism.guarantee
    assert again.fingerprint() == mechanism.fingerprint()
    assert plain(again) == plain(mechanism)
    np.testing.assert_array_equal(again.letters, mechanism.letters)
    assert pickle.loads(pickle.dumps(again)).fingerprint() == mechanism.fingerprint()


@pytest.mark.slow
def test_the_vector_of_a_delta_keeps_the_last_table(monkeypatch):
    pytest.importorskip("dp_accounting")
    mechanism = VectorMVU(4, epsilon=3.0, delta=1e-5, input_bits=2, output_bits=2)
    text = pickle.dumps(mechanism)
    monkeypatch.setattr(vector_mvu, "load_or_solve", None)
    again = pickle.loads(text)
    assert again.guarantee == mechanism.guarantee
    assert plain(again) == plain(mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [
        MVU(epsilon=2.0),
        MetricMVU(epsilon=2.0, input_bits=2, output_bits=2),
        MinimaxVariance(epsilon=2.0, grid_points=4),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_table_of_other_parameters_is_refused(mechanism):
    rebuild, (kind, parameters, tables) = mechanism.__reduce__()
    assert rebuild(kind, parameters, tables) == mechanism
    with pytest.raises(ValueError, match="stored table"):
        rebuild(kind, {**parameters, "epsilon": parameters["epsilon"] / 2.0}, tables)


def test_reports_of_different_tables_are_not_added_up():
    """The same parameters, but a table of another solver: the fingerprints differ."""
    mechanism = MVU(epsilon=2.0)
    rebuild, (kind, parameters, tables) = mechanism.__reduce__()
    weights, letters = tables[0]
    moved = [letters[0] - 1e-12, *letters[1:]]
    assert rebuild(kind, parameters, [(weights, moved)]).fingerprint() != mechanism.fingerprint()


def test_the_solver_is_the_one_that_is_replaced_above():
    assert mvu.load_or_solve is design.load_or_solve
    assert OptimalUtility(4, epsilon=1.0).fingerprint()["design"]
