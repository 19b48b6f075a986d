"""First screen of the page: what the papers' epsilons are, and what they let an attacker find."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bitldp
from bitldp.compression import LaplaceBall
from bitldp.privacy import PrivacyClaimWarning, ceiling
from markupsafe import Markup

from bitldp_papers.page.parts import figure_of, marked, table

__all__ = ["Bought", "attacks_table", "bought", "buys_table"]

#: Candidates among whom an attacker looks for the source of a report: the test records of AG.
CANDIDATES = 7600


@dataclass(frozen=True)
class Bought:
    """One headline setting.

    Attributes
    ----------
    setting : str
        System and mechanism, as the paper runs them.
    claimed, exact : float
        Epsilon of a record, as stated and of the integers that are sampled.
    honest : str
        What to take instead.
    """

    setting: str
    claimed: float
    exact: float
    honest: str


_Setting = tuple[str, float, Callable[[], float], str]


def _record(build: Callable[[], Any]) -> Callable[[], float]:
    return lambda: float(build().guarantee.record)


_ONCE = "release the record once: CrossPolytope and label-RR (bitldp fl bitrand --preset honest)"
_UPDATE = "one clipped update a client: CrossPolytope (bitldp fl honest)"

_SETTINGS: tuple[_Setting, ...] = (
    (
        "BitRand: 768 features of 10 bits by f-RR",
        1.0,
        _record(lambda: bitldp.FRR(768, epsilon=1.0, calibration="paper")),
        _ONCE,
    ),
    (
        "BitRand on our stand-in: 384 features",
        1.0,
        _record(lambda: bitldp.FRR(384, epsilon=1.0, calibration="paper")),
        _ONCE,
    ),
    (
        "BitRand: the label of 4 classes by label-RR",
        1.0,
        _record(lambda: bitldp.LabelRR(4, epsilon=1.0)),
        "it is",
    ),
    (
        "LDPFL: 1024 features by UER, alpha 10",
        0.5,
        _record(lambda: bitldp.UER(1024, epsilon=0.5, calibration="paper")),
        _UPDATE,
    ),
    (
        "LDPFL: the same by MOUE",
        0.5,
        _record(lambda: bitldp.MOUE(1024, epsilon=0.5, calibration="paper")),
        "it is, and says next to nothing of a record",
    ),
    (
        "MVU, Fig. 3: Laplace on the l1 ball, sensitivity 1",
        1.0,
        _record(lambda: LaplaceBall(128, epsilon=2.0)),
        "sensitivity 2: twice the noise",
    ),
    ("MVU: a number in 3 bits", 1.0, _record(lambda: bitldp.MVU(epsilon=1.0)), "it is"),
    ("FedSel: PS, 100 coordinates", 1.0, _record(lambda: bitldp.PS(100, k=10, epsilon=1.0)), "it is"),
    (
        "FedSel: PE as printed, 2 coordinates",
        1.0,
        _record(lambda: bitldp.PE(2, k=1, epsilon=1.0, calibration="paper")),
        "PE calibrated exactly",
    ),
    ("BRR: 100 points", 1.0, _record(lambda: bitldp.BRR(100, epsilon=1.0)), "it is"),
    ("BRR: places within regions, over all places", 1.0, lambda: math.inf, "BRR without regions"),
    (
        "BRR: ranges split by the gradient's sign",
        1.0,
        lambda: math.inf,
        "one public range for all (bitldp fl brr)",
    ),
)


def bought() -> list[Bought]:
    """Return the headline settings, with the exact epsilon computed from what is sampled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the table is about them
        return [Bought(setting, claimed, exact(), honest) for setting, claimed, exact, honest in _SETTINGS]


def _share(value: float) -> str:
    """Write a chance: as one in how many where it is small."""
    if value == 0.0:
        return "never"
    return f"{100.0 * value:.0f} %" if value > 0.1 else f"1 in {1.0 / value:,.0f}"


def buys_table() -> Markup:
    """Return the first table: claimed, exact, what each lets an attacker find at most, what to do."""
    rows: list[list[str]] = []
    for each in bought():
        fails = each.exact > each.claimed * (1.0 + 1e-6)
        exact = figure_of(round(each.exact, 4))
        rows.append(
            [
                each.setting,
                figure_of(each.claimed),
                marked(exact, "bad" if fails else "good"),
                _share(ceiling(each.claimed, CANDIDATES)),
                _share(ceiling(each.exact, CANDIDATES)),
                each.honest,
            ]
        )
    names = ("As published", "Claimed ε", "Exact ε", "Found, as claimed", "Found, at most", "Honest instead")
    return table(names, rows, (1, 2, 3, 4))


def _rounds(count: int) -> str:
    return f", {count} rounds" if count > 1 else ""


def attacks_table(documents: Sequence[Mapping[str, Any]]) -> Markup:
    """Return what attacks recovered beside what epsilon allows, and what was reached honestly."""
    attacks = [
        [
            f"{each['name'].partition('-')[2]}, {row['mechanism']}" + _rounds(row.get("rounds", 1)),
            figure_of(row["claimed"]),
            figure_of(row["exact"]),
            _share(row["success"]),
            _share(row["ceiling"]),
            figure_of(round(row["proven"], 2)) if "proven" in row else "",
        ]
        for each in documents
        if each["paper"] == "attack"
        for row in each.get("rows", ())
    ]
    honest = [
        [
            row["what"],
            figure_of(row["exact"]),
            figure_of(row["ours"], row["spread"]),
        ]
        for each in documents
        if each["paper"] == "honest"
        for row in each.get("compared", ())
    ]
    parts = Markup()
    if attacks:
        names = ("Attack, mechanism", "Claimed ε", "Exact ε", "Succeeds", "Exact ε allows", "Proves ε (95 %)")
        parts += Markup("<h2>What the attacks recover</h2>") + table(names, attacks, (1, 2, 3, 4, 5))
    if honest:
        heads = ("Setting", "Exact ε", "Accuracy")
        parts += Markup("<h2>Accuracy at a small exact ε</h2>") + table(heads, honest, (1, 2))
    return parts
