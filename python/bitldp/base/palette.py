"""Colours and markers of plots, told apart by colour-blind readers and, with the markers, in grey."""

from __future__ import annotations

__all__ = ["GRID", "INK", "STYLES"]

#: Of axes, words and the one line that is black; a page replaces it by the colour of its own words.
INK = "#1a1a1b"
#: Of what stays behind the lines; replaced likewise.
GRID = "#dededf"

#: Okabe and Ito's colours, each with its marker.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    (INK, "X"),
)
