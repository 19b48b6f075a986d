"""What an audit knows of the mechanisms that add noise, and have no delta: imported for the registration."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitldp.audit.known.setting import of_rows, place, setting
from bitldp.audit.law import Block, Setting, neighbours
from bitldp.base import checks
from bitldp.numeric.label_laplace import LabelLaplace
from bitldp.numeric.laplace import Laplace


@setting.register
def _(mechanism: Laplace, pair: tuple[Any, Any] | None) -> Setting | None:
    if mechanism.k is not None:  # a report is a pair of indices and codes
        return None
    points, law = mechanism.points, mechanism.probabilities()
    chosen = place(pair, len(points), points)
    if chosen is None:  # a number between the points: its law is a matter of the dither
        return None
    # The ends are told apart best; what is between them adds work only.
    ends = chosen or [0, len(points) - 1]
    return of_rows(lambda x: law[x], len(points), mechanism.alphabet, ends, mechanism.features, points)


@setting.register
def _(mechanism: LabelLaplace, pair: tuple[Any, Any] | None) -> Setting:
    labels = [0, mechanism.classes - 1]
    if pair is not None:
        labels = [int(each) for each in checks.codes("pair", list(pair), mechanism.classes)]
    entries = np.array(labels)[:, None] == np.arange(mechanism.classes)
    table = mechanism.probabilities()[entries.astype(np.intp)]
    block = Block(table, lambda place, value: f"the entry of class {place} is reported as {value}")
    names = [f"class {label}" for label in labels]
    return Setting(labels, names, [block], neighbours(len(labels)), {"output": "codes"})
