"""BRR-SGD and the other experiments of BRR as a federated system."""

from __future__ import annotations

from bitldp_papers.brr.system import SYSTEM, BRRSettings, client_app, server_app

__all__ = ["SYSTEM", "BRRSettings", "client_app", "server_app"]
