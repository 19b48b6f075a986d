"""Settings of a system: a frozen dataclass, to and from the scalars of a Flower run's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

from bitldp.base import checks

__all__ = ["Settings", "dashed"]

_S = TypeVar("_S", bound="Settings")

#: Where a run is kept and how it is executed: these may differ when it is resumed.
_ASIDE = frozenset({"out", "resume"})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of every system; each adds fields of its own, of type str, int, float or bool.

    Attributes
    ----------
    data : str
        A data set of `bitldp_papers.data`.
    clients, rounds : int
        Number of clients, and of rounds.
    epsilon : float
        Budget of a client, over all rounds together.
    seed : int
        Of the deal of the records, of the initial model and of the order of training. Of a release only where
        the client's own configuration says so: see `Client`.
    out : str
        Folder of the run on the server: settings, metrics, checkpoint, summary.
    resume : bool
        Whether to go on from the checkpoint in `out`.
    """

    data: str = "digits"
    clients: int = 10
    rounds: int = 10
    epsilon: float = 1.0
    seed: int = 1
    out: str = ""
    resume: bool = False

    #: Settings by the name of a preset: "quick" is a run of under a minute on two cores, "paper" what the
    #: paper says, "honest" what keeps an epsilon that is true, where there is one.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    #: In what the preset "paper" differs from the paper: data and scale. A run of it ends with this.
    differences: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the settings of all systems; a subclass checks its own and calls this."""
        checks.integer("clients", self.clients, 1, 1 << 20)
        checks.integer("rounds", self.rounds, 1, 1 << 20)
        checks.budget("epsilon", self.epsilon)
        checks.integer("seed", self.seed, 0)

    @property
    def private(self) -> bool:
        """True where a mechanism releases what a client computes from its records."""
        return True

    def config(self) -> dict[str, Any]:
        """Return the scalars of ``Context.run_config``, named with dashes as in Flower's own."""
        return dashed(asdict(self))

    @classmethod
    def of(cls: type[_S], config: Mapping[str, Any]) -> _S:
        """Return the settings in a run's configuration; other keys are Flower's.

        Raises
        ------
        ValueError, TypeError
            For a value of the wrong type or out of its range; the message names it.
        """
        values: dict[str, Any] = {}
        for field in fields(cls):
            key = field.name.replace("_", "-")
            if key in config:
                values[field.name] = _typed(field.name, config[key], type(field.default))
        return cls(**values)

    def federation(self) -> dict[str, Any]:
        """Return the options of Flower's strategies: all clients train, the server evaluates."""
        return {
            "fraction_train": 1.0,
            "fraction_evaluate": 0.0,
            "min_train_nodes": self.clients,
            "min_available_nodes": self.clients,
        }

    def lasting(self) -> dict[str, Any]:
        """Return the settings that a resumed run must share."""
        return {name: value for name, value in asdict(self).items() if name not in _ASIDE}


def dashed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by names with dashes, as in Flower's configuration."""
    return {name.replace("_", "-"): value for name, value in values.items()}


def _typed(name: str, value: Any, kind: type) -> Any:
    """Return a scalar of the type that a field has; an integer is a fine float, nothing else is."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{name}: must be {kind.__name__}, not {type(value).__name__}")
    return value
