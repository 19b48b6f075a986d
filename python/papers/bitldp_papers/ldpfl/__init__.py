"""LDPFL as a federated system."""

from __future__ import annotations

from bitldp_papers.ldpfl.settings import LDPFLSettings
from bitldp_papers.ldpfl.system import SYSTEM, client_app, server_app

__all__ = ["SYSTEM", "LDPFLSettings", "client_app", "server_app"]
