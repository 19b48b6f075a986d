"""Offline solvers: mechanisms found by optimisation and rounded to exact integers.

`bitldp.design.mvu` has the mechanisms of least variance behind `bitldp.MVU`. Solving needs the extra
``design`` (SciPy); shipped and cached designs load without it. `bitldp.design.workload`, behind
`bitldp.WorkloadDesign`, needs only NumPy. A `Certificate` says how near a design is to a bound that no
mechanism can beat.
"""

from __future__ import annotations

from bitldp.design.certificate import Certificate
from bitldp.design.result import Design, DesignError

__all__ = ["Certificate", "Design", "DesignError"]
