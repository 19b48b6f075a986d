"""Privacy-aware compression: mechanisms whose reports are a few bits, found by optimisation or by formula."""

from __future__ import annotations

from bitldp.compression.vector_mvu import VectorMVU

__all__ = ["VectorMVU"]
