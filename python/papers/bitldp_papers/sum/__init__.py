"""Learning in one round from a secure sum: only the total of all clients' shares is shown."""

from __future__ import annotations

from bitldp_papers.sum.system import SYSTEM

__all__ = ["SYSTEM"]
