"""Empirical lower bounds on epsilon, from reports alone, beside the exact one.

A guarantee is a statement about numbers inside the sampler; an audit is one about what comes out of it. It
draws many reports of several inputs, counts events, and bounds their log-ratios from below at a stated
confidence. A bound above what the law allows proves a fault. The converse does not hold: a fault that moves a
probability P by less than about ``10 sqrt(P/n)`` stays unseen. `AuditResult.detectable` says how large one is
that would have been found.
"""

from __future__ import annotations

from bitldp.audit.audit import AuditResult, Event, audit

__all__ = ["AuditResult", "Event", "audit"]
