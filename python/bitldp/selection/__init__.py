"""Dimension selection: reports a large coordinate of a vector and its value, both privately.

`EXP`, `PS` and `PE` select a coordinate; `TwoStage` also releases its value; `FedSel` keeps what clients of
federated learning have not sent yet. `flat` and `Compressed` are the baselines without selection.
"""

from __future__ import annotations

from bitldp.selection.baselines import Compressed, flat
from bitldp.selection.fedsel import FedSel, selection_of, split_budget
from bitldp.selection.mechanisms import EXP, PE, PS
from bitldp.selection.two_stage import SelectedMeanAccumulator, SelectedReports, TwoStage

__all__ = [
    "EXP",
    "PE",
    "PS",
    "Compressed",
    "FedSel",
    "SelectedMeanAccumulator",
    "SelectedReports",
    "TwoStage",
    "flat",
    "selection_of",
    "split_budget",
]
