"""The privacy report that is written beside an output: what was released, how, and at which epsilon."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import bitldp
from bitldp import _core
from bitldp.cli.perturb.plan import Part, Plan
from bitldp.cli.perturb.request import Request
from bitldp.report.totals import total
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Labels, Numbers, Points, Reals
from bitldp.tables.law import canonical_digest, law_of

__all__ = ["privacy_report"]


def _public(part: Part) -> dict[str, Any]:
    """Return what a reader of codes needs to know of the columns."""
    if isinstance(part.codec, Attributes):
        return {"categories": [list(each) for each in part.codec.categories]}
    if isinstance(part.codec, Labels):
        return {"categories": list(part.codec.categories)}
    if isinstance(part.codec, Points):
        return {"interval": [part.codec.low, part.codec.high], "points": part.codec.points}
    if isinstance(part.codec, Reals):
        letters = {"letters": part.mechanism.letters.tolist()} if part.output == "codes" else {}
        return {"interval": [part.codec.low, part.codec.high], **letters}
    codec = part.mechanism.codec
    return {"interval": [-codec.limit, codec.limit], "step": codec.step}


def _worth(part: Part) -> dict[str, Any]:
    """Return what the columns are worth, and how to estimate from them."""
    biased = {"decode": part.worth.decode, "bias_bound": part.worth.bias} if part.worth.decode else {}
    return {**biased, "to_estimate": part.worth.estimate}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinities as text: JSON has none."""
    infinite = {
        name: "infinity" for name, value in values.items() if isinstance(value, float) and math.isinf(value)
    }
    return values | infinite


def _unit(request: Request, plan: Plan, part: Part) -> str:
    """Return what the claim of a part covers: under ``--unit feature`` each column, but for the label."""
    if isinstance(part.codec, Numbers) or (request.label is not None and part is plan.parts[-1]):
        return str(part.mechanism.guarantee.unit)
    return str(request.options.get("unit", "record"))


def privacy_report(request: Request, plan: Plan, rows: int, sha256: str) -> dict[str, Any]:
    """Return the privacy report: what was released at which epsilon; never a key, a seed or a value."""
    guarantees = [part.mechanism.guarantee for part in plan.parts]
    whole = total(guarantees, [part.released for part in plan.parts])
    table = None if plan.array else plan.table_plan
    report = {
        "tool": "bitldp",
        "version": bitldp.__version__,
        "isa": _core.isa(),
        "mechanism": request.mechanism or "plan",
        "release": None if plan.release is None else plan.release.id,
        "repeatable": plan.release is not None and plan.release.repeatable,
        "snapshot": request.release.snapshot,
        "plan": None if table is None else table.fingerprint(),
        "plan_sha256": None if table is None else table.digest,
        "output": request.target.name,
        "output_sha256": sha256,
        "rows": rows,
        "mechanisms": [
            {
                "mechanism": type(part.mechanism).__name__,
                "columns": list(part.codec.columns),
                "output": part.output,
                "parameters": part.mechanism.fingerprint()["parameters"],
                **_public(part),
                **_worth(part),
                "epsilon_claimed": _plain(asdict(guarantee))["claimed"],
                "claim_covers": _unit(request, plan, part),
                "epsilon_exact": {
                    name: _plain(asdict(guarantee))[name] for name in ("bit", "feature", "record")
                },
                "law": law_of(part.mechanism),
                "given": guarantee.given,
                "delta": guarantee.delta,
                "holds": guarantee.holds,
            }
            for part, guarantee in zip(plan.parts, guarantees, strict=True)
        ],
        "total_per_record": {
            **{
                name: _plain(asdict(whole))[key]
                for name, key in (
                    ("epsilon_claimed", "claimed"),
                    ("epsilon_exact", "record"),
                    ("delta", "delta"),
                    ("holds", "holds"),
                )
            },
            # What the exact epsilon takes as public or as known; a reader must not miss it.
            "given": "; ".join(dict.fromkeys(g.given for g in guarantees if g.given)),
        },
        "kept_unperturbed": list(plan.keep),
        "seeded": request.seed is not None,
        "notes": [
            "Local differential privacy of one row against any other row, in its perturbed columns.",
            "Another release about the same rows adds its own epsilon.",
            *(["Kept columns have no privacy, and may tell who a row is about."] if plan.keep else []),
            *(
                ["Made with a fixed seed: for tests only, without privacy."]
                if request.seed is not None
                else []
            ),
        ],
    }
    return {**report, "report_sha256": canonical_digest(report)}
