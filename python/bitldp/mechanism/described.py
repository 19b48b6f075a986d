"""What a mechanism says of itself to people: what it takes, an example of it, how far off its reports are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple


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


class Described:
    """Base of what has a name on the command line; its options are the parameters of the constructor.

    Attributes
    ----------
    on_points : bool
        Whether its categories may also be the points of an interval.
    command : str
        Its name on the command line; empty: that of the class, in small letters and with hyphens.
    sized_by : str or None
        The parameter that says how large an input is: a record, a list of categories, a line of points.
    usual_size : int
        That of an example, or the only one.
    variants : tuple of Variant
        Settings that have a name of their own.
    """

    on_points: ClassVar[bool] = False
    command: ClassVar[str] = ""
    sized_by: ClassVar[str | None] = "features"
    usual_size: ClassVar[int] = 1
    variants: ClassVar[tuple[Variant, ...]] = ()

    if TYPE_CHECKING:

        def mean_variance(self) -> float:
            """Return the variance of a report's letter, averaged over inputs."""

        def worst_variance(self) -> float:
            """Return the variance of a report's letter for the worst input."""

    @classmethod
    def usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, as `for_record` takes them.

        Parameters
        ----------
        epsilon : float
            Budget of a record.
        size : int, optional
            Size of an input; None: `usual_size`.
        """
        sized = {} if cls.sized_by is None else {cls.sized_by: cls.usual_size if size is None else size}
        return {"epsilon": epsilon, **sized}

    @classmethod
    def for_record(cls, **parameters: Any) -> Any:
        """Construct from what a command line gives.

        Those of the constructor, but that `epsilon` is the budget of a record (or of one `unit`), and that
        the `interval` of numbers is always its two ends.
        """
        return cls(**parameters)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The independent mechanisms that each answer for a part of a record."""
        return (self,)

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return what is known of reports before there are any, as JSON values.

        Parameters
        ----------
        users : int, optional
            Number of records behind an estimate; None leaves its standard errors out.

        Returns
        -------
        dict
            ``"errors"``: how far off a report and an estimate are, or under ``"unbiased"`` why there is no
            estimate. Where they are few, ``"probabilities"``.
        """
        try:
            deviations = {
                "for_the_worst_input": math.sqrt(self.worst_variance()),
                "on_average": math.sqrt(self.mean_variance()),
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
