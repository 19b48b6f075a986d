"""Sets of items: one item of the padded set is sampled in secret, and released alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.categorical.blocks import BlockDesign, correlated
from bitldp.categorical.hashing import OLH
from bitldp.categorical.responses import GRR
from bitldp.client.codec import Item
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.base import Mechanism, Part
from bitldp.mechanism.frequencies import Labelled, TwoChances, labelled
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.parameters import Budget, CategoryNames, categories, one_of, whole
from bitldp.privacy import Guarantee, calibrated
from bitldp.record.choice import thriftiest
from bitldp.release.base import Call
from bitldp.release.draws import sampled_items
from bitldp.release.window import WindowRelease, drawn_in_secret, window

__all__ = ["ItemSet", "Items", "Padded", "Padding", "amplified", "exact_amplified"]

_MOST = 1 << 20  # items, and so columns of a record
_ORACLES = ("GRR", "BlockDesign", "OLH")

Items = Annotated[CategoryNames, categories(_MOST)]
Padding = Annotated[int, whole(1, 1 << 16)]


def exact_amplified(release: WindowRelease, size: int) -> float:
    """Return the exact epsilon between any two sets, rounded up."""
    return drawn_in_secret(release.channel, size) if release.epsilon else 0.0


@lru_cache(maxsize=64)
def amplified(symbols: int, size: int, epsilon: float) -> WindowRelease:
    """Return randomized response at ln(size (e^epsilon - 1) + 1), which is epsilon between any two sets.

    Source: Wang, Li and Jha 2018, Theorem 1.
    """

    def build(target: float) -> WindowRelease:
        spent = target + math.log(size - (size - 1) * math.exp(-target))  # the same, without overflow
        return window(symbols, 1, spent if target else 0.0)

    return calibrated(build, epsilon, lambda release: exact_amplified(release, size))


class Padded(Labelled):
    """Base of the records of which one item is drawn, after padding, and released by a mechanism of items.

    Not a dataclass: a subclass sets `_inner`, the mechanism of the drawn item, while it is built.
    """

    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10
    _alike: ClassVar[bool] = False
    _inner: Any
    padding: int

    @property
    def columns(self) -> int:
        """Items that a record may hold."""
        return self._size

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: that of the drawn item."""
        parts: tuple[Part, ...] = self._inner._report_parts
        return parts

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the guarantee of the whole report: the law of the drawn item says more than that."""
        return (Symbols((self.guarantee,), 1),)

    def _join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of one array of shape (n, columns) for each part."""
        reports = self._inner._join(parts)
        alone = isinstance(reports, np.ndarray) and reports.shape[1:] == (1,)
        return reports[:, 0] if alone else reports

    def _program(self, numbers: Type) -> ClientProgram:
        record = self._client_record()
        if self.labels is not None:
            record = replace(record, names=tuple(map(str, self.labels)))
        codec = Item(self._size, self.padding, record.gaps)
        return replace(self._inner._program(numbers), record=record, codec=codec)

    def _client_record(self) -> ClientRecord:
        """Return what a client gives of a record: whether it holds each item."""
        return ClientRecord.of_codes(2, self._size)

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: three items a record."""
        return {"epsilon": epsilon, "categories": cls._usual_size if size is None else size, "padding": 3}


@dataclass(frozen=True, eq=False, repr=False)
class ItemSet(Padded, TwoChances):
    """Item sets by padding and sampling: for the number of records that hold each item.

    A set is padded with dummies to `padding` items. One of them is drawn in secret and released by randomized
    response, whose privacy the secret draw amplifies, or by another oracle.

    Parameters
    ----------
    categories : int, sequence or Categories
        Items d, 2 to 2**20: how many, or their labels.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    padding : int
        Public number l of items that a set is padded to, 1 to 65,536: about the 90th percentile of the set
        sizes. A smaller l loses items of larger sets (see Notes). A larger l costs variance, l**2 times that
        of one category.
    oracle : {"best", "GRR", "BlockDesign", "OLH"}
        Mechanism that releases the drawn item. "best": among those within 2 % of the least variance for a
        rare item, the one with the fewest bits. The attribute then holds the chosen name.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A record is a row of d zeros and ones (`indicators` makes them from lists of items). Neighbouring records
    are any two sets of any sizes, including the empty set.

    Estimates are unbiased for sets of at most l items. An item of a set of m > l items is drawn with
    probability 1/m, not 1/l, so such a set counts l/m. The estimate is the mean over records of ``1[item in
    set] min(1, l/m)``, which never exceeds the frequency. Frequencies of items sum to the mean size, not to
    1, and are not projected.

    Randomized response on the d + l items and dummies has the epsilon ln(l (e^epsilon - 1) + 1), which the
    draw reduces to epsilon: exactly, by the integers of response and draw. Other oracles are not amplified:
    their blocks or hashes count for several items, which may be all items of a set. Randomized response is
    the best oracle while d + l is below about 4 l**2 e^epsilon.

    The draw finds the item by its position in the set, with the same steps for every set. Source: Wang, Li
    and Jha, "Locally differentially private frequent itemset mining", IEEE S&P 2018, Sections IV and V.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.ItemSet(["tea", "milk", "bread", "eggs"], epsilon=2.0, padding=2)
    >>> baskets = mechanism.indicators([["tea", "milk"], ["bread"], []] * 20_000)
    >>> estimate = mechanism.estimate_frequencies(mechanism.randomize(baskets, rng=1))
    >>> bool(np.all(np.abs(estimate.value - [1 / 3, 1 / 3, 1 / 3, 0.0]) < 0.05))
    True
    """

    categories: Items
    _: KW_ONLY
    epsilon: Budget
    padding: Padding
    oracle: Annotated[str, one_of("best", *_ORACLES)] = "best"

    _exclusive: ClassVar[bool] = False
    _no_mean: ClassVar[str] = "its reports are items; use estimate_frequencies"

    # Derived of the parameters while the mechanism is built.
    _inner: Any = field(init=False, repr=False, compare=False)
    _chances: tuple[float, float] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        if self._name(self.categories) > _MOST:  # labels, of which there may be more
            raise ValueError(f"categories: must be at most {_MOST}, got {self._size}")
        names = _ORACLES if self.oracle == "best" else (self.oracle,)
        made, refused = [], ValueError("oracle: no mechanism takes so many items")
        for name in names:
            try:
                made.append(self._oracle(name))
            except ValueError as error:  # too many items for it
                refused = error
        if not made:
            raise refused
        laws = [self._of_item(each) for each in made]
        best = 0
        if self.epsilon and len(made) > 1:
            costs = [q * (1.0 - q) / (p - q) ** 2 if p > q else math.inf for p, q in laws]
            best = thriftiest(costs, [each.report_bits for each in made])
        inner = made[best]
        amplifies = isinstance(inner, GRR)
        exact = exact_amplified(inner._release, self.padding) if amplifies else inner.guarantee.record
        self._set(
            oracle=type(inner).__name__,
            _inner=inner,
            _chances=laws[best],
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    def _oracle(self, name: str) -> Any:
        symbols = self._size + self.padding
        if name != "GRR":
            return {"BlockDesign": BlockDesign, "OLH": OLH}[name](symbols, epsilon=self.epsilon)
        release = amplified(symbols, self.padding, self.epsilon)
        # As the same mechanism would be built; its own guarantee is of the drawn item, and says more.
        return GRR(symbols, epsilon=release.epsilon)

    def _of_item(self, inner: Any) -> tuple[float, float]:
        """Return the chances that a report counts for an item of a set that holds it, and of another."""
        p, q = inner._release.chances() if isinstance(inner, GRR) else inner.probabilities()
        return q + (p - q) / self.padding, q

    @property
    def drawn(self) -> Mechanism:
        """The mechanism of the drawn item, among items and dummies; its own guarantee is not amplified."""
        inner: Mechanism = self._inner
        return inner

    @property
    def _cells(self) -> int:
        return self._size

    @property
    def _streams(self) -> int:
        return 1 + int(self._inner._streams)

    def indicators(self, sets: Iterable[Iterable[Any]]) -> NDArray[np.uint8]:
        """Return lists of items as the rows of zeros and ones that `randomize` takes.

        Parameters
        ----------
        sets : iterable of iterables
            The items of each record: integers from 0, or labels. Repeated items count once.

        Returns
        -------
        ndarray of uint8, shape (n, categories)

        Raises
        ------
        ValueError, TypeError
            For an unknown item.
        """
        lists = [list(each) for each in sets]
        table = np.zeros((len(lists), self._size), np.uint8)
        rows = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
        flat = [item for each in lists for item in each]
        if flat:
            table[rows, checks.codes("sets", self._codes_of("sets", flat), self._size)] = 1
        return table

    def _admit(self, x: Any) -> NDArray[Any]:
        values = checks.plain("x", x)
        return values.view(np.uint8) if values.dtype == np.bool_ else values

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        checks.records("x", x, self._size)
        members = checks.codes("x", x, 2).reshape(-1, self._size).astype(np.bool_)
        codes = sampled_items(members, self.padding, call.keys[-1], call.first_chunk)
        return self._inner._perturb(codes, call._replace(keys=call.keys[:-1]))

    def _check_informative(self) -> tuple[float, float]:
        if self.guarantee.record == 0.0:
            raise self._uninformative("sets")
        return self._chances

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the items' counts; see `Mechanism.accumulator`."""
        return _ItemCounts(self, (self._size,), self._count, self._check_informative(), exclusive=False)

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        inner = self._inner
        n, counts = inner._count(reports, records, threads)
        order = inner.channel.order if isinstance(inner, BlockDesign) else None
        if order is not None:  # blocks that are translates, whose cells were counted
            counts = correlated(counts, order[: inner.blocks.width])
        return n, counts[: self._size]

    def _supported(self, reports: Any, items: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether reports count for items, shape (n, len(items)); checks the reports."""
        if isinstance(self._inner, GRR):
            supported: NDArray[np.bool_] = self._inner.decode(reports)[..., None] == items
            return supported
        found: NDArray[np.bool_] = self._inner._support(reports, items)
        return found

    def _support_sizes(self) -> tuple[int, int]:
        fewest, most = self._inner._support_sizes()
        return max(0, fewest - self.padding), min(most, self._size)

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of reports: their mean over the random bits is the row of a set.

        Parameters
        ----------
        reports : array_like
            As `randomize` gives them.

        Returns
        -------
        ndarray of float64
            (1 - q)/(p - q) for the items that a report counts for and -q/(p - q) for the others, in one more
            axis of length `categories`.

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for anything but reports.
        """
        p, q = self._check_informative()
        supported = self._supported(reports, np.arange(self._size))
        return np.where(supported, (1.0 - q) / (p - q), -q / (p - q))

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every item, in closed form.

        Parameters
        ----------
        x : array_like of 0 and 1, shape (n, categories) or (items,)
            Sets of at most `padding` items.

        Returns
        -------
        ndarray of float64
            p(1 - p)/(p - q)^2 for the items of a set, q(1 - q)/(p - q)^2 for others, in the shape of `x`.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), for a larger set, or anything but such rows.
        """
        p, q = self._check_informative()
        checks.records("x", x, self._size)
        sets = checks.codes("x", self._admit(x), 2)
        if (sets.sum(axis=-1) > self.padding).any():
            raise ValueError(f"x: a set of more than padding={self.padding} items has no unbiased indicators")
        return np.where(sets == 1, p * (1.0 - p), q * (1.0 - q)) / (p - q) ** 2

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return the sets of the first and of the last items; see `Mechanism.extremes`.

        With `GRR` the law of the report is included.
        """
        rows = np.zeros((2, self._size), np.uint8)
        if pair is None:
            rows[0, : self.padding] = 1
            rows[1, -1] = 1
        else:
            rows[:] = [checks.codes("pair", self._admit(each), 2) for each in pair]
        inputs, names = [rows[0], rows[1]], ["one set", "another"]
        if not isinstance(self._inner, GRR):
            return Experiment(inputs, names)
        p, q = self._inner._release.chances()
        table = np.full((2, 1, self._size + self.padding), q)
        for row, members in zip(table[:, 0], rows.astype(np.bool_), strict=True):
            held = int(members.sum())
            shares = np.zeros(len(row))
            shares[: self._size] = members
            shares[self._size : self._size + max(0, self.padding - held)] = 1.0
            np.add(row, (p - q) * shares / max(held, self.padding), out=row)
        block = Block(table, lambda _, value: f"{value} is reported")
        return Experiment(inputs, names, [block], [(0, 1)], {"output": "codes"})

    def _facts(self, users: int | None = None) -> Mapping[str, Any]:  # type: ignore[override]
        """Return the chances of a report, and the errors of a frequency; see `Mechanism._facts`."""
        try:
            p, q = self._check_informative()
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        rare = self.frequency_variance()
        errors = {"frequency_variance": rare}
        if users is not None:
            errors["a_frequency_that_nobody_has"] = math.sqrt(rare / users)
        return {"probabilities": {"own_item": p, "another_item": q}, "errors": errors}


class _ItemCounts(CountAccumulator):
    """Counts of items, whose frequencies sum to no 1 and so are not projected."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        if project:
            raise ValueError("project: not supported, for frequencies of items do not sum to 1")
        return labelled(self.mechanism, super().estimate())
