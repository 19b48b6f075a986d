"""``bitldp explain``: what a setting guarantees and how far off its reports are, computed without data."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

import bitldp
from bitldp.cli.catalogue.entries import ENTRIES, check
from bitldp.cli.catalogue.entry import Entry, Settings
from bitldp.cli.perturb.files import UsageError
from bitldp.points.brr import limit_ratio
from bitldp.report.totals import total

__all__ = ["facts", "jsonable"]


def facts(
    entry: Entry, settings: Settings, *, size: int, classes: int | None, users: int | None
) -> dict[str, Any]:
    """Compute the facts of a setting.

    Parameters
    ----------
    entry : Entry
    settings : Settings
    size : int
        Features, categories or points.
    classes : int or None
        Classes of the label, for a mechanism that has one.
    users : int or None
        Number of records behind an estimate; None leaves the standard errors out.

    Returns
    -------
    dict
        JSON values: guarantee, probabilities, errors.
    """
    check(entry, settings)
    if settings.unit not in (None, "record", "feature"):
        raise UsageError(f"--unit {settings.unit}: must be one of record, feature")
    with warnings.catch_warnings():
        # The guarantee says it, as a row of its own.
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        parts = [entry.construct(settings, size)]
        if "label_epsilon" in entry.options:
            if classes is None or settings.label_epsilon is None:
                raise UsageError(f"{entry.name} has a label: give --classes and --label-epsilon")
            parts.append(ENTRIES["label-rr"].construct(Settings(epsilon=settings.label_epsilon), classes))
    found: dict[str, Any] = {"mechanisms": [_facts(part, settings, users) for part in parts]}
    if users is not None:
        for part in found["mechanisms"]:
            if "unbiased" in part["errors"]:
                raise UsageError(f"--users does not apply to {entry.name} here: {part['errors']['unbiased']}")
    if settings.unit is not None:
        # A mechanism of one column has no unit of its own: its record is one feature.
        found["mechanisms"][0]["guarantee"]["unit"] = settings.unit
    if len(parts) > 1:
        found["total_per_record"] = asdict(total([part.guarantee for part in parts], [size, 1]))
    plain: dict[str, Any] = jsonable(found)
    return plain


def _facts(mechanism: Any, settings: Settings, users: int | None) -> dict[str, Any]:
    described = mechanism.fingerprint()
    common = {
        "mechanism": described["name"],
        "parameters": described["parameters"],
        "guarantee": asdict(mechanism.guarantee),
        "bits_on_the_wire": mechanism.report_bits,
    }
    if isinstance(mechanism, (bitldp.FRR, bitldp.MOUE, bitldp.UER)):
        return common | _bit_facts(mechanism, users)
    if isinstance(mechanism, (bitldp.SUE, bitldp.OUE)):
        return common | _unary_facts(mechanism, users)
    if isinstance(mechanism, bitldp.BRR):
        return common | _brr_facts(mechanism, settings, users)
    if isinstance(mechanism, (bitldp.GRR, bitldp.LabelRR, bitldp.WarnerRR)):
        return common | _window_facts(mechanism, users)
    return common | {"errors": _letter_errors(mechanism, users)}


def _letter_errors(mechanism: Any, users: int | None) -> dict[str, Any]:
    """Return the error of one report's letter and of an estimate, for the worst input and on average."""
    errors: dict[str, Any] = {}
    if hasattr(mechanism, "expected_error"):
        errors["expected_absolute_error"] = mechanism.expected_error()
    try:
        deviations = {
            "for_the_worst_input": math.sqrt(mechanism.worst_variance()),
            "on_average": math.sqrt(mechanism.mean_variance()),
        }
    except ValueError as error:
        return errors | {"unbiased": str(error)}
    errors["standard_deviation_of_one_report"] = deviations
    if users is not None:
        errors["standard_error_of_an_estimate"] = {
            "users": users,
            **{name: deviation / math.sqrt(users) for name, deviation in deviations.items()},
        }
    return errors


def _bit_facts(mechanism: Any, users: int | None) -> dict[str, Any]:
    """Laws of the bits; error of a decoded value, of the unbiased letter, and of a mean."""
    codec = mechanism.codec
    laws = [
        [
            {
                "position": place,
                "weight": None if place == 0 else 2.0 ** (codec.integer_bits - place),
                "one_stays_one": float(p),
                "zero_becomes_one": float(q),
            }
            for place, (p, q) in enumerate(law)
        ]
        for law in mechanism.probabilities()
    ]
    errors: dict[str, Any] = {
        "values": f"multiples of {codec.step:g} from {-codec.limit:g} to {codec.limit:g}",
        "expected_absolute_error": mechanism.expected_error(),
    }
    if isinstance(mechanism, bitldp.FRR):
        errors["theorem_4_bound"] = mechanism.error_bound()
    try:
        ends = np.array([[0.0], [codec.limit]]) * np.ones(mechanism.features)
        at_zero, at_limit = np.sqrt(mechanism.variance(ends)).max(axis=1)
    except ValueError as error:
        errors["unbiased"] = str(error)
    else:
        errors["standard_deviation_of_one_report"] = {
            "at_zero": float(at_zero),
            "at_the_limit": float(at_limit),
        }
        if users is not None:
            errors["standard_error_of_a_mean"] = {
                "users": users,
                "at_zero": float(at_zero) / math.sqrt(users),
                "at_the_limit": float(at_limit) / math.sqrt(users),
            }
    return {
        "laws_of_the_bits": laws,
        "errors": errors,
    }


def _frequency_errors(mechanism: Any, users: int | None) -> dict[str, Any]:
    """Return the error of a category's frequency, for one that nobody has and one that everybody has."""
    try:
        everybody, nobody = np.sqrt(mechanism.variance([0])[0, :2])
    except ValueError as error:
        return {"unbiased": str(error)}
    errors = {
        "standard_deviation_of_one_report": {
            "of_a_category_one_has_not": float(nobody),
            "of_the_category_one_has": float(everybody),
        }
    }
    if users is not None:
        errors["standard_error_of_a_frequency"] = {
            "users": users,
            "of_a_category_nobody_has": float(nobody) / math.sqrt(users),
            "of_a_category_everybody_has": float(everybody) / math.sqrt(users),
        }
    return errors


def _unary_facts(mechanism: Any, users: int | None) -> dict[str, Any]:
    p, q = mechanism.probabilities()
    return {
        "probabilities": {"own_bit_is_1": float(p), "another_bit_is_1": float(q)},
        "errors": {
            "epsilon_on_arbitrary_bit_strings": mechanism.epsilon_arbitrary,
            **_frequency_errors(mechanism, users),
        },
    }


def _window_facts(mechanism: Any, users: int | None) -> dict[str, Any]:
    cells = mechanism.channel.cells
    truth = mechanism.channel.high / 2**64
    return {
        "probabilities": {"the_true_category": truth, "each_other_category": (1.0 - truth) / (cells - 1)},
        "errors": _frequency_errors(mechanism, users),
    }


def _brr_facts(mechanism: Any, settings: Settings, users: int | None) -> dict[str, Any]:
    """Return the window, the expected distance between a point and its report, and GRR's beside it."""
    (channel,) = mechanism.channels
    near = channel.high / 2**64
    cells, width = channel.cells, channel.width
    grr = bitldp.BRR(cells, epsilon=settings.epsilon, m=1, interval=mechanism.interval)
    errors: dict[str, Any] = {
        "values": f"{cells} points from {mechanism.points[0]:g} to {mechanism.points[-1]:g}",
        "expected_absolute_error": mechanism.expected_error(),
        "ratio_of_that_error_to_grr": mechanism.expected_error() / grr.expected_error(),
    }
    if settings.m in (None, "paper"):
        # Of the paper's choice of m alone.
        errors["limit_of_that_ratio_for_n_to_infinity"] = limit_ratio(mechanism.guarantee.record)
    return {
        "probabilities": {
            "near_points": width,
            "each_near_point": near / width,
            "each_far_point": (1.0 - near) / (cells - width),
        },
        "errors": errors | _brr_mean_errors(mechanism, users),
    }


def _brr_mean_errors(mechanism: Any, users: int | None) -> dict[str, Any]:
    """Return the error of the mean that `BRR.estimate_mean` gives, where everybody is at the same point."""
    (channel,) = mechanism.channels
    if channel.width > 1:
        return {"unbiased": "no unbiased decode exists: points at the ends share their near points"}
    truth = channel.high / 2**64
    other = (1.0 - truth) / (channel.cells - 1)
    if truth <= other:
        return {"unbiased": "no unbiased decode exists: every point is reported alike"}
    points = mechanism.points
    letters = (points - other * points.sum()) / (truth - other)
    squares = np.square(letters[:, None] - points[[0, len(points) // 2]])
    own = squares[[0, len(points) // 2], [0, 1]]
    end, middle = np.sqrt(other * squares.sum(axis=0) + (truth - other) * own)
    errors = {"standard_deviation_of_one_report": {"at_an_end": float(end), "in_the_middle": float(middle)}}
    if users is not None:
        errors["standard_error_of_a_mean"] = {
            "users": users,
            "at_an_end": float(end) / math.sqrt(users),
            "in_the_middle": float(middle) / math.sqrt(users),
        }
    return errors


def jsonable(value: Any) -> Any:
    """Replace infinities, which JSON lacks, by a word."""
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "infinity"
    return value
