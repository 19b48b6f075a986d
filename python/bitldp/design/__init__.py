"""Offline solvers: mechanisms found by optimisation and rounded to exact integers.

`bitldp.design.mvu` has the mechanisms of least variance behind `bitldp.MVU`. Solving needs the extra
``design`` (SciPy); what is shipped or cached is loaded without it. `bitldp.design.workload`, behind
`bitldp.WorkloadDesign`, needs NumPy alone; a `Certificate` says how near a design is to what none can beat.
"""

from __future__ import annotations

from bitldp.design.certificate import Certificate
from bitldp.design.result import Design, DesignError

__all__ = ["Certificate", "Design", "DesignError"]
