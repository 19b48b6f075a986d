"""Records of numbers and categories by one channel: all of a record is in one neighbourhood, or anywhere."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, Cap, KeyedRandomness, keystream, pack
from bitldp.channels.caps import least_common
from bitldp.mechanism.attributes.release import ColumnTable
from bitldp.mechanism.law import Experiment, Pair, Symbols, of_neighbourhoods
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Budget, Features, Flag, Interval, Option, optional, whole
from bitldp.privacy import ONE, Guarantee
from bitldp.record.cap import each_of, spread_out
from bitldp.record.cap_answer import CapAnswer
from bitldp.record.cap_law import MOST_DRAWN, cap_channel, counted, joint_gain, likely_hits
from bitldp.record.cap_search import Lists, few_numbers, subset_sizes
from bitldp.record.categorical import CategoryAttributes, read_sizes
from bitldp.record.choice import SLACK
from bitldp.record.mixed import NumbersAndCategories
from bitldp.record.window import MOST_CELLS, grids, mean_moment, window_release
from bitldp.release.base import Call

__all__ = ["MixedCap"]

_MOST = 1 << 12  # categories of an attribute that is reported as a subset
_LARGEST = 1 << 16  # categories of an attribute
_KEY = 32  # bytes
_FEW = 2000  # grids that are all compared with every list of subsets
_SMALL = 64  # cells; of grids up to these, where there are more
_BUDGET = 600.0  # its exponential is a double


@dataclass(frozen=True, eq=False, repr=False)
class CapNumber(Means):
    """Answer about one number of a `MixedCap`: a cell near it, or any.

    Parameters
    ----------
    levels, reach
        As of `MixedCap`.
    chance : int
        Chance that the report is near the record, over 2**64.
    epsilon : float
        Exact epsilon of the whole report.
    interval, clip
        As of `Duchi`.
    """

    levels: int
    reach: int
    chance: int
    epsilon: float
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    features: ClassVar[int] = 1  # type: ignore[misc]

    def _build(self) -> None:
        channel = Cap([(self.levels, self.reach)], [], 0, self.chance, mute=not self.chance)
        release = window_release(channel, self.interval)
        self._set(
            _release=release,
            _ends=self.interval,
            _spread=release.spread,
            _guarantee=Guarantee.judge(self.epsilon, (self.epsilon,) * 3),
        )


@dataclass(frozen=True, eq=False, repr=False)
class MixedCap(NumbersAndCategories):
    """Record of numbers and categories: spends the budget once on the whole record, through one channel.

    Use it if the budget is large for the record. With a small budget, `MixedRecord`, which samples one
    attribute, has less error. `bitldp.recommend("record", ...)` compares both.

    Parameters
    ----------
    features : int
        Numbers of a record, 1 to 256; its first attributes.
    attributes : sequence
        Categories of each further attribute, 2 to 65,536; 1 to 256 attributes. How many, or their labels, as
        in `CategoricalRecord`.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    levels : int, optional
        Number P of points of the interval that a number is dithered to, 2 or more. If `levels`, `reach`,
        `subset` or `hits` is None, a search sets it: the fewest bits within 2 % of the least mean variance of
        numbers and indicators, with the interval counted as [-1, 1]. All four attributes then hold the chosen
        numbers.
    reach : int, optional
        Number b of cells on each side of a number's own cell that count as near, zero or more. A number's
        report is one of P + 2 b cells, at most 65,536.
    subset : int or sequence of int, optional
        Size w of the subset that is reported for each attribute.
    hits : int, optional
        Threshold kappa, 1 to the number of attributes of categories: a report is likely only if at least this
        many subsets contain the true category.
    interval, clip
        As of `Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an interval too narrow for its distance from 0; the message names
        it.

    Notes
    -----
    A report has a cell for each number, as in `JointWindow`, and a subset of the categories of each
    attribute, as in `RecordCap`. Let t be the share of all reports in which all cells are near and at least
    kappa subsets contain the true category. It is the product of both shares. With a public probability A, an
    integer over 2**64, a report is uniform among these, otherwise among all. So epsilon = ln(1 + A/((1 - A)
    t)).

    A cell has the law of `JointWindow` with this A: its letter is divided by A. A category is in its subset
    with w/k + g (1[true] - 1/k), where g = A s P(kappa - 1 hits of the others)/t', s = w (k - w)/(k (k - 1)),
    and t' is the share of the subsets alone. Reports are a tuple of arrays: codes of the numbers, and one
    array for each run of attributes with the same categories and size.

    Neighbouring records differ in any way. No attribute is sampled. For joint tables of categories, use
    `RecordCap`.

    Sources: as in `JointWindow` and `RecordCap`. The product of their neighbourhoods is due to this package.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.MixedCap([3, 5], features=2, epsilon=8.0)
    >>> x, y = np.tile([0.5, -0.25], (20_000, 1)), np.tile([2, 0], (20_000, 1))
    >>> reports = mechanism.randomize(x, y, rng=1)
    >>> means = mechanism.estimate_mean(reports)
    >>> bool(abs(means.value - [0.5, -0.25]).max() < 5 * means.stderr.max())
    True
    >>> mechanism.mean_variance() < bitldp.MixedRecord([3, 5], features=2, epsilon=8.0).mean_variance() / 2
    True
    """

    features: Features = field(kw_only=True)
    attributes: CategoryAttributes
    _: KW_ONLY
    epsilon: Budget
    levels: Annotated[int | None, optional(whole(2, MOST_CELLS))] = None
    reach: Annotated[int | None, optional(whole(0, MOST_CELLS // 2 - 1))] = None
    subset: Annotated[
        int | Sequence[int] | None,
        optional(partial(each_of, 1, 1 << 20)),
        Option(form="N|N,N,...", read=read_sizes, short="Categories of each subset."),
    ] = None
    hits: Annotated[int | None, optional(whole(1, MOST_DRAWN))] = None
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    spend: ClassVar[str] = "joint"  # type: ignore[misc]
    k: ClassVar[int | None] = None  # type: ignore[misc]

    _channel: Cap = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        self._name()
        categories = self._sizes
        for name, count in (("features", self.features), ("attributes", len(categories))):
            if count > MOST_DRAWN:
                raise ValueError(f"{name}: must be at most {MOST_DRAWN} of a record, got {count}")
        if max(categories) > _LARGEST:
            raise ValueError(f"attributes: must be of at most {_LARGEST:,} categories, got {max(categories)}")
        if self.hits is not None and self.hits > len(categories):
            raise ValueError(
                f"hits: must be between 1 and {len(categories)}, as many as there are attributes, "
                f"got {self.hits}"
            )
        if (self.levels or 2) + 2 * (self.reach or 0) > MOST_CELLS:
            raise ValueError(f"reach: levels + 2 reach must be at most {MOST_CELLS}")
        held = spread_out("subset", self.subset, len(categories))
        for index, (own, size) in enumerate(zip(held, categories, strict=True)):
            if own is not None and own >= size:
                raise ValueError(
                    f"subset: that of attribute {index} is of 1 to {size - 1} categories, got {own}"
                )
        alike = list(zip(categories, (own or 0 for own in held), strict=True))
        groups = sorted(Counter(alike).items())
        best = _best(
            self.features,
            tuple(each[0] for each, _ in groups),
            tuple(count for _, count in groups),
            self.epsilon,
            (self.levels, self.reach),
            None if self.subset is None else tuple(each[1] for each, _ in groups),
            self.hits,
        )
        size_of = dict(zip((each for each, _ in groups), best.sizes, strict=True))
        subset = tuple(size_of[each] for each in alike)
        for own, size in zip(subset, categories, strict=True):
            if own > 1 and size > _MOST:
                raise ValueError(f"subset: of more than {_MOST} categories only one is reported, got {own}")
        subsets = tuple(zip(categories, subset, strict=True))
        channel = cap_channel(((best.levels, best.reach),) * self.features, subsets, best.hits, self.epsilon)
        exact = channel.epsilon
        self._set(
            levels=best.levels,
            reach=best.reach,
            subset=subset,
            hits=best.hits,
            _channel=channel,
            _guarantee=Guarantee.judge(self.epsilon, (exact,) * 3),
        )
        number = CapNumber._quiet(
            levels=best.levels,
            reach=best.reach,
            chance=channel.high,
            epsilon=exact,
            interval=self.interval,
            clip=self.clip,
        )
        answers = {each: _answer(channel, subsets, each) for each in dict.fromkeys(subsets)}
        self._keep([number] * self.features + [answers[each] for each in subsets])

    def _together(self, slots: Sequence[int]) -> tuple[float, float]:
        """Return the factor and the chance of `Attributes._together`.

        Near the record numbers and subsets are independent; anywhere, the mean of each is 0.
        """
        subsets = tuple(zip(self._sizes, self.subset or (), strict=True))  # type: ignore[arg-type]
        chosen = [subsets[each - self.features] for each in slots if each >= self.features]
        inside, numbers = self._channel.high / ONE, len(slots) - len(chosen)
        factor = inside ** (numbers - 1 if numbers and not chosen else numbers)
        if len(chosen) > 1:
            gain = _gain(self._channel, subsets, chosen)
            if not gain:
                raise ValueError(f"with hits={self.hits} reports carry no joint information about them")
            factor *= float(math.prod(_gain(self._channel, subsets, [each]) for each in chosen) / gain)
        return factor, 1.0

    _no_document: ClassVar[str] = (
        "its numbers are dithered before one channel takes them with the categories, which version 1 of the "
        "schema has no codec for"
    )

    @property
    def channel(self) -> Cap:
        """The channel: its `high`, `windows`, `subsets` and `share` are the law; flat at epsilon 0."""
        return self._channel

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a record; none at epsilon 0."""
        return (Symbols((self._channel,), 1),) if self._channel.epsilon else ()

    @property
    def _streams(self) -> int:
        return 2  # of the dither, and of the channel

    def _released(self, tables: Sequence[ColumnTable], records: int, call: Call) -> Any:
        """Release the numbers and the categories of records, all checked, a chunk after the other."""
        if call.out is not None:
            raise ValueError("out: not supported, since a report is several arrays")
        (_, numbers), (_, categories) = tables
        if isinstance(call.keys[0], KeyedRandomness):  # every record has randomness of its own
            words = self._words(numbers, categories, call.keys[0], call.keys[1], call.threads)
        else:
            secrets = [key if isinstance(key, bytes) else os.urandom(_KEY) for key in call.keys[:2]]
            blocks = []
            for index, start in enumerate(range(0, max(1, records), CHUNK)):
                dither, key = (keystream(secret, call.first_chunk + index, _KEY) for secret in secrets)
                rows = slice(start, start + CHUNK)
                blocks.append(self._words(numbers[rows], categories[rows], dither, key, call.threads))
            words = np.concatenate(blocks)
        arrays, begin = [], 0
        for columns, bits in self._report_parts:
            part = words[:, begin : begin + columns]
            arrays.append(np.ascontiguousarray(part, dtype=np.min_scalar_type((1 << bits) - 1)))
            begin += columns
        if call.output == "packed":
            arrays = [
                pack(each.ravel(), bits) for each, (_, bits) in zip(arrays, self._report_parts, strict=True)
            ]
        return tuple(arrays)

    def _words(
        self, numbers: NDArray[Any], categories: NDArray[Any], dither: Any, key: Any, threads: int | None
    ) -> NDArray[Any]:
        """Return the code words of reports."""
        one: Any = self._parts[0]
        grid = one._release.codec
        # A neighbourhood of one cell that is always chosen: it dithers, and nothing else.
        exactly = Cap([(self.levels or 2, 0)] * self.features, [], 0, ONE)
        codes = exactly.randomize(numbers, grid, None, dither, "codes", None, threads, 0)
        records = np.concatenate([codes, categories], axis=1)
        reports: NDArray[Any] = self._channel.randomize(records, None, None, key, "codes", None, threads, 0)
        return reports

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two records, and the law of being near either of them; see `Mechanism.extremes`.

        The law is known of records at both ends of every number that differ in every category.
        """
        ends = self._ends() if pair is None else pair
        names = ("the first of every attribute", "the last of every attribute")
        values = [self._values(each) for each in ends]
        numbers = [np.array(each[: self.features]) for each in values]
        both = least_common(self._channel)
        apart = np.isin(numbers, self.interval).all() and (numbers[0] != numbers[1]).all()
        differ = all(a != b for a, b in zip(*(each[self.features :] for each in values), strict=True))
        if both is None or not (apart and differ):
            return Experiment(ends, names)
        at = [np.where(each == self.interval[0], 0, (self.levels or 2) - 1) for each in numbers]

        def read(reports: Any) -> tuple[Any, ...]:
            answers = list(self.answers(reports))
            codes = np.stack([each.reports for each in answers[: self.features]], axis=1).astype(np.int64)
            result = []
            for place, record in zip(at, values, strict=True):
                near = ((codes >= place) & (codes <= place + 2 * (self.reach or 0))).all(axis=1)
                hits = np.zeros(len(codes), np.int64)
                for index in range(self.features, len(record)):
                    part: Any = self.mechanisms[index]
                    hits += part._support(answers[index].reports, np.array([record[index]])).reshape(-1)
                result.append(near & (hits >= (self.hits or 1)))
            return tuple(result)

        sizes = Fraction(*self._channel.share), both, Fraction(1)
        return of_neighbourhoods(ends, names, sizes, self._channel.high, read)


def _answer(channel: Cap, subsets: Sequence[tuple[int, int]], own: tuple[int, int]) -> CapAnswer:
    """Return the answer about an attribute of subsets (k, w); see `CapLaw` for its gain g."""
    k, w = own
    gain = float(_gain(channel, subsets, [own]))
    q = (w - gain) / k
    return CapAnswer._quiet(categories=k, size=w, epsilon=channel.epsilon, chances=(q + gain, q))


def _gain(channel: Cap, subsets: Sequence[tuple[int, int]], chosen: Sequence[tuple[int, int]]) -> Fraction:
    """Return g_U of `CapLaw` for some of the subsets."""
    others = list(subsets)
    for each in chosen:
        others.remove(each)
    share, *_ = likely_hits(counted(subsets), channel.hits)
    return Fraction(channel.high, ONE) * joint_gain(chosen, counted(others), channel.hits) / share


class _Chosen(NamedTuple):
    levels: int
    reach: int
    sizes: tuple[int, ...]
    hits: int


@lru_cache(maxsize=256)
def _best(
    features: int,
    categories: tuple[int, ...],
    members: tuple[int, ...],
    epsilon: float,
    grid: tuple[int | None, int | None],
    sizes: tuple[int, ...] | None,
    hits: int | None,
) -> _Chosen:
    """Return the parameters of the fewest bits within `SLACK` of the least mean variance.

    Those that are given are held. All lists of subsets are compared on small grids, and the best of them on
    all grids.
    """
    if epsilon == 0.0:
        return _Chosen(grid[0] or 2, grid[1] or 0, sizes or (1,) * len(categories), hits or 1)
    points, near = grids(*grid)
    small = points + 2.0 * near <= _SMALL if len(points) > _FEW else np.full(len(points), True)
    count = sum(members)
    kept = np.array(few_numbers(count) if hits is None else [hits])
    lists = [
        Lists(categories, each, members, count, epsilon)
        for each in ([sizes] if sizes else subset_sizes(categories))
    ]
    tried = [_variances(features, epsilon, each, kept, points[small], near[small]) for each in lists]
    first = int(np.argmin([each.min() for each in tried]))
    column = int(np.argmin(tried[first].min(axis=0)))
    found = [
        (each, points[small], near[small], kept, costs) for each, costs in zip(lists, tried, strict=True)
    ]
    if not small.all():
        one = kept[column : column + 1]
        fine = _variances(features, epsilon, lists[first], one, points, near)
        found.append((lists[first], points, near, one, fine))
    least = min(each[-1].min() for each in found)
    best = None
    for each, levels, reach, numbers, costs in found:
        bits = features * np.ceil(np.log2(levels + 2.0 * reach)) + each.bits
        spent = np.where(costs <= (1.0 + SLACK) * least, bits[:, None], np.inf)
        cheapest = np.where(spent == spent.min(), costs, np.inf)
        row, place = np.unravel_index(np.argmin(cheapest), costs.shape)
        key = float(spent.min()), float(cheapest[row, place])
        if best is None or key < best[0]:
            best = key, _Chosen(int(levels[row]), int(reach[row]), each.sizes, int(numbers[place]))
    assert best is not None  # there is some list
    return best[1]


def _variances(
    features: int,
    epsilon: float,
    lists: Lists,
    hits: NDArray[np.int64],
    points: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the mean variance of numbers and indicators, shape (grids, hits); infinite where none is."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        likely = lists.likely[hits - 1, 0]
        own = (lists.gains() / lists.level[:, :, None])[hits - 1, 0]  # g over A/t', by hits and kind
        weights = lists.k * lists.n
        moment = (lists.unit / np.square(own)) @ weights / weights.sum()
        less = ((lists.k - 1.0) / np.square(lists.k)) @ weights / weights.sum()
        share = np.exp(features * np.log((2.0 * near + 1.0) / (points + 2.0 * near)))[:, None]
        level = share / (1.0 / math.expm1(min(epsilon, _BUDGET)) + share * likely)  # A/t'
        inside = level * likely
        beside = 1.0 / (math.expm1(min(epsilon, _BUDGET)) * share * likely)  # (1 - A)/A
        categories = moment / np.square(level) - less
        numbers = mean_moment(1.0 / inside, beside, points[:, None], near[:, None])
        result = (features * numbers + weights.sum() * categories) / (features + weights.sum())
    return np.where(np.isfinite(result), result, np.inf)
