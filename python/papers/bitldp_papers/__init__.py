"""Federated systems of five papers, as Flower apps for one process or a network."""

from __future__ import annotations

from importlib import import_module

from bitldp.base.extras import require

require("bitldp_papers", ["flwr", "jax", "sklearn"], "fl")

from bitldp_papers.run.drive import Summary  # noqa: E402
from bitldp_papers.run.rounds import Privacy  # noqa: E402
from bitldp_papers.run.settings import Settings  # noqa: E402
from bitldp_papers.run.system import Runnable, System  # noqa: E402

__all__ = ["DEPLOYMENTS", "NAMES", "Privacy", "Runnable", "Settings", "Summary", "System", "get"]

#: The systems, each a module of this package with a constant ``SYSTEM``.
NAMES = ("bitrand", "ldpfl", "mvu", "fedsel", "brr")
#: Deployments that run by the same command, and are no paper's.
DEPLOYMENTS = ("honest",)


def get(name: str) -> Runnable:
    """Return a system, or a deployment, by its name.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    known = (*NAMES, *DEPLOYMENTS)
    if name not in known:
        raise ValueError(f"name: no system {name!r}; there are {', '.join(known)}")
    found: Runnable = import_module(f"{__name__}.{name}").SYSTEM
    return found
