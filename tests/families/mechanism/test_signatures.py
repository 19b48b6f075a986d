"""Signatures that can be guessed: epsilon and delta by name, the size of the data first, few public names."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import bitldp
import pytest
from bitldp.compression import CLDP
from bitldp.mechanism.base import Mechanism
from bitldp.selection import Compressed, FedSel

EXPORTED = {
    name: each
    for name in bitldp.__all__
    if inspect.isclass(each := getattr(bitldp, name)) and issubclass(each, Mechanism)
} | {"CLDP": CLDP, "Compressed": Compressed, "FedSel": FedSel}

FIRST = ("categories", "attributes", "candidates", "features")  # what may stand without its name
WRAPPING = {
    "MatrixResponse": ["matrix"],  # the law itself
    "TwoStage": ["selection", "release"],  # others that have two, and no epsilon of their own
    "WorkloadDesign": ["workload"],  # what is asked comes before what it is asked about
}
NO_EPSILON = {"TwoStage", "BitRand", "MatrixResponse"}  # BitRand has epsilon_x and epsilon_y


def parameters(kind: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(kind).parameters)


@pytest.mark.parametrize("name", EXPORTED)
def test_what_stands_without_its_name(name: str) -> None:
    stated = parameters(EXPORTED[name])
    positional = [each.name for each in stated.values() if each.kind is not each.KEYWORD_ONLY]
    if name in WRAPPING:
        assert positional == WRAPPING[name]
        return
    assert positional in ([], *([each] for each in FIRST))
    required = [each for each in FIRST if each in stated and stated[each].default is inspect.Parameter.empty]
    assert positional == ["features"] if name == "BitRand" else positional in (required[:1], ["attributes"])


@pytest.mark.parametrize("name", EXPORTED)
def test_budgets_have_names(name: str) -> None:
    stated = parameters(EXPORTED[name])
    budgets = [each for each in stated if each.startswith(("epsilon", "delta"))]
    assert name in NO_EPSILON or "epsilon" in budgets
    for each in budgets:
        assert stated[each].kind is inspect.Parameter.KEYWORD_ONLY
    for each in ("classes", "sizes", "size", "dimensions", "seed", "values"):
        assert each not in stated


def test_functions_and_ledgers_follow() -> None:
    assert [
        each.name for each in parameters(bitldp.recommend).values() if each.kind is not each.KEYWORD_ONLY
    ] == ["task"]
    assert [
        each.name for each in parameters(bitldp.Ledger).values() if each.kind is not each.KEYWORD_ONLY
    ] == ["budget"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in EXPORTED.items() if issubclass(kind, Mechanism)])
def test_no_default_is_refused(name: str) -> None:
    """What an example needs beside its budget and size is what has no default."""
    kind, stated = EXPORTED[name], parameters(EXPORTED[name])
    if name in ("MVU", "OptimalUtility", "MinimaxVariance", "InterpolatedMVU", "VectorMVU", "MetricMVU"):
        pytest.importorskip("scipy", reason="the extra design is not installed")
    example = kind._usual(2.0)
    if name == "BitRand":
        example = {**example, "epsilon_x": 1.0}
    needed = {
        each: example[each]
        for each, parameter in stated.items()
        if parameter.default is inspect.Parameter.empty
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        assert kind(**needed).guarantee.epsilon > 0.0


ORACLES = ["GRR", "OLH", "LOLOHA", "OUE", "SUE", "RAPPOR", "BlockDesign", "HadamardResponse"]
ORACLES += ["SubsetSelection"]


@pytest.mark.parametrize("name", [*ORACLES, "LabelRR", "WarnerRR"])
def test_oracles_have_a_variance_of_a_frequency(name: str) -> None:
    kind = EXPORTED[name]
    mechanism = kind(epsilon=1.0) if name == "WarnerRR" else kind(10, epsilon=1.0)
    assert mechanism.frequency_variance() > 0.0
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"^frequency: must be from 0 to 1"):
            mechanism.frequency_variance(wrong)


PUBLIC = {  # of every mechanism, whatever it answers
    "accumulator",
    "client_document",
    "columns",
    "decode",
    "extremes",
    "fingerprint",
    "guarantee",
    "influence",
    "outputs",
    "outside",
    "parameters",
    "randomize",
    "randomize_keyed",
    "report_bits",
}
MOST = 17  # of a family: laws, letters, points, answers of its own; the largest has as many
ANSWERS = {"estimate_frequencies", "estimate_mean", "mean_variance", "unbias", "worst_variance"}


def test_a_mechanism_has_few_public_names() -> None:
    assert {each for each in dir(Mechanism) if not each.startswith("_")} == PUBLIC | ANSWERS


@pytest.mark.parametrize("name", [name for name, kind in EXPORTED.items() if issubclass(kind, Mechanism)])
def test_each_adds_few(name: str) -> None:
    kind = EXPORTED[name]
    own = {each for each in dir(kind) if not each.startswith("_")} - PUBLIC - ANSWERS - set(parameters(kind))
    assert len(own) <= MOST, sorted(own)


# -- hints


@pytest.mark.parametrize(
    ("name", "given", "named", "message"),
    [
        ("GRR", (10, 1.0), {}, "did you mean GRR(10, epsilon=1.0)?"),
        ("GRR", (1.0, 10), {}, "did you mean GRR(10, epsilon=1.0)?"),
        ("GRR", (1.0,), {"epsilon": 10}, "epsilon: 10 is one, did you mean categories=10, epsilon=1.0?"),
        ("GRR", (["a", "b"], 1.0), {}, "GRR: takes categories alone without its name, got 2"),
        ("Piecewise", (2.0,), {}, "did you mean Piecewise(epsilon=2.0)?"),
        ("Gaussian", (1.0, 1e-6), {}, "did you mean Gaussian(epsilon=1.0, delta=1e-06)?"),
        ("PS", (6, 2, 1.0), {}, "did you mean PS(6, k=2, epsilon=1.0)?"),
        ("GRR", (10,), {"epsilom": 1.0}, "epsilom: GRR has no such parameter; did you mean epsilon=?"),
        ("LabelRR", (), {"classes": 4, "epsilon": 1.0}, "did you mean categories=?"),
        ("GRR", (3,), {"epsilon": 1.0, "seed": 3}, "pass rng= to its `randomize`"),
        ("CrossPolytope", (9,), {"epsilon": 1.0, "seed": 3}, "did you mean public_seed=?"),
    ],
)
def test_a_call_that_does_not_fit_says_what_is_meant(
    name: str, given: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        EXPORTED[name](*given, **named)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"seed": 2}, "seed: randomize has no seed; did you mean rng=?"),
        ({"outptu": "codes"}, "outptu: randomize has no such parameter; did you mean output=?"),
    ],
)
@pytest.mark.parametrize("name", [name for name, kind in EXPORTED.items() if hasattr(kind, "randomize")])
def test_an_unknown_option_of_randomize_says_what_is_meant(
    name: str, named: dict[str, Any], message: str
) -> None:
    """It is refused before records are looked at, so that any will do: None for each."""
    kind = EXPORTED[name]
    records = inspect.signature(kind.randomize).parameters.values()
    needed = [each for each in records if each.name != "self" and each.default is each.empty]
    call = kind.randomize.__get__(object.__new__(kind))
    with pytest.raises(TypeError) as caught:
        call(*(None for each in needed if each.kind is each.POSITIONAL_OR_KEYWORD), **named)
    assert str(caught.value) == message


def test_other_refusals_stay_as_they_are() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'epsilon'"):
        bitldp.GRR(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^categories: must be an integer, not float$"):
        bitldp.GRR(3.5, epsilon=1.0)  # type: ignore[arg-type]


def test_inspect_sees_the_constructor() -> None:
    assert list(parameters(bitldp.GRR)) == ["categories", "epsilon", "features", "unit"]


def test_a_notebook_shows_parameters_and_guarantee() -> None:
    shown = bitldp.GRR(["<a>", "b"], epsilon=1.0)._repr_html_()
    assert "<caption>GRR</caption>" in shown
    assert "Categories(2 labels)" in shown
    assert "exact epsilon per record" in shown
    assert "&lt;" in bitldp.BRR([0.0, 1.0, 3.0], epsilon=1.0)._repr_html_()
