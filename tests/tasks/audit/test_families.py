"""Planted faults in the newer mechanisms are caught, and the same audits pass without the fault."""

from __future__ import annotations

import numpy as np
import pytest
from bitldp import EXP, PS, Duchi
from bitldp.audit import audit
from support import family_faults as faults

pytest.importorskip("scipy")

LOW, HIGH = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
ONE_SIGN = np.ones(4), np.array([-1.0, 1.0, 1.0, 1.0])  # a tie for one is none for the other
CAUGHT = {
    "EvenNoise": (faults.EvenNoise, (), {"epsilon": 1.1}, 20_000, None),
    "CoinFromData": (faults.CoinFromData, (), {"epsilon": 2.0}, 20_000, None),
    "TiesInBothHalves": (
        faults.TiesInBothHalves,
        (),
        {"epsilon": 0.5, "features": 4, "spend": "cube"},
        200_000,
        ONE_SIGN,
    ),
    "CapOneTooSmall": (faults.CapOneTooSmall, (6,), {"epsilon": 2.0}, 50_000, None),
    "NumbersApart": (faults.NumbersApart, (3,), {"epsilon": 2.0}, 20_000, None),
    "LastSignUnprotected": (faults.LastSignUnprotected, (6,), {"epsilon": 3.0, "k": 2}, 10_000, None),
    "LargestSampled": (
        faults.LargestSampled,
        (),
        {"epsilon": 1.0, "features": 4, "spend": "sample", "k": 1},
        10_000,
        (LOW, HIGH),
    ),
    "AttributeFromData": (
        faults.AttributeFromData,
        ((4, 4, 4),),
        {"epsilon": 2.0},
        5_000,
        (np.array([0, 0, 0]), np.array([0, 0, 3])),
    ),
    "WidestSize": (faults.WidestSize, ((2, 3, 8),), {"epsilon": 2.0, "oracle": "GRR"}, 20_000, None),
    "TrueClassOnly": (faults.TrueClassOnly, (4,), {"epsilon": 2.0}, 5_000, None),
    "ByteTable": (faults.ByteTable, (), {"epsilon": 8.0}, 50_000, None),
    "LastPointTrue": (faults.LastPointTrue, (), {"epsilon": 1.0, "bits": 2}, 5_000, None),
    "RankNotScaled": (faults.RankNotScaled, (5,), {"epsilon": 1.0}, 20_000, None),
    "LargestOfTop": (faults.LargestOfTop, (6,), {"k": 2, "epsilon": 1.0}, 20_000, None),
    "PaperPE": (faults.PaperPE, (4,), {"k": 1, "epsilon": 1.0}, 100_000, None),
    "RawValue": (faults.RawValue, (PS(4, k=1, epsilon=1.0), Duchi(epsilon=1.0)), {}, 5_000, None),
    "SignFlipsLess": (faults.SignFlipsLess, (1,), {"epsilon": 1.0}, 20_000, None),
    "CoefficientUnprotected": (faults.CoefficientUnprotected, (4,), {"epsilon": 1.0}, 10_000, None),
    "TopNeverOutside": (faults.TopNeverOutside, (), {"epsilon": 1.0, "cells": 40}, 5_000, None),
    "CellUnprotected": (faults.CellUnprotected, (), {"epsilon": 1.0, "bits": 40}, 20_000, None),
    "FunctionOfTheWord": (faults.FunctionOfTheWord, (), {"epsilon": 1.0, "bits": 40}, 5_000, None),
    "LevelOfTheValue": (faults.LevelOfTheValue, (60,), {"epsilon": 1.0}, 20_000, None),
    "StrongerAnswers": (faults.StrongerAnswers, (2,), {"epsilon": 1.0}, 20_000, None),
    "SteepPolytope": (faults.SteepPolytope, (50,), {"epsilon": 2.0}, 20_000, None),
    "SteepCodebook": (faults.SteepCodebook, (5,), {"epsilon": 2.0}, 20_000, None),
    "SteepCap": (faults.SteepCap, ((2, 4, 3),), {"epsilon": 3.0, "m": 2}, 20_000, None),
    "SteepMixedCap": (faults.SteepMixedCap, ((2, 3),), {"epsilon": 3.0, "features": 2}, 20_000, None),
    "SteepExponential": (faults.SteepExponential, (8,), {"epsilon": 2.0}, 20_000, None),
}


# Random bits that serve several symbols of a report: each symbol by itself has its law.
SHARED = {
    "Duchi": (faults.SharedDuchi, (), {"epsilon": 2.0, "features": 2}),
    "Piecewise": (faults.SharedPiecewise, (), {"epsilon": 4.0, "features": 3}),
    "LabelLaplace": (faults.SharedLabelLaplace, (4,), {"epsilon": 2.0}),
    "OUE": (faults.SharedOUE, (12,), {"epsilon": 1.0}),
    "OUE of two bits": (faults.TwoBitsShared, (20,), {"epsilon": 1.0}),
    "GRR": (faults.SharedGRR, (5,), {"epsilon": 2.0, "features": 3}),
    "FRR": (faults.SharedFRR, (3,), {"epsilon": 4.0}),
    "BitRand": (faults.SharedBitRand, (2,), {"categories": 3, "epsilon_x": 3.0, "epsilon_y": 1.0}),
    "BRR": (faults.SharedBRR, (21,), {"epsilon": 2.0, "features": 2, "interval": (-1.0, 1.0)}),
    "MVU": (faults.SharedMVU, (), {"epsilon": 2.0, "output_bits": 1, "features": 2}),
    "LaplaceBall": (faults.SharedLaplaceBall, (3,), {"epsilon": 2.0}),
    "TwoStage": (faults.SelectionByTheSign, (EXP(4, epsilon=1.0), Duchi(epsilon=1.0)), {}),
    "SampledSigns": (faults.SampledSignsShared, (6,), {"epsilon": 3.0, "k": 3}),
    "CategoricalRecord": (
        faults.AttributesShared,
        ((4, 4, 9),),
        {"epsilon": 3.0, "spend": "split", "oracle": "GRR"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_shared_random_bits_are_caught(name):
    """At n = 10,000; without the fault the same audit passes."""
    faulty, place, named = SHARED[name]
    for seed in (1, 2):
        result = audit(faulty(*place, **named), n=10_000, rng=seed)
        assert not result.passed, result
    right = next(each for each in faulty.__mro__ if each.__module__.startswith("bitldp"))
    assert audit(right(*place, **named), n=10_000, rng=1).passed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CAUGHT)
def test_faults_are_caught(name, seed):
    faulty, place, named, n, pair = CAUGHT[name]
    result = audit(faulty(*place, **named), n=n, rng=seed, pair=pair)
    assert not result.passed, result
    assert result.lower > result.exact


@pytest.mark.slow
@pytest.mark.parametrize("name", CAUGHT)
def test_the_same_without_the_fault_passes(name):
    faulty, place, named, n, pair = CAUGHT[name]
    right = faulty.__mro__[1]
    assert audit(right(*place, **named), n=n, rng=1, pair=pair).passed


@pytest.mark.parametrize(
    "mechanism",
    [
        faults.StaleDuchi(epsilon=1.0),
        faults.StaleSigns(6, epsilon=2.0),
        faults.StalePS(6, k=2, epsilon=1.0),
        faults.StaleMVU(epsilon=1.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_stale_keys_are_caught(mechanism):
    result = audit(mechanism, n=2_000)
    assert not result.passed
