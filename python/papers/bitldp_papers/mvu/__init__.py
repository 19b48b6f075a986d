"""Federated learning with MVU, as a system."""

from __future__ import annotations

from bitldp_papers.mvu.system import SYSTEM, MVUSettings, client_app, server_app

__all__ = ["SYSTEM", "MVUSettings", "client_app", "server_app"]
