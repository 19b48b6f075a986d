"""What an audit knows of releases of a candidate: a table or a window, in each public region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.known.setting import INPUTS, matrix_rows, of_rows, place, setting, spread, window_rows
from bitldp.audit.law import Setting
from bitldp.points.base import CandidateRelease
from bitldp.release.table import TableLaw


def _rows(law: Any) -> Callable[[int], NDArray[np.float64]]:
    return matrix_rows(law.channel) if isinstance(law, TableLaw) else window_rows(law)


@setting.register
def _(mechanism: CandidateRelease, pair: tuple[Any, Any] | None) -> Setting | None:
    count = len(mechanism.points)
    points = mechanism.points if mechanism._grid is not None else None
    chosen = place(pair, count, points)
    if chosen is None:  # a value between the candidates: its row is a matter of the rounding
        return None
    if mechanism.regions is None:
        return of_rows(_rows(mechanism._law), count, count, chosen, mechanism._columns, points)
    region_of, places = mechanism._homes

    def row(x: int) -> NDArray[np.float64]:
        part = mechanism._regions[region_of[x]]
        whole = np.zeros(count)
        whole[part.members] = _rows(part.law)(int(places[x]))
        return whole

    if not chosen:  # the two ends of each region, and what lies between them in the region of greatest loss
        worst = max(range(len(mechanism._regions)), key=lambda each: mechanism._regions[each].law.epsilon)
        ends = [
            int(part.members[end])
            for part in mechanism._regions[: INPUTS // 2]
            for end in (0, len(part.members) - 1)
        ]
        members = mechanism._regions[worst].members
        chosen = list(dict.fromkeys([int(members[each]) for each in spread(len(members), INPUTS)] + ends))
    found = of_rows(row, count, count, chosen, mechanism._columns, points)
    return Setting(
        found.inputs,
        found.names,
        found.blocks,
        found.pairs,
        found.options,
        [int(region_of[x]) for x in chosen],
    )
