"""Dimension selection: which coordinate of a vector is large, and what to send of it.

`EXP`, `PS` and `PE` select a coordinate; `TwoStage` also releases its value; `FedSel` keeps what clients of
federated learning have not sent yet. `flat` and `Compressed` are the baselines without selection.
"""

from __future__ import annotations

from bitldp.selection.baselines import Compressed, flat
from bitldp.selection.budget import selection_of, split_budget
from bitldp.selection.fedsel import FedSel
from bitldp.selection.mechanisms import EXP, PE, PS
from bitldp.selection.selected import SelectedMeanAccumulator, SelectedReports
from bitldp.selection.two_stage import TwoStage

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
