"""Federated systems of five papers, as Flower apps for one process or a network."""

from __future__ import annotations

from importlib import import_module

from bitldp.base.extras import require

require("bitldp.papers", ["flwr", "jax", "sklearn"], "fl")

from bitldp.papers.run.drive import Privacy, Summary  # noqa: E402
from bitldp.papers.run.settings import Settings  # noqa: E402
from bitldp.papers.run.system import System  # noqa: E402

__all__ = ["NAMES", "Privacy", "Settings", "Summary", "System", "get"]

#: The systems, each a module of this package with a constant ``SYSTEM``.
NAMES = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")


def get(name: str) -> System:
    """Return a system by its name.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    if name not in NAMES:
        raise ValueError(f"name: no system {name!r}; there are {', '.join(NAMES)}")
    system: System = import_module(f"{__name__}.{name}").SYSTEM
    return system
