"""The common face of the named mechanisms: frozen, compared and pickled by parameters alone."""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.estimate.estimates import Estimate
from bitldp.privacy import Guarantee, PrivacyClaimWarning

if TYPE_CHECKING:
    from bitldp.estimate.accumulators import Accumulator


_M = TypeVar("_M", bound="Mechanism")


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(ABC):
    """A mechanism of local differential privacy: parameters in, reports out.

    A subclass is a frozen dataclass whose fields are its parameters. `_build` turns them into a channel and a
    guarantee. Two mechanisms are equal when their parameters are; a pickle holds the parameters only, so no
    state of a random stream can be copied with it. (There is none: keys live as long as one call.)
    """

    _guarantee: ClassVar[Guarantee]  # set on the instance, by _build; ClassVar keeps it out of the fields
    _no_mean: ClassVar[str] = "its reports are not numbers"
    _no_frequencies: ClassVar[str] = "its reports are not categories"
    _no_letters: ClassVar[str] = "the mean of its reports does not tell the input"

    def __post_init__(self) -> None:
        self._build()
        guarantee = self.guarantee
        if not guarantee.holds:
            covered = guarantee.record if guarantee.unit == "record" else guarantee.feature
            warnings.warn(
                f"{type(self).__name__}: claimed epsilon {guarantee.claimed:.6g} per {guarantee.unit}, but "
                f"the exact one is {covered:.6g} ({guarantee.record:.6g} per record, "
                f"{guarantee.feature:.6g} per feature)",
                PrivacyClaimWarning,
                stacklevel=3,  # here, the dataclass' __init__, the caller who constructs
            )

    @abstractmethod
    def _build(self) -> None:
        """Check the parameters, then set the channel and `_guarantee`."""

    def _set(self, **attributes: Any) -> None:
        """Set attributes of a frozen instance, while it is being built."""
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _quiet(cls: type[_M], **parameters: Any) -> _M:
        """Construct without the warning: for parts of a composite, and for unpickling."""
        mechanism = object.__new__(cls)
        for field in fields(cls):
            default = parameters[field.name] if field.default is MISSING else field.default
            object.__setattr__(mechanism, field.name, parameters.get(field.name, default))
        mechanism._build()
        return mechanism

    @property
    def guarantee(self) -> Guarantee:
        """Claimed and exact epsilon: `Guarantee`."""
        return self._guarantee

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters by name, in the order of the constructor."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values; arrays as a digest, functions by name.

        Returns
        -------
        dict
            ``{"name": ..., "parameters": {...}}``. Two mechanisms whose reports may be aggregated together
            have the same fingerprint.
        """
        return {
            "name": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
        }

    def _identity(self) -> Hashable:
        return (type(self), *(_frozen(value) for value in self.parameters.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mechanism) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Callable[..., Mechanism], tuple[type[Mechanism], dict[str, Any]]]:
        return _rebuild, (type(self), dict(self.parameters))

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the records, where the mechanism has one; see its own method.

        Raises
        ------
        ValueError
            Where it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequencies of the categories, where the mechanism has them; see its own method.

        Raises
        ------
        ValueError
            Where it has none. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no frequencies to estimate: {self._no_frequencies}")

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form."""

    def mean_variance(self) -> float:
        """Return the variance of one report's unbiased letter, averaged over inputs, where it has one.

        Raises
        ------
        ValueError
            Where no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")

    def worst_variance(self) -> float:
        """Return the variance of one report's unbiased letter for the worst input, where it has one.

        Raises
        ------
        ValueError
            Where no unbiased decode exists. The message says why.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased letters: {self._no_letters}")

    @abstractmethod
    def accumulator(self) -> Accumulator:
        """Return an empty accumulator of the mechanism's estimate."""


def _rebuild(kind: type[Mechanism], parameters: dict[str, Any]) -> Mechanism:
    return kind._quiet(**parameters)


def _digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _frozen(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, _digest(value))
    hashable: Hashable = value
    return hashable


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "dtype": value.dtype.str, "sha256": _digest(value)}
    if callable(value):
        return _name(value)
    return list(value) if isinstance(value, tuple) else value


def _name(function: Any) -> str:
    """Return a stable name of a callable, which may be an instance or a partial function."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _short(value: Any) -> str:
    if callable(value):
        return f"<{_name(value)}>"
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(str(axis) for axis in value.shape)}>"
    return repr(value)
