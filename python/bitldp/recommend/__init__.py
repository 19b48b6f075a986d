"""Recommendation of the mechanism with the least variance for a task."""

from __future__ import annotations

from bitldp.recommend.candidates import REGISTRY
from bitldp.recommend.recommend import Recommendation, recommend

__all__ = ["REGISTRY", "Recommendation", "recommend"]
