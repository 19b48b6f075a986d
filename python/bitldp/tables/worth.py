"""What written numbers are worth: unbiased letters where there are any, or how biased they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import PlanError
from bitldp.tables.attributes import Attributes
from bitldp.tables.cells import Codec, Labels, Points, Reals

__all__ = ["DECODES", "Spelled", "Worth", "of_plan", "worth"]

#: How a setting is named to who may change it, alone or with a value.
Spelled = Callable[..., str]

#: What numbers are written as: letters whose mean is right, or what each report says by itself.
DECODES = ("unbiased", "reported")


@dataclass(frozen=True)
class Worth:
    """What the columns of one mechanism are worth.

    Attributes
    ----------
    decode : str
        One of `DECODES`; empty where no numbers are written.
    bias : float
        At most so far is the mean of what is written for a number from the number, once it is inside the
        range.
    estimate : str
        How to estimate from the columns.
    sentence : str
        What a person should know before the run.
    alarming : bool
        Whether that is a warning.
    numbers : ndarray of float64 or None
        The number of each code, where the codec does not know it.
    """

    decode: str = ""
    bias: float = 0.0
    estimate: str = ""
    sentence: str = ""
    alarming: bool = False
    numbers: NDArray[np.float64] | None = None


def of_plan(setting: str, value: str = "") -> str:
    """Return a setting of a column as a plan has it."""
    return f'{setting} = "{value}" in the plan' if value else setting


def worth(
    name: str, mechanism: Any, codec: Codec, output: str, decode: str | None, spelled: Spelled = of_plan
) -> Worth:
    """Say what columns are worth, and choose the numbers that are written.

    Parameters
    ----------
    name : str
        Of the mechanism, where the run was asked for.
    mechanism : Mechanism
    codec : Codec
    output : str
        Form of the columns.
    decode : str or None
        One of `DECODES`; None: "unbiased" where that exists.
    spelled : callable
        Names settings in what is said, as they were given: in a plan, or as options.

    Raises
    ------
    PlanError
        For a `decode` that the mechanism does not have.
    """
    kind = f"bitldp.{type(mechanism).__name__}"
    if isinstance(codec, (Labels, Attributes)):
        if decode is not None:
            raise PlanError(f"{spelled('decode')} does not apply to {name}: its columns are no numbers")
        return Worth(estimate=f"{kind}(...).estimate_frequencies, of the numbers of the categories")
    if output != "values":
        if decode is not None:
            raise PlanError(f"{spelled('decode')} is for {spelled('output', 'values')}, not for {output}")
        estimate = f"{kind}(...).estimate_mean, of the codes and with the parameters of this report"
        if output == "bits" or isinstance(codec, Reals):
            return Worth(estimate=estimate)
        what = "numbers of points" if isinstance(codec, Points) else "code words"
        return Worth(
            estimate=estimate,
            sentence=f"the columns hold {what}, and no numbers: {kind}(...).estimate_mean estimates from "
            f"them; {spelled('output', 'values')} writes numbers",
        )
    if isinstance(codec, Reals):
        if decode == "reported":
            raise PlanError(
                f"{spelled('decode', 'reported')}: the numbers of {name} are unbiased as they are"
            )
        return Worth("unbiased", 0.0, "the mean of the column")
    return _of_codes(name, mechanism, codec, decode, spelled)


def _of_codes(name: str, mechanism: Any, codec: Codec, decode: str | None, spelled: Spelled) -> Worth:
    """Say what numbers are worth that codes stand for: points, or code words."""
    if isinstance(codec, Points):
        numbers = np.linspace(codec.low, codec.high, codec.points)
        dithered = getattr(mechanism, "rounding", "nearest") == "dither"
        rounding = 0.0 if dithered else (codec.high - codec.low) / (codec.points - 1) / 2.0
    else:
        numbers, rounding = None, float(mechanism.codec.step)
    on_points, reason = isinstance(codec, Points) and codec.indices, ""
    if decode != "reported":
        try:
            letters = _letters(mechanism, numbers, on_points)
        except ValueError as error:
            if decode == "unbiased":
                raise PlanError(f"{spelled('decode', 'unbiased')}: {error}") from None
            reason = str(error)
        else:
            return Worth(
                "unbiased",
                rounding,
                "the mean of the column",
                "values are letters, which may lie outside the range: their mean is right; "
                f"{spelled('decode', 'reported')} writes what each report says by itself",
                numbers=letters,
            )
    bias = mechanism.bias_on(numbers) if on_points else mechanism.decode_bias()
    cure = f"there are no others ({reason})" if reason else f"{spelled('decode', 'unbiased')} writes others"
    return Worth(
        "reported",
        bias + rounding,
        f"not from these numbers: {cure}",
        f"the numbers of {name} are biased toward the middle: the mean of a column may be off by up to "
        f"{bias + rounding:.4g}; {cure}",
        alarming=True,
        numbers=numbers,
    )


def _letters(
    mechanism: Any, numbers: NDArray[np.float64] | None, on_points: bool
) -> NDArray[np.float64] | None:
    """Return the unbiased number of each point, none for code words; raise where there is no such number."""
    if numbers is None:
        mechanism.accumulator()
        return None
    letters: NDArray[np.float64]
    letters = mechanism.letters_on(numbers) if on_points else mechanism.unbias(np.arange(len(numbers)))
    return letters
