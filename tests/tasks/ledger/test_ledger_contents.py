"""What a ledger's text may say: lying contents are refused by a ValueError that names what is wrong."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from typing import Any

import numpy as np
import pytest
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp.ledger.entry import MOST_RELEASES
from bitldp.privacy import Guarantee
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

FREE = Guarantee(0.0, 0.0, 0.0, 0.0)


def example() -> dict[str, Any]:
    """Return the document of a ledger with charges."""
    ledger = Ledger(10.0, delta=1e-3)
    ledger.charge(Guarantee(1.0, 0.5, 1.0, 1.0, delta=1e-6), 3, note="first")
    ledger.charge(Guarantee(1.0, math.inf, math.inf, 2.0, holds=False, unit="feature", given="a region"))
    document: dict[str, Any] = json.loads(ledger.to_json())
    return document


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def sealed(document: dict[str, Any]) -> str:
    """Return the text of a document under checksums that fit: of each charge, and of all."""
    ledger = document["ledger"]
    last = digest([ledger.get("budget"), ledger.get("delta")])
    for entry in ledger["entries"] if isinstance(ledger.get("entries"), list) else ():
        if isinstance(entry, dict):
            entry.pop("chain", None)
            last = digest([last, entry])
            entry["chain"] = last
    return json.dumps({**document, "sha256": digest(ledger)})


def changed(*path: Any, to: Any) -> str:
    """Return the text of a ledger with one value changed."""
    document = example()
    place: Any = document["ledger"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return sealed(document)


FIRST = ("entries", 0)
LIES = {
    "deep": ('{"format": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "deep-contents": (
        '{"format": "bitldp.ledger", "version": 1, "sha256": "", "ledger": ' + "[" * 900 + "]" * 900 + "}",
        "checksum|nested",
    ),
    "huge-budget": (changed("budget", to=10**400), "budget: must be finite in double precision"),
    "long-number": ('{"budget": 1' + "0" * 5000 + "}", "is not JSON"),
    "nan-budget": (changed("budget", to=math.nan), "is not JSON"),
    "infinite-budget": (changed("budget", to=math.inf), "is not JSON"),
    "negative-budget": (changed("budget", to=-1.0), "budget: must be zero or more"),
    "true-budget": (changed("budget", to=True), "budget: must be a number"),
    "large-delta": (changed("delta", to=1.0), "delta: must be below 1"),
    "dict-entries": (changed("entries", to={"0": {}}), "entries: must be a list"),
    "more-fields": (changed("notes", to=[]), "ledger: must be an object of budget, delta, entries"),
    "dict-note": (changed(*FIRST, "note", to={"a": 1}), "entry 0: note: must be a string, not dict"),
    "dict-mechanism": (changed(*FIRST, "mechanism", to={}), "entry 0: mechanism: must be a string"),
    "list-count": (changed(*FIRST, "count", to=[1]), "entry 0: count: must be an integer"),
    "true-count": (changed(*FIRST, "count", to=True), "entry 0: count: must be an integer"),
    "float-count": (changed(*FIRST, "count", to=1.5), "entry 0: count: must be an integer"),
    "huge-count": (changed(*FIRST, "count", to=MOST_RELEASES + 1), "entry 0: count: must be at most"),
    "unit": (changed(*FIRST, "guarantee", "unit", to="zzz"), "unit of its guarantee must be one of 'record'"),
    "dict-unit": (changed(*FIRST, "guarantee", "unit", to={}), "unit of its guarantee"),
    "holds": (
        changed(*FIRST, "guarantee", "holds", to="yes"),
        "holds of its guarantee must be True or False",
    ),
    "given": (changed(*FIRST, "guarantee", "given", to=[1]), "given of its guarantee must be a string"),
    "nan-record": (changed(*FIRST, "guarantee", "record", to=math.nan), "is not JSON"),
    "huge-record": (changed(*FIRST, "guarantee", "bit", to=10**400), "bit of its guarantee .* double"),
    "true-record": (changed(*FIRST, "guarantee", "record", to=True), "record of its guarantee"),
    "dict-record": (changed(*FIRST, "guarantee", "record", to={"a": 1}), "record of its guarantee"),
    "infinite-delta": (changed(*FIRST, "guarantee", "delta", to="infinity"), "delta of its guarantee"),
    "large-entry-delta": (changed(*FIRST, "guarantee", "delta", to=2.0), "delta of its guarantee"),
    "unknown-field": (
        changed(*FIRST, "guarantee", "sigma", to=1.0),
        "guarantee: must be an object of claimed",
    ),
    "overspent": (changed("budget", to=4.5), "2 of epsilon|exceed the budget"),
    "version": (json.dumps({**example(), "version": True}), "version must be 1 or 2"),
    "version-list": (json.dumps({**example(), "version": [[1]]}), "version must be 1 or 2"),
    "checksum-list": (json.dumps({**example(), "sha256": []}), "checksum"),
    "chain": (
        json.dumps(
            {
                **example(),
                "ledger": (cut := {**example()["ledger"], "entries": example()["ledger"]["entries"][1:]}),
                "sha256": digest(cut),
            }
        ),
        "entry 0: does not follow from the one before it",
    ),
    "nameless-reservation": (changed(*FIRST, "mechanism", to="reservation"), "reservation: must have a name"),
    "no-reservation": (
        changed(*FIRST, "reservation", to="May"),
        "reservation: the ledger has no reservation",
    ),
    "text-columns": (changed(*FIRST, "columns", to="age"), "columns: must be a tuple of names"),
    "number-time": (changed(*FIRST, "time", to=3), "time: must be a string"),
    "surrogate": (
        changed(*FIRST, "note", to="\ud800").replace('"\\ud800"', '"\\ud800", "note": 3'),
        "checksum",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_are_named(name):
    text, message = LIES[name]
    with pytest.raises(ValueError, match=message) as caught:
        Ledger.from_json(text, source="people.json")
    assert str(caught.value).startswith("people.json: ")


@pytest.mark.parametrize("text", [b"{}", None, 3, ["a"]])
def test_a_text_is_a_str(text):
    with pytest.raises(TypeError, match="text: must be a str"):
        Ledger.from_json(text)


def test_what_is_true_is_read():
    for text in (json.dumps(example()), sealed(example()), changed("budget", to=6)):
        ledger = Ledger.from_json(text)
        assert ledger.spent == 5.0
        assert Ledger.from_json(ledger.to_json()).entries == ledger.entries
    entry = example()["ledger"]["entries"][0]
    for name in (
        "delta",
        "holds",
        "unit",
        "given",
    ):  # of a text that was written before there was such a field
        short = copy.deepcopy(entry)
        del short["guarantee"][name]
        assert Ledger.from_json(changed("entries", 0, to=short)).spent == 5.0


@pytest.mark.parametrize("count", [10**5000, MOST_RELEASES + 1, 1 << 70], ids=["long", "next", "large"])
def test_counts_end_where_a_file_could_not_hold_them(count):
    ledger = Ledger(1.0)
    with pytest.raises(ValueError, match=f"count: must be at most {MOST_RELEASES}"):
        ledger.charge(FREE, count)
    assert ledger.entries == ()
    ledger.charge(FREE, MOST_RELEASES)
    assert Ledger.from_json(ledger.to_json()).entries == ledger.entries


@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        (Guarantee(1.0, 1.0, 1.0, 10**400), "record of its guarantee must be zero or more, in double"),
        (Guarantee(True, 1.0, 1.0, 1.0), "claimed of its guarantee"),
        (Guarantee(1.0, 1.0, 1.0, 1.0, unit="zzz"), "unit of its guarantee"),
        (Guarantee(1.0, 1.0, 1.0, 1.0, holds="no"), "holds of its guarantee"),
        (Guarantee(1.0, 1.0, 1.0, 1.0, given=3), "given of its guarantee"),
    ],
)
def test_what_could_not_be_read_again_is_not_charged(guarantee, message):
    ledger = Ledger(10.0)
    with pytest.raises(ValueError, match=message):
        ledger.charge(guarantee)
    assert ledger.entries == ()


def test_numpys_numbers_are_written_as_plain_ones():
    ledger = Ledger(10.0)
    one = np.float64(1.0)
    entry = ledger.charge(Guarantee(one, 1, one, one, holds=np.bool_(True)), np.int64(2))
    assert all(
        type(getattr(entry.guarantee, name)) is float for name in ("claimed", "bit", "feature", "record")
    )
    assert (type(entry.guarantee.holds), type(entry.count)) == (bool, int)
    assert Ledger.from_json(ledger.to_json()).entries == ledger.entries


# -- fuzzing

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.integers(-3, 3).map(lambda power: 10 ** (400 + power)),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["infinity", "record", "feature", "bitldp.ledger", "zzz"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["budget", "delta", "entries", "note", "a"]), inner, max_size=4),
    ),
    max_leaves=8,
)
BOUNDED = settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values within JSON values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in items for found in places(inner, (*path, key)))]


PLACES = [path for path in places(example()["ledger"]) if path]


def read_or_refused(text: str) -> None:
    """Check that a text is refused by a ValueError, or read as a ledger that is written and read again."""
    refusal = None
    try:
        ledger = Ledger.from_json(text)
    except ValueError as error:
        refusal = error
    if refusal is not None:
        assert not isinstance(refusal, BudgetExceededError)
        assert str(refusal).startswith("text: ")
        return
    assert 0.0 <= ledger.spent <= ledger.budget < math.inf
    assert 0.0 <= ledger.spent_delta <= ledger.delta < 1.0
    assert all(1 <= entry.count <= MOST_RELEASES for entry in ledger.entries)
    again = Ledger.from_json(ledger.to_json())
    assert (again.entries, again.budget, again.delta) == (ledger.entries, ledger.budget, ledger.delta)


@pytest.mark.slow
@BOUNDED
@given(st.sampled_from(PLACES), JSON)
def test_any_value_in_any_place(path, value):
    read_or_refused(changed(*path, to=value))


@BOUNDED
@given(st.sampled_from(PLACES), st.booleans())
def test_any_place_left_out_or_twice(path, twice):
    document = example()
    place: Any = document["ledger"]
    for step in path[:-1]:
        place = place[step]
    if twice:
        assume(isinstance(place, list))
        place.append(place[path[-1]])
    else:
        del place[path[-1]]
    read_or_refused(sealed(document))


@pytest.mark.slow
@BOUNDED
@given(JSON, st.sampled_from(["format", "version", "sha256", "ledger", None]))
def test_any_document(value, name):
    document = value if name is None else {**example(), name: value}
    read_or_refused(json.dumps(document))


@pytest.mark.slow
@BOUNDED
@given(st.data())
def test_any_damage_to_the_text(data):
    text = json.dumps(example())
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    read_or_refused(text[:start] + data.draw(st.text(max_size=6)) + text[end:])
