"""Figures and tables of the papers, made again: what one is, what it is given, what it returns.

A figure is one small function in ``papers/<paper>/figures.py`` (or ``figures_*.py``), registered by
`figure`. It is given a `FigureRun` and returns an `FigureResult`; `make` writes the files.
"""

from __future__ import annotations

from bitldp_papers.figures.compared import Compared, spread
from bitldp_papers.figures.findings import (
    Finding,
    agreeing,
    everywhere,
    gain,
    ordered,
    p_value,
    sure,
    trained,
)
from bitldp_papers.figures.making import make
from bitldp_papers.figures.registry import FigureEntry, chosen, figure, figures
from bitldp_papers.figures.result import FigureResult, column
from bitldp_papers.figures.running import FORMS, SHARED, FigureRun, MissingData
from bitldp_papers.figures.stated import Formula, Printed, ReadOff, printed_row

__all__ = [
    "FORMS",
    "SHARED",
    "Compared",
    "FigureEntry",
    "FigureResult",
    "FigureRun",
    "Finding",
    "Formula",
    "MissingData",
    "Printed",
    "ReadOff",
    "agreeing",
    "chosen",
    "column",
    "everywhere",
    "figure",
    "figures",
    "gain",
    "make",
    "ordered",
    "p_value",
    "printed_row",
    "spread",
    "sure",
    "trained",
]
