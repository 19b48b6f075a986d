"""LDPFL as a federated system."""

from __future__ import annotations

from bitldp.papers.ldpfl.system import SYSTEM, LDPFLSettings, client_app, server_app

__all__ = ["SYSTEM", "LDPFLSettings", "client_app", "server_app"]
