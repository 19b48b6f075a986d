"""Federated systems of five papers, as Flower apps for one process or a network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bitldp.base.errors import require

if TYPE_CHECKING:
    from bitldp_papers.run.drive import Summary
    from bitldp_papers.run.rounds import Privacy
    from bitldp_papers.run.settings import Settings
    from bitldp_papers.run.system import Runnable, System

__all__ = ["DEPLOYMENTS", "NAMES", "Privacy", "Runnable", "Settings", "Summary", "System", "get"]

#: The systems, each a module of this package with a constant ``SYSTEM``.
NAMES = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")
#: Runs by the same command that are no paper's.
DEPLOYMENTS = ("honest", "sum")

#: Imported when they are asked for: Flower and jax take seconds, which the commands' help need not.
_LATER = {
    "Privacy": "run.rounds",
    "Runnable": "run.system",
    "Settings": "run.settings",
    "Summary": "run.drive",
    "System": "run.system",
}


def get(name: str) -> Runnable:
    """Return a system, or a deployment, by its name.

    Raises
    ------
    ValueError
        For an unknown name.
    MissingExtraError
        Without Flower, jax or scikit-learn.
    """
    known = (*NAMES, *DEPLOYMENTS)
    if name not in known:
        raise ValueError(f"name: no system {name!r}; there are {', '.join(known)}")
    _require()
    system: Runnable = import_module(f"{__name__}.{name}").SYSTEM
    return system


def __getattr__(name: str) -> Any:
    """Return a class that is imported late."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _require()
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def _require() -> None:
    require("bitldp_papers", ["flwr", "jax", "sklearn"], "papers")
