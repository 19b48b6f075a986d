"""Offline solvers: mechanisms found by optimisation and rounded to exact integers.

`bitldp.design.mvu` has the mechanisms of least variance behind `bitldp.MVU`. Solving needs the extra
``design`` (SciPy); what is shipped or cached is loaded without it.
"""

from __future__ import annotations

from bitldp.design.result import Design, DesignError

__all__ = ["Design", "DesignError"]
