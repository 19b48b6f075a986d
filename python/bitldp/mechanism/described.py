"""Facts of a mechanism for people: settings with a name of their own, and the errors of its reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Variant(NamedTuple):
    """A setting of a mechanism that has a name of its own on the command line.

    Attributes
    ----------
    name, summary : str
        The name, and one line.
    parameters : mapping
        Parameters of the constructor that it fixes.
    usual_size : int
        As of the mechanism.
    """

    name: str
    summary: str
    parameters: Mapping[str, Any]
    usual_size: int


class Lettered(Protocol):
    """Mechanism that has letters, or says why it has none."""

    def mean_variance(self) -> float:
        """Return the variance of a report's letter, averaged over inputs."""

    def worst_variance(self) -> float:
        """Return the variance of a report's letter for the worst input."""


def letter_facts(mechanism: Lettered, users: int | None) -> dict[str, Any]:
    """Return the errors of a letter and of an estimate; see `Mechanism._facts`."""
    try:
        deviations = {
            "for_the_worst_input": math.sqrt(mechanism.worst_variance()),
            "on_average": math.sqrt(mechanism.mean_variance()),
        }
    except ValueError as error:
        return {"errors": {"unbiased": str(error)}}
    return {"errors": spreads("an_estimate", deviations, users)}


def spreads(
    estimated: str, deviations: Mapping[str, float], users: int | None, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the standard deviations of one report, and the standard errors of an estimate from many.

    Parameters
    ----------
    estimated : str
        What the estimate is of.
    deviations : mapping of str to float
        Standard deviations of one report's letter.
    users : int or None
        Records behind an estimate; None leaves its standard errors out.
    names : mapping of str to str, optional
        What the cases are called among the errors of an estimate, where it is not the same.
    """
    errors: dict[str, Any] = {"standard_deviation_of_one_report": dict(deviations)}
    if users is not None:
        errors[f"standard_error_of_{estimated}"] = {
            "users": users,
            **{(names or {}).get(name, name): each / math.sqrt(users) for name, each in deviations.items()},
        }
    return errors
