"""BitRand as a federated system."""

from __future__ import annotations

from bitldp_papers.bitrand.settings import BitRandSettings
from bitldp_papers.bitrand.system import SYSTEM, client_app, server_app

__all__ = ["SYSTEM", "BitRandSettings", "client_app", "server_app"]
