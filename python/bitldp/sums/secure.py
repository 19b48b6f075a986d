"""A secure sum: shares that hide each other, the sum that is left, and what it keeps to itself."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.accounting.loss_table import Curve, Normal
from bitldp.base import checks
from bitldp.base.keys import RandomSource, keys
from bitldp.codecs import Categories
from bitldp.estimate.estimates import Estimate
from bitldp.release.keyed import Ids, bound, keyed_randomness
from bitldp.sums.kinds import Central, Count, Histogram, Number, Room, SumKind
from bitldp.sums.laws import ShareLaw
from bitldp.sums.vector import Vector

__all__ = ["KINDS", "SecureSum", "SumEvidence", "SumGuarantee"]

KINDS: dict[str, type[SumKind]] = {"count": Count, "histogram": Histogram, "number": Number, "vector": Vector}
"""Kinds by their words."""

_NOISES = ("auto", "polya", "skellam", "signs")
_METHODS = ("auto", "exact", "certificate")
_MOST_CLIENTS = 1 << 24
_VERSION = 1
_LARGEST = 20.0  # epsilon, beyond which the integers of rare noise are few units
_POOR = 3.0  # a local epsilon above which we say that it is none worth the name


class SumEvidence(NamedTuple):
    """Numbers that epsilon rests on, for a second look.

    Attributes
    ----------
    law : str
        Of a share.
    table : str
        SHA-256 of its integers.
    entries, bits : int
        How many there are, over 2**bits.
    distance : float
        Total variation between a share's law and the one that the table stands for, rounded up.
    certificate : Central
        Guarantee at the floor by that distance alone, without a convolution.
    """

    law: str
    table: str
    entries: int
    bits: int
    distance: float
    certificate: Central


class SumGuarantee:
    """Central guarantee of a secure sum for every number of survivors, and the local one beside it.

    Neighbouring data sets differ in one record, which is replaced. The central guarantee holds against anyone
    who sees only the total. It is not a local guarantee, and no ledger adds the two.
    """

    def __init__(self, of: SecureSum) -> None:
        self._of = of

    def central(self, survivors: int | None = None, *, method: str = "auto") -> Central:
        """Return epsilon of the total of so many survivors.

        Parameters
        ----------
        survivors : int, optional
            Clients whose shares are in the total, from colluding + 1 to clients; those that collude are taken
            off. None: the least number that is not refused. Fewer are answered here, to show what the floor
            is for, although `decode` refuses them.
        method : {"auto", "exact", "certificate"}
            As the field `method` of the answer says: by convolution of the integers, or by the law that they
            stand for and the total variation, which is never less.

        Returns
        -------
        Central
            At the delta of the sum.

        Raises
        ------
        ValueError, TypeError
            For a number out of its range.
        """
        of = self._of
        least = of.least_survivors if survivors is None else survivors
        honest = checks.integer("survivors", least, of.colluding + 1, of.clients) - of.colluding
        return of.kind.central(of.law, honest, of.delta, checks.choice("method", method, _METHODS))

    def accounted(self, cost: float = 3.0) -> tuple[Curve | Normal, float]:
        """Return what `bitldp.accounting.account` composes over rounds, with the least number of survivors.

        Parameters
        ----------
        cost : float
            How many times of delta a total variation costs, about.

        Returns
        -------
        law : Curve or Normal
        lost : float
            Total variation between it and the total's law.
        """
        of = self._of
        return of.kind.accounted(of.law, of.least_survivors - of.colluding, of.delta, cost)

    @property
    def local(self) -> Central:
        """Guarantee of one share by itself, against anyone who sees it: far too weak to protect a record."""
        of = self._of
        return of.kind.central(of.law, 1, of.delta, "exact")

    def __str__(self) -> str:
        """Return three lines: the central guarantee, what it is between, and the local one."""
        central, local, of = self.central(), self.local, self._of
        worth = ": none worth the name" if local.epsilon > _POOR else ""
        kind = "exact" if central.exact else "at most"
        return (
            f"central epsilon {central.epsilon:.6g} with delta {central.delta:.3g} ({kind}), from "
            f"{of.least_survivors:,} of {of.clients:,} clients on\n"
            "between data sets that differ in one record, replaced\n"
            f"local epsilon of a share alone {local.epsilon:.3g} with delta {local.delta:.3g}{worth}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class SecureSum:
    """Sum of integers of which only the total is shown, with an exact central epsilon.

    Every client adds a share of noise to its own integers, modulo 2**bits. A party that adds up the shares
    without seeing any (a masking protocol, two servers that do not collude) shows the total, whose noise is
    that of all shares together. This class makes shares, adds and decodes totals, and accounts for privacy.
    It does not mask.

    Parameters
    ----------
    kind : SumKind
        What is summed: `Count()`, `Histogram(categories)`, `Number(interval, steps)`, ...
    epsilon : float
        Central epsilon of the total, above zero, between data sets that differ in one record, replaced.
    delta : float
        Delta of it, in (0, 1).
    clients : int
        n, how many are asked, 1 to 2**24.
    floor : int, optional
        h, the least number of honest survivors; their shares have enough noise. None: all clients that do not
        collude, so that none may drop out. If all clients answer, a floor of 90 % of the clients costs 11 %
        more variance, and one of 70 % costs 43 % more.
    colluding : int
        Number of clients that may disclose their share to someone who sees the total; they count as dropped.
    noise : {"auto", "polya", "skellam", "signs"}
        Law of a share. "auto" takes the kind's best.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a budget that no law of shares reaches.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.sums import Count, SecureSum
    >>> ill = SecureSum(Count(), epsilon=1.0, clients=1000, floor=900)
    >>> shares = ill.share(np.arange(1000) % 4 == 0, rng=1)
    >>> total = ill.add(shares)  # what a secure protocol shows, and nothing else
    >>> bool(abs(ill.decode(total, survivors=1000).value[0] - 250) < 20)
    True
    >>> central = ill.guarantee.central(900)
    >>> round(central.epsilon, 4), central.delta, central.exact
    (1.0, 1e-06, True)
    """

    kind: SumKind
    _: KW_ONLY
    epsilon: float
    delta: float = 1e-6
    clients: int
    floor: int | None = None
    colluding: int = 0
    noise: str = "auto"

    def __post_init__(self) -> None:
        """Check the parameters, and fit the distribution of a client's noise share."""
        if not isinstance(self.kind, SumKind):
            raise TypeError(f"kind: must be a kind of sum, such as Count(), not {type(self.kind).__name__}")
        clients = checks.integer("clients", self.clients, 1, _MOST_CLIENTS)
        colluding = checks.integer("colluding", self.colluding, 0, clients - 1)
        honest = clients - colluding
        floor = honest if self.floor is None else checks.integer("floor", self.floor, 1, honest)
        checked: dict[str, Any] = {
            "epsilon": checks.positive("epsilon", self.epsilon),
            "delta": checks.chance("delta", self.delta),
            "clients": clients,
            "floor": floor,
            "colluding": colluding,
            "noise": checks.choice("noise", self.noise, _NOISES),
        }
        if checked["epsilon"] > _LARGEST:
            raise ValueError(f"epsilon: must be at most {_LARGEST:g}, beyond which there is hardly any noise")
        checked["kind"] = self.kind.settled(checked["epsilon"], checked["delta"], clients, floor)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        reached = self.guarantee.central(method="certificate")
        if not reached.epsilon <= self.epsilon:
            raise ValueError(
                f"delta: {self.delta} is less than integers of {self.law.table.bits} bits keep for {floor} "
                f"shares; a larger one is needed"
            )
        if self._room is None:
            raise ValueError("clients: their sum does not fit 32 bits; fewer clients or steps do")

    @cached_property
    def law(self) -> ShareLaw:
        """Law of a share, by its integers."""
        return self.kind.fit(self.epsilon, self.delta, self._floor, self.noise)

    @property
    def _floor(self) -> int:
        assert self.floor is not None
        return self.floor

    @property
    def least_survivors(self) -> int:
        """Least number of survivors whose total may be shown: the floor and those that collude."""
        return self._floor + self.colluding

    @property
    def guarantee(self) -> SumGuarantee:
        """Guarantee of the total, by the number of survivors."""
        return SumGuarantee(self)

    # modulus

    @cached_property
    def _room(self) -> Room | None:
        return self.kind.room(self.law, self.clients)

    @property
    def bits(self) -> int:
        """Bits of an integer of a share, b: shares and totals are modulo 2**b. `bitldp.pack` packs them."""
        assert self._room is not None
        return self._room.bits

    @property
    def modulus(self) -> int:
        """Return 2**bits."""
        return 1 << self.bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """Smallest unsigned dtype that holds a share's integers."""
        return np.dtype(f"uint{8 if self.bits <= 8 else 16 if self.bits <= 16 else 32}")

    @property
    def wrap_bound(self) -> float:
        """Chance that any integer of the total wraps, at most, whatever the records are.

        Of vectors, whatever they are that do not depend on the public rotation.
        """
        assert self._room is not None
        return self._room.wraps

    # a client

    def share(self, x: ArrayLike, *, rng: RandomSource = None, threads: int | None = None) -> NDArray[Any]:
        """Return a client's input of the masking protocol: its integers with its share of noise.

        A share protects its record only by `guarantee.local`. It must not leave the client unmasked.

        Parameters
        ----------
        x : array_like
            A record as the kind takes it, or an array of many, each of which is one client's.
        rng : None, int, SeedSequence or Generator
            None: fresh random bits of the operating system. A seed is for tests.
        threads : int, optional
            Number of threads; the shares do not depend on it.

        Returns
        -------
        ndarray of unsigned int, shape (coordinates,) or (records, coordinates)
            Integers modulo 2**bits, of `dtype`.

        Raises
        ------
        ValueError, TypeError
            For records that the kind refuses.
        """
        return self._share(x, keys(rng, self.kind.streams + self.law.streams), threads)

    def share_keyed(
        self, x: ArrayLike, *, key: bytes, ids: Ids, context: bytes = b"", threads: int | None = None
    ) -> NDArray[Any]:
        """Return shares whose random bits are a function of a key, a record's id and the record.

        A retry gives the same share, so it reveals nothing more.

        Parameters
        ----------
        x : array_like
            Records as in `share`, an array of them.
        key : bytes
            32 secret bytes, which never appear in a repr, pickle, log or error.
        ids : ndarray of int, zero or more, shape (n,); of uint8, shape (n, 32); or sequence of n bytes
            Ids of the records: numbers, digests of 32 bytes, or names, which are hashed with SHA-256.
        context : bytes
            Purpose of the randomness: the name of the sum and the snapshot.
        threads : int, optional
            Number of threads.

        Returns
        -------
        ndarray of unsigned int, shape (records, coordinates)
        """
        values = np.asarray(x)
        about = b"bitldp sum 1 " + self.digest.encode() + b" " + context
        randomness = keyed_randomness(key, ids, about, 0, False)
        plain, _ = self.kind.encode(values, [None] * self.kind.streams, threads)
        del plain  # refused records are refused before the key is used
        coded = values if values.dtype.kind in "biuf" else _codes_of(self.kind, values)
        randomness = bound(randomness, [np.ascontiguousarray(coded, dtype=np.float64)], threads)
        streams = self.kind.streams + self.law.streams
        return self._share(values, [randomness.stage(stage) for stage in range(streams)], threads)

    def share_neutral(self, *, rng: RandomSource = None, threads: int | None = None) -> NDArray[Any]:
        """Return the share of a client that has no record, or whose record cannot be had: noise as any other.

        It stands for no in a count, for the middle of the interval among numbers, for zeros among vectors,
        and for no category in a histogram. The guarantee of the total holds between a record and this, too.

        Parameters
        ----------
        rng : None, int, SeedSequence or Generator
            None: fresh random bits of the operating system. A seed is for tests.
        threads : int, optional
            Number of threads; the share does not depend on it.

        Returns
        -------
        ndarray of unsigned int, shape (coordinates,)
            Integers modulo 2**bits, of `dtype`.

        Examples
        --------
        >>> from bitldp.sums import Histogram, SecureSum
        >>> answers = SecureSum(Histogram(3), epsilon=1.0, clients=100)
        >>> answers.share_neutral(rng=1).shape
        (3,)
        """
        threads, _ = checks.stream(threads, 0)
        sources = keys(rng, self.law.streams)
        noise = self.law.sample((1, self.kind.coordinates), sources, threads)
        return self._modular(noise + self.kind.neutral)[0]

    def _share(self, x: ArrayLike, sources: list[Any], threads: int | None) -> NDArray[Any]:
        threads, _ = checks.stream(threads, 0)
        shares, single = self.kind.noised(x, self.law, sources, threads)
        result = self._modular(shares)
        return result[0] if single else result

    def _modular(self, shares: NDArray[Any]) -> NDArray[Any]:
        """Return whole numbers modulo 2**bits."""
        return (shares.astype(np.uint32) & np.uint32(self.modulus - 1)).astype(self.dtype, copy=False)

    # the total

    def add(self, *shares: ArrayLike) -> NDArray[Any]:
        """Return the sum of shares or of totals, modulo 2**bits.

        Parameters
        ----------
        *shares : array_like of int, shape (coordinates,) or (records, coordinates)
            Shares or totals, any number of them.

        Returns
        -------
        ndarray of unsigned int, shape (coordinates,)

        Raises
        ------
        ValueError, TypeError
            For arrays of another shape, or of other numbers.
        """
        total = np.zeros(self.kind.coordinates, np.uint64)
        for each in shares:
            total += self._integers("shares", each).sum(axis=0, dtype=np.uint64)
        return (total & np.uint64(self.modulus - 1)).astype(self.dtype)

    def decode(self, total: ArrayLike, survivors: int) -> Estimate:
        """Return the estimate from a total of the records in it.

        Parameters
        ----------
        total : array_like of int, shape (coordinates,)
            Modulo 2**bits.
        survivors : int
            Clients whose shares are in it, from `least_survivors` to `clients`; it is public.

        Returns
        -------
        Estimate
            Counts for `Count` and `Histogram`, the mean for `Number`. It refers to the records that were
            added, not to a population: `stderr` and intervals cover the noise only.

        Raises
        ------
        ValueError, TypeError
            For a total of another shape, and for fewer survivors than the floor: their noise is too little.
        """
        survivors = self._survivors(survivors)
        integers = self._integers("total", total)
        if len(integers) != 1:
            raise ValueError(f"total: one is needed, got {len(integers)}")
        assert self._room is not None
        # the least sum that there is room for lies at 0
        least = survivors * self._room.low - self._room.margin
        sums = ((integers[0].astype(np.int64) - least) & (self.modulus - 1)) + least
        return self.kind.estimate(sums, self.law, survivors)

    def _survivors(self, survivors: Any) -> int:
        """Return the number of survivors, or refuse it."""
        number = checks.integer("survivors", survivors, 0, self.clients)
        if number < self.least_survivors:
            raise ValueError(
                f"survivors: {number} are below the floor of {self.least_survivors}: "
                "their noise is too little, and the sum is refused"
            )
        return number

    def _integers(self, name: str, values: ArrayLike) -> NDArray[Any]:
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name}: must be integers, not {array.dtype}")
        if array.ndim == 1:
            array = array[None, :]
        if array.ndim != 2 or array.shape[1] != self.kind.coordinates:
            raise ValueError(
                f"{name}: shape must be ({self.kind.coordinates},) or "
                f"(records, {self.kind.coordinates}), got {np.shape(values)}"
            )
        if array.size and (int(array.min()) < 0 or int(array.max()) >= self.modulus):
            raise ValueError(f"{name}: must be from 0 to 2**{self.bits} - 1")
        return array

    # what it is worth, and what it rests on

    def stderr(self, survivors: int | None = None) -> float:
        """Return the standard deviation of the noise of the total, in steps of the sum.

        Parameters
        ----------
        survivors : int, optional
            From 1 to clients. None: the floor.
        """
        shares = self._floor if survivors is None else checks.integer("survivors", survivors, 1, self.clients)
        return math.sqrt(shares * self.law.variance)

    @property
    def overhead(self) -> float:
        """Standard deviation of the noise at the floor, over that of central Gaussian noise.

        Of vectors with the most that their dither adds to it: its square is the mean squared error's.
        """
        spread = math.sqrt(self._floor * (self.law.variance + self.kind.dither))
        return spread / self.kind.gaussian(self.epsilon, self.delta)

    @property
    def trust(self) -> tuple[str, str, str, str]:
        """Who must do what for the central guarantee to hold: four lines, none of which a report can show."""
        most = self.colluding
        tell = f"at most {most:,} of the clients tell their noise, or leave it out"
        colluders = tell if most else "no client tells its noise, or leaves it out"
        return (
            f"the sum protocol shows nobody anything but the total of all survivors, modulo 2**{self.bits}",
            f"every client refuses to unmask the total of fewer than {self.least_survivors:,} survivors",
            f"{colluders}: whoever does counts as dropped",
            "every client adds one record, once, with fresh random bits of its own",
        )

    @property
    def evidence(self) -> SumEvidence:
        """Digest of the table, and the certificate of epsilon without a convolution."""
        table = self.law.table
        certificate = self.guarantee.central(method="certificate")
        return SumEvidence(
            self.law.name, table.digest, len(table.weights), table.bits, self.law.distance, certificate
        )

    def terms(self) -> dict[str, int | str]:
        """Return all that both sides must agree on, as integers and decimal text.

        A client pins them in its own configuration, and refuses others. `digest` is that of these terms.
        """
        return {
            "version": _VERSION,
            **self.kind.terms(),
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "clients": self.clients,
            "floor": self._floor,
            "colluding": self.colluding,
            "coordinates": self.kind.coordinates,
            "bits": self.bits,
            "noise": self.law.name,
            **self.law.parameters(),
            "table": self.law.table.digest,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the terms as JSON with sorted names and without spaces, in hexadecimal digits."""
        text = json.dumps(self.terms(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> SecureSum:
        """Return the sum that terms describe.

        Raises
        ------
        ValueError
            If they are not the terms of any sum, or their table is not the one that these parameters have.
        """
        kind = KINDS.get(str(terms.get("kind")))
        if terms.get("version") != _VERSION or kind is None:
            raise ValueError("terms: of another version, or of no kind of sum that is known")
        try:
            made = cls(
                kind.from_terms(terms),
                epsilon=float(terms["epsilon"]),
                delta=float(terms["delta"]),
                clients=int(terms["clients"]),
                floor=int(terms["floor"]),
                colluding=int(terms["colluding"]),
                noise=str(terms["noise"]),
            )
        except KeyError as error:
            raise ValueError(f"terms: lack {error.args[0]}") from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"terms: {error}") from None
        if made.terms() != dict(terms):
            raise ValueError("terms: do not agree with the sum that their parameters describe")
        return made

    def __eq__(self, other: object) -> bool:
        """Return whether the terms are the same."""
        return isinstance(other, SecureSum) and self.digest == other.digest

    def __hash__(self) -> int:
        """Return a hash of the terms."""
        return hash(self.digest)

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return (
            f"SecureSum({self.kind!r}, epsilon={self.epsilon}, delta={self.delta}, clients={self.clients}, "
            f"floor={self.floor}, colluding={self.colluding}, noise={self.noise!r})"
        )


def _codes_of(kind: SumKind, values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers for the labels of records, which randomness is bound to."""
    if isinstance(kind, Histogram) and isinstance(kind.categories, Categories):
        return kind.categories.encode(values)
    return values
