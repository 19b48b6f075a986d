"""A question that is asked again: equal values have the same report for ever, others independent ones."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp import Memoized

KEY = bytes(range(7, 39))
N = 100_000
USERS = np.arange(N, dtype=np.uint64)


class FromVariable:
    """A secret that pickles as the name of a variable, as `bitldp.tables.ReleaseKey` does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def derive(self, *parts: bytes) -> bytes:
        import hashlib

        return hashlib.sha256(b"".join([bytes.fromhex(os.environ[self.name]), *parts])).digest()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return FromVariable, (self.name,)


def test_a_key_of_zeros_is_no_secret():
    """What an unset buffer or a file that nothing was written to holds."""
    mechanism, refused = bitldp.GRR(4, epsilon=1.0), "key: must not be all zeros"
    with pytest.raises(ValueError, match=refused):
        Memoized(mechanism, bytes(32), question="browser")
    with pytest.raises(ValueError, match=refused):
        mechanism.randomize_keyed(np.arange(3), key=bytes(32), ids=np.arange(3, dtype=np.uint64))
    with pytest.raises(ValueError, match=refused):
        bitldp.tables.ReleaseKey(bytes(32))


def test_equal_values_have_the_same_report_for_ever() -> None:
    daily = Memoized(bitldp.GRR(5, epsilon=1.0), KEY, question="browser")
    values = USERS % 5
    monday = daily.randomize(values, ids=USERS)
    order = np.random.default_rng(1).permutation(N)
    assert np.array_equal(daily.randomize(values[order], ids=USERS[order], threads=2), monday[order])
    again = Memoized(bitldp.GRR(5, epsilon=1.0), KEY, question="browser")
    assert np.array_equal(again.randomize(values[:10], ids=USERS[:10]), monday[:10])
    packed = daily.randomize(values, ids=USERS, output="packed")
    assert np.array_equal(bitldp.unpack(packed, 3, N), monday)


def chi_square(
    one: np.ndarray, other: np.ndarray, cells: int, chances: tuple[np.ndarray, np.ndarray]
) -> float:
    counts = np.bincount(one.astype(np.intp) * cells + other, minlength=cells * cells)
    expected = N * np.outer(*chances).ravel()
    return float(((counts - expected) ** 2 / expected).sum())


def test_other_values_questions_and_keys_have_independent_reports() -> None:
    """Pairs of reports are as likely as the product of their laws says, but for one value's own.

    n = 100,000 users, 24 degrees of freedom, whose quantile at alpha = 1e-6 is 72.7; fixed keys.
    """
    mechanism = bitldp.GRR(5, epsilon=1.0)
    law = mechanism.probabilities()
    daily = Memoized(mechanism, KEY, question="browser")
    twos, threes = (daily.randomize(np.full(N, value), ids=USERS) for value in (2, 3))
    elsewhere = Memoized(mechanism, KEY, question="system").randomize(np.full(N, 2), ids=USERS)
    fresh = Memoized(mechanism, b"z" * 32, question="browser").randomize(np.full(N, 2), ids=USERS)
    for other, row in ((threes, 3), (elsewhere, 2), (fresh, 2), (np.roll(twos, 1), 2)):
        assert chi_square(twos, other, 5, (law[2], law[row])) < 72.7
    assert chi_square(twos, twos, 5, (law[2], law[2])) > 1000.0  # the same coins are found


def test_a_record_of_numbers_is_one_value() -> None:
    """One feature that is another leaves nothing as it was: n = 100,000, five standard errors."""
    daily = Memoized(bitldp.Duchi(epsilon=2.0, features=3, spend="cube"), KEY)
    x = np.zeros((N, 3))
    x[:, 0] = 1.0
    changed = x.copy()
    changed[:, 0] = -1.0
    one, other = daily.randomize(x, ids=USERS), daily.randomize(changed, ids=USERS)
    agree = (one[:, 1] == other[:, 1]).mean()
    assert abs(agree - 0.5) < 5.0 * 0.5 / np.sqrt(N)


ACROSS = """
import hashlib, numpy as np, bitldp
daily = bitldp.Memoized(bitldp.OUE(9, epsilon=1.0), bytes(range(7, 39)), question="q")
reports = daily.randomize(np.arange(999) % 9, ids=np.arange(999, dtype=np.uint64))
print(hashlib.sha256(reports.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_processes_give_the_same_reports() -> None:
    command = [sys.executable, "-c", ACROSS]
    found = set()
    for isa in ("scalar", ""):
        environment = {**os.environ, "BITLDP_ISA": isa} if isa else dict(os.environ)
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


def test_the_guarantee_says_what_a_change_shows() -> None:
    mechanism = bitldp.GRR(5, epsilon=1.0)
    daily = Memoized(mechanism, KEY)
    assert daily.guarantee.record == mechanism.guarantee.record
    assert "show when it changes" in daily.guarantee.given
    assert daily.over(1) == mechanism.guarantee.record
    assert daily.over(3) == pytest.approx(3.0 * mechanism.guarantee.record)
    assert "one-hot input; " in Memoized(bitldp.OUE(5, epsilon=1.0), KEY).guarantee.given
    with pytest.raises(ValueError, match="values"):
        daily.over(0)


def test_the_key_travels_by_reference_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    daily = Memoized(bitldp.GRR(5, epsilon=1.0), KEY, question="browser")
    assert KEY.hex() not in repr(daily)
    assert repr(KEY)[2:-1] not in repr(daily)
    with pytest.raises(TypeError, match="cannot be pickled") as refused:
        pickle.dumps(daily)
    assert repr(KEY)[2:-1] not in str(refused.value)
    monkeypatch.setenv("DAILY_KEY", KEY.hex())
    named = Memoized(bitldp.GRR(5, epsilon=1.0), FromVariable("DAILY_KEY"), question="browser")
    saved = pickle.dumps(named)
    assert KEY not in saved
    assert KEY.hex().encode() not in saved
    values = USERS[:50] % 5
    there = pickle.loads(saved)
    assert np.array_equal(there.randomize(values, ids=USERS[:50]), named.randomize(values, ids=USERS[:50]))
    assert (there.mechanism, there.question) == (named.mechanism, "browser")


def test_what_does_not_fit_is_named() -> None:
    mechanism = bitldp.GRR(5, epsilon=1.0)
    wrong: Any
    for wrong, error in ((b"short", ValueError), ("a" * 32, TypeError), (None, TypeError)):
        with pytest.raises(error, match=r"^key: "):
            Memoized(mechanism, wrong)
    wrong = "GRR"
    with pytest.raises(TypeError, match=r"^mechanism: "):
        Memoized(wrong, KEY)
    wrong = b"browser"
    with pytest.raises(TypeError, match=r"^question: "):
        Memoized(mechanism, KEY, question=wrong)
    with pytest.raises(ValueError, match="ids: each may come up once"):
        Memoized(mechanism, KEY).randomize([1, 1], ids=np.zeros(2, np.uint64))
