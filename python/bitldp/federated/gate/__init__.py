"""Gate between a SuperNode and its app, a process of the node's owner: private reports alone pass it."""

from __future__ import annotations

from bitldp.federated.gate.confine import ConfinementError, confined
from bitldp.federated.gate.gate import Gate
from bitldp.federated.gate.runtime import AppRuntime, NodeRuntime

__all__ = ["AppRuntime", "ConfinementError", "Gate", "NodeRuntime", "confined"]
