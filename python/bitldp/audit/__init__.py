"""Empirical lower bounds on epsilon, from reports alone, beside the exact one.

A guarantee is computed from the numbers inside the sampler. An audit tests the reports that come out of it.
It draws many reports of several inputs, counts events, and computes lower bounds on their log-ratios at a
stated confidence. A bound above what the law allows proves a fault. The converse does not hold: a fault that
changes a probability P by less than about ``10 sqrt(P/n)`` remains undetected. `AuditResult.detectable`
states the size of a fault that would have been found.
"""

from __future__ import annotations

from bitldp.audit.audit import AuditResult, Event, audit

__all__ = ["AuditResult", "Event", "audit"]
