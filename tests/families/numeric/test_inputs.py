"""Bad parameters, inputs and reports of the numeric mechanisms are refused by name and place."""

from __future__ import annotations

import numpy as np
import pytest
from bitldp.numeric import Duchi, Hybrid, LDPFLDuchi, Piecewise, PiecewiseSub, ThreeOutputs

KINDS = [Duchi, Piecewise, PiecewiseSub, Hybrid, ThreeOutputs]
SECRET = 0.734375


def refused(error, match, call, *arguments, **options):
    """Assert that a call is refused, without a private value in the message; return the message."""
    with pytest.raises(error, match=match) as caught:
        call(*arguments, **options)
    assert "0.73" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "name", "options"),
    [
        (ValueError, "epsilon", {"epsilon": -1.0}),
        (ValueError, "epsilon", {"epsilon": np.nan}),
        (ValueError, "epsilon", {"epsilon": np.inf}),
        (TypeError, "epsilon", {"epsilon": "1"}),
        (TypeError, "epsilon", {"epsilon": True}),
        (TypeError, "epsilon", {"epsilon": None}),
        (ValueError, "features", {"features": 0}),
        (ValueError, "features", {"features": 1 << 32}),
        (TypeError, "features", {"features": 1.5}),
        (TypeError, "features", {"features": True}),
        (ValueError, "interval", {"interval": (1.0, -1.0)}),
        (ValueError, "interval", {"interval": (1.0, 1.0)}),
        (ValueError, "interval", {"interval": (np.nan, 1.0)}),
        (ValueError, "interval", {"interval": (0.0, np.inf)}),
        (ValueError, "interval", {"interval": (-1.7e308, 1.7e308)}),
        (ValueError, "interval", {"interval": (0.0, 1e-200)}),
        (ValueError, "interval", {"interval": (0.0, 1.0, 2.0)}),
        (ValueError, "interval", {"interval": 1.0}),
        (TypeError, "interval", {"interval": ("0", "1")}),
        (ValueError, "spend", {"spend": "all"}),
        (ValueError, "spend", {"spend": None}),
        (ValueError, "k", {"k": 1}),
        (ValueError, "k", {"spend": "sample", "k": 4}),
        (ValueError, "k", {"spend": "sample", "k": 0}),
        (TypeError, "k", {"spend": "sample", "k": 1.0}),
        (TypeError, "k", {"spend": "sample", "k": True}),
        (ValueError, "k", {"spend": "sample", "unit": "feature"}),
        (ValueError, "unit", {"unit": "bit"}),
        (TypeError, "clip", {"clip": 1}),
        (TypeError, "clip", {"clip": None}),
    ],
)
def test_parameters(kind, error, name, options):
    with pytest.raises(error, match=f"^{name}: "):
        kind(**{"epsilon": 1.0, "features": 3, **options})


@pytest.mark.parametrize(
    ("error", "name", "options"),
    [
        (ValueError, "radius", {"radius": 0.0}),
        (ValueError, "radius", {"radius": -1.0}),
        (ValueError, "radius", {"radius": np.nan}),
        (ValueError, "radius", {"radius": 1e-20, "center": 1.0}),
        (TypeError, "radius", {"radius": "1"}),
        (ValueError, "center", {"center": np.inf}),
        (TypeError, "center", {"center": None}),
        (ValueError, "epsilon", {"epsilon": -1.0}),
    ],
)
def test_parameters_of_ldpfl(error, name, options):
    with pytest.raises(error, match=f"^{name}: "):
        LDPFLDuchi(**{"epsilon": 1.0, **options})


@pytest.mark.parametrize("kind", [Piecewise, PiecewiseSub, Hybrid])
def test_intervals_that_doubles_blur(kind):
    with pytest.raises(ValueError, match=r"^interval: .* too narrow"):
        kind(epsilon=2.0, interval=(1e9, 1e9 + 1e-3))
    assert kind(epsilon=2.0, interval=(1e9, 1e9 + 1e3)).guarantee.holds


SPENDS = [{}, {"spend": "sample", "k": 2}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", SPENDS, ids=["split", "sample"])
@pytest.mark.parametrize("epsilon", [0.0, 4.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan(kind, options, epsilon, dtype):
    for clip in (True, False):
        mechanism = kind(epsilon=epsilon, features=3, clip=clip, **options)
        x = np.full((4000, 3), SECRET, dtype)
        x[3999, 1] = np.nan
        message = refused(ValueError, r"^x: ", mechanism.randomize, x)
        assert "11998" in message or "(3999, 1)" in message
    if not options and epsilon:
        out = np.full((4000, 3), 9, mechanism.randomize(np.zeros((1, 3))).dtype)
        refused(ValueError, r"^x: ", mechanism.randomize, x, out=out)
        assert (out == 9).all()
        refused(ValueError, r"^x: the value at index \(3999, 1\) is NaN", mechanism.variance, x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", SPENDS, ids=["split", "sample"])
@pytest.mark.parametrize("bad", [1.0000001, -1.5, np.inf, -np.inf])
def test_outside_is_refused_on_request(kind, options, bad):
    mechanism = kind(epsilon=4.0, features=3, clip=False, **options)
    x = np.full((100, 3), SECRET)
    mechanism.randomize(x)
    mechanism.randomize(np.array([[-1.0, 1.0, 0.0]], np.float32))
    x[42, 2] = bad
    message = refused(ValueError, r"^x: the value at index \(42, 2\)", mechanism.randomize, x)
    assert "(-1.0, 1.0)" in message
    assert mechanism.outside(x) == 1


def test_an_end_that_single_precision_cannot_hold_is_inside():
    mechanism = Piecewise(epsilon=1.0, interval=(-0.1, 0.1), clip=False)
    assert mechanism.randomize(np.array([-0.1, 0.1], np.float32)).shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", SPENDS, ids=["split", "sample"])
def test_shapes_and_dtypes(kind, options):
    mechanism = kind(epsilon=4.0, features=3, **options)
    for shape in ((), (4,), (3, 4), (2, 3, 3), (5, 0), (0,)):
        refused(ValueError, r"^x: shape must be \(n, 3\) or \(3,\)", mechanism.randomize, np.zeros(shape))
    for dtype in (np.longdouble, np.complex128, np.bool_, object):
        refused(TypeError, "^x: ", mechanism.randomize, np.zeros((2, 3), dtype))
    refused(TypeError, "^x: ", mechanism.randomize, [["a", "b", "c"]])
    refused(ValueError, "^x: shape must be", mechanism.randomize, None)
    refused(
        ValueError, r"^x: shape must be \(n,\) or \(n, 1\)", kind(epsilon=1.0).randomize, np.zeros((2, 2))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_randomize(kind):
    x = np.zeros((5, 3))
    split, sampled = kind(epsilon=4.0, features=3), kind(epsilon=4.0, features=3, spend="sample")
    for mechanism in (split, sampled):
        refused(ValueError, "^output: ", mechanism.randomize, x, output="bits")
        refused(ValueError, "^threads: ", mechanism.randomize, x, threads=0)
        refused(ValueError, "^first_chunk: ", mechanism.randomize, x, first_chunk=-1)
        refused(TypeError, "^rng: ", mechanism.randomize, x, rng=1.5)
    refused(ValueError, "^out: not supported", sampled.randomize, x, out=np.zeros((5, 1), np.uint8))
    dtype = split.randomize(x).dtype
    for out in (np.zeros((5, 2), dtype), np.zeros((5, 3), np.float16), np.zeros((3, 5), dtype).T):
        refused((ValueError, TypeError), "^out", split.randomize, x, out=out)
    locked = np.zeros((5, 3), dtype)
    locked.flags.writeable = False
    refused((ValueError, TypeError), "^out", split.randomize, x, out=locked)
    refused(TypeError, "^out", split.randomize, x, out=[[0] * 3] * 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, LDPFLDuchi])
@pytest.mark.parametrize("options", SPENDS, ids=["split", "sample"])
def test_no_budget(kind, options):
    """At epsilon 0 reports are made, and say nothing: all that needs letters is refused."""
    mechanism = kind(epsilon=0.0, features=3, **options)
    assert mechanism.guarantee.record == 0.0
    assert mechanism.guarantee.holds
    x = np.stack([np.full((20_000, 3), end) for end in (-1.0, 1.0)])
    low, high = (mechanism.randomize(half, rng=1) for half in x)
    for first, second in zip(low, high, strict=True):
        np.testing.assert_array_equal(first, second)
    calls = [
        (mechanism.decode, low),
        (mechanism.estimate_mean, low),
        (mechanism.variance, x),
        (mechanism.mean_variance,),
        (mechanism.worst_variance,),
        (mechanism.accumulator,),
        (getattr, mechanism, "letters"),
    ]
    for call in calls:
        refused(ValueError, f"^{kind.__name__}: no unbiased decode exists at epsilon 0", *call)
    refused(ValueError, "no unbiased decode", mechanism.randomize, x[0], output="values")


@pytest.mark.parametrize("kind", KINDS)
def test_reports(kind):
    mechanism = kind(epsilon=4.0, features=3)
    for call in (mechanism.decode, mechanism.estimate_mean, mechanism.accumulator().update):
        bad = np.zeros((5, 3), np.int64)
        bad[4, 1] = mechanism.alphabet
        refused(ValueError, r"^reports: the integer at index \(4, 1\)", call, bad)
        refused(ValueError, "^reports: ", call, -np.ones((5, 3), np.int64))
        refused(TypeError, "^reports: ", call, np.zeros((5, 3)))
        refused(ValueError, "^reports: shape", call, np.zeros((5, 4), np.uint8))
        refused(ValueError, "^reports: shape", call, np.zeros((5, 3, 1), np.uint8))
    refused(ValueError, "^reports: at least one", mechanism.estimate_mean, np.zeros((0, 3), np.uint8))


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_sampled_coordinates(kind):
    mechanism = kind(epsilon=6.0, features=4, spend="sample")
    good = np.array([[0, 3], [2, 1]], np.uint8), np.zeros((2, 2), np.uint8)
    accumulator = mechanism.accumulator()
    accumulator.update((good[0].astype(np.uint64), good[1].tolist()))
    for call in (mechanism.decode, mechanism.estimate_mean, accumulator.update):
        refused(TypeError, "^reports: must be a pair", call, good[0])
        refused(TypeError, "^reports: must be a pair", call, (*good, good[0]))
        refused(ValueError, r"^reports.indices: .* index \(0, 1\)", call, ([[0, 4], [0, 1]], good[1]))
        over = np.full((2, 2), mechanism.alphabet, np.int64)
        refused(ValueError, r"^reports.codes: .* index \(0, 0\)", call, (good[0], over))
        refused(TypeError, "^reports.codes: ", call, (good[0], np.zeros((2, 2))))
        refused(ValueError, "^reports.codes: shape", call, (good[0], good[1][:1]))
        refused(ValueError, "^reports.indices: shape", call, (good[0][:, :1], good[1][:, :1]))
        refused(ValueError, "^reports.indices: record 1 has a", call, ([[0, 1], [2, 2]], good[1]))
    assert accumulator.n == 2
    empty = np.zeros((0, 2), np.uint8)
    refused(ValueError, "^reports: at least one", mechanism.estimate_mean, (empty, empty))
