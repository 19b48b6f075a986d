"""Learning at an epsilon that is true: every client sends one report in its life, of one gradient."""

from __future__ import annotations

from bitldp_papers.honest.system import SYSTEM

__all__ = ["SYSTEM"]
