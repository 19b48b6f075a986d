"""FedSel as a federated system."""

from __future__ import annotations

from bitldp_papers.fedsel.system import SYSTEM, FedSelSettings, client_app, server_app

__all__ = ["SYSTEM", "FedSelSettings", "client_app", "server_app"]
