"""What a setting guarantees and how far off its reports are, computed without data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bitldp.base.documents import jsonable
from bitldp.cli.perturb.files import UsageError
from bitldp.report.totals import total

__all__ = ["facts"]


def facts(name: str, mechanism: Any, options: Mapping[str, Any], users: int | None) -> dict[str, Any]:
    """Compute the facts of a setting.

    Parameters
    ----------
    name : str
        Of the mechanism, on the command line.
    mechanism : Mechanism
    options : mapping of str
        What it was built from.
    users : int or None
        Number of records behind an estimate; None leaves the standard errors out.

    Returns
    -------
    dict
        JSON values: guarantee, probabilities, errors.
    """
    found: dict[str, Any] = {"mechanisms": [_facts(part, users) for part in mechanism.parts]}
    if users is not None:
        for part in found["mechanisms"]:
            if "unbiased" in part["errors"]:
                raise UsageError(f"--users does not apply to {name} here: {part['errors']['unbiased']}")
    if "unit" in options:
        # A mechanism of one column has no unit of its own: its record is one feature.
        found["mechanisms"][0]["guarantee"]["unit"] = options["unit"]
    if len(mechanism.parts) > 1:
        guarantees = [part.guarantee for part in mechanism.parts]
        found["total_per_record"] = asdict(total(guarantees, [part.columns for part in mechanism.parts]))
    plain: dict[str, Any] = jsonable(found)
    return plain


def _facts(mechanism: Any, users: int | None) -> dict[str, Any]:
    described = mechanism.fingerprint()
    return {
        "mechanism": described["name"],
        "parameters": described["parameters"],
        "guarantee": asdict(mechanism.guarantee),
        "bits_on_the_wire": mechanism.report_bits,
        **mechanism.facts(users),
    }
