"""Attacks on clients' reports: linkage, membership, and inversion of gradients."""

from __future__ import annotations

from bitldp.privacy import ceiling

from bitldp_papers.attacks.inversion import inversion
from bitldp_papers.attacks.linkage import linkage
from bitldp_papers.attacks.membership import membership
from bitldp_papers.attacks.subjects import Attacked

__all__ = ["ATTACKS", "Attacked", "ceiling", "inversion", "linkage", "membership"]

#: The attacks by name; each takes a data set, seeds, budgets and a number of trials.
ATTACKS = {"linkage": linkage, "membership": membership, "inversion": inversion}
