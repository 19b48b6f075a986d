"""Candidates for each task, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from bitldp.categorical.hashing import OLH
from bitldp.categorical.responses import GRR, WarnerRR
from bitldp.compression import CLDP, MVU, BallWindow, CrossPolytope, GeneralizedRR, RandomCodebook
from bitldp.compression import best_bits as best_response_bits
from bitldp.design.blocks import MOST_MODULUS
from bitldp.design.mvu import at_hand
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.numeric import sampled_features
from bitldp.numeric import (
    BitBudgets,
    Duchi,
    Hybrid,
    Laplace,
    MinimaxVariance,
    Piecewise,
    PiecewiseSub,
    ThreeOutputs,
)
from bitldp.ordered.heavy_hitters import HeavyHitters
from bitldp.ordered.hierarchy import Hierarchy
from bitldp.ordered.square_wave import SquareWave
from bitldp.ordered.workload import WorkloadDesign
from bitldp.points.brr import BRR
from bitldp.points.candidates import checked_candidates
from bitldp.points.exponential import Exponential
from bitldp.points.lsrr import LSRR
from bitldp.points.optimal import OptimalUtility
from bitldp.privacy import share
from bitldp.recommend.question import Question
from bitldp.record.cap import RecordCap
from bitldp.record.categorical import CategoricalRecord
from bitldp.record.choice import ORACLES, oracle
from bitldp.record.mixed import MixedRecord
from bitldp.record.mixed_cap import MixedCap
from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns
from bitldp.record.window import JointWindow, near_least

__all__ = ["NOTES", "REGISTRY", "LeftOutError", "Maker"]


Kind = Callable[..., Mechanism]
Maker = Callable[[Question], Mechanism]


class LeftOutError(ValueError):
    """A candidate fits the task and is left out: it takes long, or more than a report may.

    Parameters
    ----------
    message : str
        Why.
    mechanism : Mechanism, optional
        What is left out, where it was built: what it would have is said.
    """

    def __init__(self, message: str, mechanism: Mechanism | None = None) -> None:
        super().__init__(message)
        self.mechanism = mechanism


_FINE = 0.006  # relative variance given up for fewer bits of a joint window: the first row gives up more
_CELLS = 256  # of a tree over the cells of an interval
_QUICK, _USUAL = 1 << 16, (2, 4, 8)  # values and branchings whose errors are found at once
_QUICKLY_RANGED, _MOST_RANGED = 12, 512  # values whose ranges are designed at once, and at all
_MOST_FLAT = 4096  # values whose shares are added up one by one
_MOST_LISTED, _MOST_LISTABLE = 1_000_000, 1 << 24  # words that a server counts one by one, and could
_SECONDS = 8  # bits of a step: a search among a million records takes seconds; each more doubles it


def _wave(cells: int) -> Maker:
    return lambda s: SquareWave(epsilon=s.epsilon, interval=s.interval, cells=cells)


def _tree(branching: int) -> Maker:
    """Return the maker of a tree over values, or over the cells of an interval."""

    def make(s: Question) -> Mechanism:
        size = s.size or _CELLS
        if size < branching > 2:
            raise ValueError(f"has {branching} children a node, more than there are values")
        if size > _QUICK and branching not in _USUAL and not s.thorough:
            raise LeftOutError("takes seconds to measure; thorough=True compares it, too")
        return Hierarchy(size, epsilon=s.epsilon, branching=branching)

    return make


def _bins(count: int) -> Maker:
    return lambda s: oracle("best", count, s.epsilon)


def _flat(kind: Kind) -> Maker:
    """Return the maker of an oracle for every value, whose shares are added up.

    Of many values only the one whose reports are a single value is good at some budget, a large one.
    """

    def make(s: Question) -> Mechanism:
        if s.size > _MOST_FLAT and kind is not GRR:
            raise ValueError(f"is for at most {_MOST_FLAT} values: a range's errors add up")
        return kind(s.size, epsilon=s.epsilon)

    return make


def _workload(s: Question) -> Mechanism:
    """Return the design for all ranges; what would have to be solved for seconds is for who asks for it."""
    if s.size > _MOST_RANGED:
        raise ValueError(f"is for at most {_MOST_RANGED} values")
    quick = s.size <= _QUICKLY_RANGED or s.thorough
    if not (quick or WorkloadDesign.solved("ranges", categories=s.size, epsilon=s.epsilon)):
        raise LeftOutError("takes up to minutes to design; thorough=True does it")
    return WorkloadDesign("ranges", categories=s.size, epsilon=s.epsilon)


def _biased(s: Question) -> Mechanism:
    raise ValueError("has a bias, toward distributions without gaps and steps; ask for task 'distribution'")


def _words(step: int) -> Maker:
    def make(s: Question) -> Mechanism:
        result = HeavyHitters(epsilon=s.epsilon, bits=(s.size - 1).bit_length(), step=step)
        if step > _SECONDS and not s.thorough:
            raise LeftOutError("the server searches for minutes; thorough=True compares it, too", result)
        return result

    return make


def _listed(kind: Kind) -> Maker:
    """Return the maker of an oracle for words that can still be listed."""

    def make(s: Question) -> Mechanism:
        if s.size > _MOST_LISTABLE:
            raise ValueError(f"is for at most {_MOST_LISTED:,} words: the server lists them all")
        result = kind(s.size, epsilon=s.epsilon)
        if s.size > _MOST_LISTED and not s.thorough:
            raise LeftOutError("the server lists all words, for seconds; thorough=True compares it", result)
        return result

    return make


_DESIGNED = 150  # candidates whose least loss is found while one waits


def _numeric(kind: Kind, spend: str, **options: Any) -> Maker:
    def make(s: Question) -> Mechanism:
        if s.features == 1 and spend == "sample":
            raise ValueError("a record of one number has nothing to sample")
        return kind(epsilon=s.epsilon, features=s.features, spend=spend, interval=s.interval, **options)

    return make


def _response(spend: str) -> Maker:
    """Return the maker of GRR on a grid, whose best number of points depends on a number's budget."""

    def make(s: Question) -> Mechanism:
        sampled = sampled_features(s.epsilon, s.features) if spend == "sample" else s.features
        return _numeric(
            GeneralizedRR,
            spend,
            bits=best_response_bits(
                GeneralizedRR,
                epsilon=s.epsilon / sampled,
                criterion="worst" if s.criterion == "worst" else "mean",
            ),
        )(s)

    return make


def _mvu(spend: str, input_bits: int, output_bits: int) -> Maker:
    """Return the maker of MVU; what would have to be solved first is for who asks for it."""

    def make(s: Question) -> Mechanism:
        parts = sampled_features(s.epsilon, s.features) if spend == "sample" else s.features
        each = share(s.epsilon, parts)
        if output_bits > 3 and each < 1.0:
            raise ValueError("with less than 1 to spend on a number, 3 bits are as good as 5")
        if not (s.thorough or at_hand(input_bits, output_bits, each)):
            raise LeftOutError("takes seconds to design; thorough=True compares it, too")
        return _numeric(MVU, spend, input_bits=input_bits, output_bits=output_bits)(s)

    return make


def _whole(kind: Kind) -> Maker:
    """Return the maker of a mechanism that releases a record as a whole."""
    return lambda s: kind(s.features, epsilon=s.epsilon, interval=s.interval)


def _joint(s: Question) -> Mechanism:
    criterion: Literal["mean", "worst"] = "worst" if s.criterion == "worst" else "mean"
    k, levels, reach = near_least(s.features, s.epsilon, s.criterion == "worst", _FINE)
    return JointWindow(s.features, epsilon=s.epsilon, criterion=criterion, k=k, levels=levels, reach=reach,
                       interval=s.interval)  # fmt: skip


def _candidate(kind: Kind, **options: Any) -> Maker:
    def make(s: Question) -> Mechanism:
        return kind(s.candidates, epsilon=s.epsilon, metric=s.metric, features=s.features, **options)

    return make


def _optimal(s: Question) -> Mechanism:
    if len(checked_candidates(s.candidates, None, None)[2]) > _DESIGNED and not s.thorough:
        raise LeftOutError(f"more than {_DESIGNED} candidates take seconds to design; thorough=True does it")
    return _candidate(OptimalUtility)(s)


def _oracle(kind: Kind) -> Maker:
    """Return the maker of a mechanism of one category; of several, a random one is asked."""

    def make(s: Question) -> Mechanism:
        if len(s.sizes) > 1:
            return CategoricalRecord(s.sizes, epsilon=s.epsilon, oracle=kind.__name__)
        return kind(s.sizes[0], epsilon=s.epsilon)

    return make


def _hashing(s: Question) -> Mechanism:
    if len(s.sizes) > 1 or s.sizes[0] <= MOST_MODULUS:
        raise ValueError(
            f"is for more than {MOST_MODULUS:,} categories; of fewer, designs are estimated faster"
        )
    return OLH(s.sizes[0], epsilon=s.epsilon)


def _attributes(spend: Any, oracle: str = "best") -> Maker:
    """Return the maker of records of categories, or of numbers and categories."""

    def make(s: Question) -> Mechanism:
        if s.numbers:
            return MixedRecord(
                s.sizes,
                features=s.numbers,
                epsilon=s.epsilon,
                spend=spend,
                oracle=oracle,
                interval=s.interval,
            )
        return CategoricalRecord(s.sizes, epsilon=s.epsilon, spend=spend, oracle=oracle)

    return make


def _grr_split(s: Question) -> Mechanism:
    if len(s.sizes) == 1 or len(set(s.sizes)) > 1:
        raise ValueError("is for several features of as many categories each")
    return GRR(s.sizes[0], epsilon=s.epsilon, features=len(s.sizes))


def _warner(s: Question) -> Mechanism:
    if s.sizes != (2,):
        raise ValueError("is for one answer of two categories")
    return WarnerRR(epsilon=s.epsilon)


def _cap(s: Question) -> Mechanism:
    if s.numbers or len(s.sizes) < 2:
        raise ValueError("is for records of several categories and of no number")
    return RecordCap(s.sizes, epsilon=s.epsilon)


def _mixed_cap(s: Question) -> Mechanism:
    if not s.numbers:
        raise ValueError("is for records of numbers and categories")
    return MixedCap(s.sizes, features=s.numbers, epsilon=s.epsilon, interval=s.interval)


def _yes_no(kind: Kind) -> Maker:
    """Return the maker of a release of yes and no as the numbers 1 and 0, all of a record together."""

    def make(s: Question) -> Mechanism:
        if s.numbers or set(s.sizes) != {2} or len(s.sizes) < 2:
            raise ValueError("is for several answers of two categories each")
        return kind(len(s.sizes), epsilon=s.epsilon, interval=(0.0, 1.0))

    return make


def _ball(kind: Kind, *norms: str, **options: Any) -> Maker:
    """Return the maker of a mechanism of vectors of the unit ball of some norms."""

    def make(s: Question) -> Mechanism:
        if s.norm not in norms:
            raise ValueError(f"is for vectors of the {' or '.join(norms)} ball")
        return kind(s.features, epsilon=s.epsilon, **options)

    return make


_KINDS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("Duchi", Duchi, {}),
    ("Piecewise", Piecewise, {}),
    ("PiecewiseSub", PiecewiseSub, {}),
    ("Hybrid", Hybrid, {}),
    ("ThreeOutputs", ThreeOutputs, {}),
    ("Laplace", Laplace, {}),
    ("BitBudgets", BitBudgets, {}),
    ("MinimaxVariance", MinimaxVariance, {}),
)

_LISTERS: Mapping[str, Kind] = {**ORACLES, "OLH": OLH}

_YES_NO = tuple((f"{kind.__name__}, yes or no", _yes_no(kind)) for kind in (HypercubePrivUnit, SampledSigns))

NOTES: Mapping[str, str] = {
    name: "of answers 0 and 1 as numbers, whose means are the shares of 1" for name, _ in _YES_NO
}
"""How a candidate is used, where its class does not say it."""

REGISTRY: Mapping[str, tuple[tuple[str, Maker], ...]] = {
    "mean": (
        *((f"{name}, {how}", _numeric(kind, how, **more)) for name, kind, more in _KINDS
          for how in ("split", "sample")),
        *((f"MVU {i} -> {o} bits, {how}", _mvu(how, i, o)) for i, o in ((3, 3), (6, 5))
          for how in ("split", "sample")),
        *((f"GeneralizedRR, {how}", _response(how)) for how in ("split", "sample")),
        ("JointWindow, record", _joint),
        ("HypercubePrivUnit, record", _whole(HypercubePrivUnit)),
        ("SampledSigns, record", _whole(SampledSigns)),
        (
            "Duchi, record",
            lambda s: Duchi(epsilon=s.epsilon, features=s.features, spend="cube", interval=s.interval),
        ),
    ),
    "vector": (
        ("CrossPolytope", _ball(CrossPolytope, "l1", "l2")),
        ("CrossPolytope, uniform rotations", _ball(CrossPolytope, "l1", "l2", rotation="haar")),
        ("RandomCodebook", _ball(RandomCodebook, "l1", "l2")),
        ("CLDP", _ball(CLDP, "l1")),
        ("BallWindow", _ball(BallWindow, "l2")),
        ("HypercubePrivUnit", _whole(HypercubePrivUnit)),
        ("SampledSigns", _whole(SampledSigns)),
        ("JointWindow", _joint),
        ("Duchi, record", lambda s: Duchi(epsilon=s.epsilon, features=s.features, spend="cube")),
        *((f"{name}, sample", _numeric(kind, "sample", **more)) for name, kind, more in _KINDS),
    ),
    "frequency": (
        *((name, _oracle(kind)) for name, kind in ORACLES.items()),
        ("OLH", _hashing),
        ("RecordCap", _cap),
        ("best oracle, sample", _attributes("sample")),
        ("best oracle, split", _attributes("split")),
        ("GRR, split", _grr_split),
        *_YES_NO,
        ("WarnerRR", _warner),
    ),
    "record": (
        ("RecordCap", _cap),
        ("MixedCap", _mixed_cap),
        ("best oracle, sample", _attributes("sample")),
        ("best oracle, split", _attributes("split")),
        *((f"{name}, sample", _attributes("sample", name)) for name in ORACLES),
        *_YES_NO,
    ),
    "point": (
        ("OptimalUtility", _optimal),
        ("BRR, best m", _candidate(BRR, m="best")),
        ("BRR, paper's m", _candidate(BRR, m="paper")),
        ("GRR (BRR, m = 1)", _candidate(BRR, m=1)),
        ("Exponential", _candidate(Exponential)),
        ("LSRR", _candidate(LSRR)),
    ),
    "label": (
        ("GRR", lambda s: GRR(s.sizes[0], epsilon=s.epsilon)),
        ("WarnerRR", _warner),
    ),
    "distribution": (
        *((f"SquareWave, {cells} cells", _wave(cells)) for cells in (256, 512, 1024)),
        *((f"Hierarchy of {_CELLS} cells, by {each}", _tree(each)) for each in (2, 4, 8, 16)),
        *((f"best oracle, {count} bins", _bins(count)) for count in (8, 16, 32, 64)),
    ),
    "range": (
        *((f"Hierarchy, by {each}", _tree(each)) for each in (2, 3, 4, 5, 6, 8, 16)),
        ("WorkloadDesign", _workload),
        *((f"{name}, added up", _flat(kind)) for name, kind in ORACLES.items()),
        ("SquareWave", _biased),
    ),
    "top": (
        *((f"HeavyHitters, steps of {each} bits", _words(each)) for each in (4, 6, 8, 10, 12)),
        *((f"{name}, all words", _listed(kind)) for name, kind in _LISTERS.items()),
    ),
}  # fmt: skip
