"""Figures and tables of the papers, made again: what one is, what it is given, what it returns.

A figure is one small function in ``papers/<paper>/figures.py`` (or ``figures_*.py``), registered by
`figure`. It is given a `FigureRun` and returns an `FigureResult`; `make` writes the files.
"""

from __future__ import annotations

from bitldp_papers.figures.making import make
from bitldp_papers.figures.registry import FigureEntry, chosen, figure, figures
from bitldp_papers.figures.result import Compared, FigureResult, column, spread
from bitldp_papers.figures.running import FigureRun, MissingData

__all__ = [
    "Compared",
    "FigureEntry",
    "FigureResult",
    "FigureRun",
    "MissingData",
    "chosen",
    "column",
    "figure",
    "figures",
    "make",
    "spread",
]
