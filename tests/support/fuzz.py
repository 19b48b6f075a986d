"""Calls that are drawn at random: briefly in the suite, and for as long as `BITLDP_FUZZ_SECONDS` says."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

T = TypeVar("T")

SECONDS = float(os.environ.get("BITLDP_FUZZ_SECONDS", "0"))
TARGETS = 16  # tests that share the seconds

# What inputs are full of, so that an error that shows a value of them is seen.
SECRET = 0.7364918273
SECRET_CODE = 48_271
SECRET_TEXT = "s3cr3t"
# Digits of an address or of a hash are no trace of a code.
TRACES = re.compile(rf"0\.73649|(?<![0-9a-f])48271(?![0-9a-f])|{SECRET_TEXT}")

BRIEF = settings(max_examples=60, derandomize=True)
LONG = settings(max_examples=500, derandomize=False, phases=[Phase.generate, Phase.shrink])


@st.composite
def mostly(
    draw: st.DrawFn, fitting: st.SearchStrategy[Any], odd: st.SearchStrategy[Any], once: int = 16
) -> Any:
    """Draw what fits, and once in a while what is odd: calls that are wrong in one place go furthest."""
    return draw(odd if draw(st.integers(0, once)) == once else fitting)


def fuzz(name: str, drawn: st.SearchStrategy[T], call: Callable[[T], bool]) -> None:
    """Try `call` on what is drawn until the time is up; it says whether there was an answer.

    Where hardly any call is answered, hardly anything is tried: that fails, too.
    """
    cases = answered = 0
    config = settings(
        LONG if SECONDS else BRIEF, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )

    @config
    @given(drawn)
    def run(one: T) -> None:
        nonlocal cases, answered
        cases += 1
        answered += call(one)

    end = time.monotonic() + SECONDS / TARGETS
    run()
    while time.monotonic() < end:
        run()
    print(f"fuzzed {name}: {cases} cases, {answered} answered")
    assert 10 * answered > cases, f"{name}: hardly any call is answered"


def answer(call: Callable[..., T], *arguments: Any, **named: Any) -> tuple[T] | None:
    """Return what a call gives, or None where it is refused: in words, and in none that show a value."""
    try:
        return (call(*arguments, **named),)
    except (TypeError, ValueError, MemoryError) as error:
        refused: BaseException = error
    cause = refused.__cause__ or (None if refused.__suppress_context__ else refused.__context__)
    assert str(refused) or isinstance(refused, MemoryError), f"{type(refused).__name__} without a word"
    for shown in (str(refused), repr(refused), repr(cause)):
        assert TRACES.search(shown) is None, f"an error shows a value: {shown}"
    return None
