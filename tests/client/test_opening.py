"""Documents that are not what they say are refused by field, never by content; so are mutated ones."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import bitldp
import pytest
from bitldp.client import DocumentError, open_document
from bitldp.client.notation import canonical, digest
from bitldp.tables import Column, TablePlan


def sealed(fields: dict[str, Any]) -> str:
    """Return the text of a document whose sum is right, whatever else is not."""
    return canonical({**fields, "sha256": digest(fields)})


def changed(text: str, path: str, value: Any) -> str:
    """Return a document with another value at a dotted path, and the right sum; ... takes it away."""
    fields = json.loads(text)
    *names, last = path.split(".")
    place = fields
    for name in names:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return sealed(fields)


GRR = bitldp.GRR(16, epsilon=1.0).client_document()
PIECEWISE = bitldp.Piecewise(epsilon=2.0, features=5, spend="sample", k=2).client_document()
MVU = bitldp.GeneralizedRR(epsilon=2.0, bits=2).client_document()
OLH = bitldp.OLH(30, epsilon=2.0).client_document()
BITRAND = bitldp.BitRand(2, categories=3, epsilon_x=3.0, epsilon_y=1.0).client_document()
TABLE = bitldp.ThreeOutputs(epsilon=3.0).client_document()
FRR = bitldp.FRR(2, epsilon=4.0).client_document()

REFUSED = [
    ("another version", GRR, "bitldp", 2, "bitldp"),
    ("an unknown field", GRR, "script", "alert(1)", ""),
    ("an unknown field of the channel", GRR, "channel.extra", 1, "channel"),
    ("an unknown kind", GRR, "channel.kind", "exec", "channel.kind"),
    ("no epsilon", GRR, "epsilon", ..., "epsilon"),
    ("a smaller epsilon", GRR, "epsilon", "3fe0000000000000", "epsilon"),
    ("a larger epsilon", GRR, "epsilon", "4000000000000000", "epsilon"),
    ("an epsilon that is no number", GRR, "epsilon", "7ff8000000000000", "epsilon"),
    ("a delta of 1", GRR, "delta", "3ff0000000000000", "delta"),
    ("a law of another epsilon", GRR, "channel.high", "18446744073709551615", "epsilon"),
    ("a chance above 1", GRR, "channel.high", "18446744073709551617", "channel.high"),
    ("a chance with a sign", GRR, "channel.high", "-1", "channel.high"),
    ("a chance with a zero before it", GRR, "channel.high", "01", "channel.high"),
    ("a chance that is a number", GRR, "channel.high", 7, "channel.high"),
    ("other cells", GRR, "channel.cells", 17, "record"),
    ("cells without end", GRR, "channel.cells", 10**15, "channel.cells"),
    ("a width above the cells", GRR, "channel.width", 16, "channel.width"),
    ("a wider report", GRR, "report.fields.0.1", 5, "report"),
    ("more keys", GRR, "keys", 2, "keys"),
    ("another golden key", GRR, "golden.key", "00" * 32, "golden.report"),
    ("a short golden key", GRR, "golden.key", "00" * 31, "golden.key"),
    ("another golden input", GRR, "golden.input", "AAAAAAAAAAAAAAAAAAAAAA==", "golden.report"),
    ("a golden input beyond the categories", GRR, "golden.input", "/////////////////////w==", "golden.input"),
    ("a golden report that is cut", GRR, "golden.report", "AAAA", "golden.report"),
    ("no base64", GRR, "golden.report", "@@@@", "golden.report"),
    ("labels that are too few", GRR, "record.labels", ["a"], "record.labels"),
    ("labels twice", GRR, "record.labels", ["a"] * 16, "record.labels"),
    ("a codec for categories", GRR, "codec", json.loads(MVU)["codec"], "codec"),
    ("no codec for numbers", MVU, "codec", ..., "codec"),
    ("a grid of other points", PIECEWISE, "codec.points", 255, "codec"),
    ("a grid upside down", PIECEWISE, "codec.low", "4ff0000000000000", "codec.kind"),
    ("a draw from other columns", PIECEWISE, "public.0.of", 6, "public"),
    ("more columns than there are", PIECEWISE, "public.0.k", 6, "public[0].k"),
    ("a column more", PIECEWISE, "public.0.k", 3, "report"),
    ("a prime below the categories", OLH, "public.0.prime", 29, "public"),
    ("an interval that descends", PIECEWISE, "record.interval", ["3ff0000000000000"] * 2, "record.interval"),
    ("parts beside a channel", BITRAND, "record", json.loads(GRR)["record"], ""),
    ("no parts", BITRAND, "parts", [], "parts"),
    ("a part of another law", BITRAND, "parts.1.channel.high", "9223372036854775808", "epsilon"),
    ("a row that does not add up", TABLE, "channel.weights", "A" * 108, "channel.weights"),
    ("a table of other rows", TABLE, "channel.inputs", 4, "channel.weights"),
    ("bits of another codec", FRR, "codec.bits", 9, "codec"),
    ("a law of no bits", FRR, "channel.laws", [[]], "channel.laws[0]"),
    ("a law without its pair", FRR, "channel.laws.0.0", ["1"], "channel.laws[0]"),
]


@pytest.mark.parametrize(("_", "text", "path", "value", "field"), REFUSED, ids=[each[0] for each in REFUSED])
def test_a_document_that_does_not_hold_is_refused(
    _: str, text: str, path: str, value: Any, field: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        open_document(changed(text, path, value))
    assert caught.value.field == field
    if isinstance(value, str) and value:
        assert value not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_text_that_is_no_document_is_refused() -> None:
    for text, match in (
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "bitldp: is missing"),
        (GRR.replace(",", ", ", 1), "not canonical"),
        (GRR[:-1] + ',"unit":"record"}', "not canonical"),
        ('{"bitldp":1e0}', "not canonical"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('{"a":' * 20 + "1" + "}" * 20, "more than 16"),
        ('{"a":"' + "b" * 8_000_001 + '"}', "8,000,000 bytes"),
        ('{"a":NaN}', "not JSON"),
        (GRR.replace('"width":1', '"width":2'), "sha256: does not match"),
    ):
        with pytest.raises(DocumentError, match=match):
            open_document(text)
    with pytest.raises(TypeError, match="must be a str"):
        open_document(GRR.encode())  # type: ignore[arg-type]


def test_a_table_without_end_is_refused_before_it_is_made() -> None:
    huge = changed(changed(TABLE, "channel.inputs", 65536), "channel.outputs", 65536)
    with pytest.raises(DocumentError, match=r"channel.inputs: must be at most"):
        open_document(huge)
    wide = changed(GRR, "channel.order", "AAAAAA==")
    with pytest.raises(DocumentError, match=r"channel.order: must list"):
        open_document(wide)


def test_an_error_survives_a_pickle() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(DocumentError("epsilon", "is missing")))
    assert (error.field, str(error)) == ("epsilon", "epsilon: is missing")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values of a document."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, name)
        if isinstance(each, (dict, list)):
            yield from places(each, (*path, name))


def mutated(fields: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a document with one value changed in one of a few ways."""
    result = copy.deepcopy(fields)
    every = list(places(result))
    *path, last = rng.choice(every)
    place: Any = result
    for name in path:
        place = place[name]
    old = place[last]
    if rng.random() < 0.15:
        del place[last]
    elif rng.random() < 0.2:
        place[last] = rng.choice([None, True, -1, 1 << 60, "", [], {}, 0.5, "\ud800", "9" * 20, [[[]]]])
    elif rng.random() < 0.1:
        *other, name = rng.choice(every)
        source: Any = fields
        for step in other:
            source = source[step]
        place[last] = copy.deepcopy(source[name])
    elif isinstance(old, str) and old:
        at = rng.randrange(len(old))
        place[last] = old[:at] + rng.choice("0123456789abcdefA/+=") + old[at + rng.randint(0, 1) :]
    elif isinstance(old, bool):
        place[last] = not old
    elif isinstance(old, int):
        place[last] = old + rng.choice([-1, 1, 7, 1 << 20, -old])
    elif isinstance(old, list):
        place[last] = old + old[:1] if rng.random() < 0.5 else old[1:]
    elif isinstance(old, dict):
        old["more"] = 1
    else:
        place[last] = "0"
    return result


MUTATED = [
    bitldp.GRR(["a", "b", "c"], epsilon=1.0).client_document(spends=("survey", 3)),
    PIECEWISE,
    TABLE,
    FRR,
    OLH,
    BITRAND,
    bitldp.SUE(7, epsilon=2.0).client_document(),
    bitldp.SubsetSelection(13, epsilon=1.0).client_document(),
    bitldp.BlockDesign(37, epsilon=1.0, public=True).client_document(),
    bitldp.CategoricalRecord((7, 4, 9), epsilon=2.0, oracle=("GRR", "GRR", "OUE")).client_document(),
    bitldp.RAPPOR(7, epsilon=3.0).client_document(),
    bitldp.SampledSigns(6, epsilon=3.0, k=3).client_document(),
    bitldp.Hybrid(epsilon=3.0).client_document(),
    bitldp.EXP(6, epsilon=2.0).client_document(),
    bitldp.RecordCap((4, 5, 4), epsilon=3.0, m=3, hits=2, subset=(1, 2, 1)).client_document(),
    bitldp.HDG((16, 40), epsilon=2.0, cells=(8, 4)).client_document(),
    bitldp.ItemSet(9, epsilon=2.0, padding=3).client_document(),
    bitldp.KeyValue(5, epsilon=2.0, padding=2).client_document(),
    TablePlan(
        [
            Column(bitldp.GRR(5, epsilon=1.0), "n", interval=(0, 1)),
            Column(
                bitldp.CategoricalRecord([3, 3], epsilon=2.0), ["p", "q"], categories=[["a", "b", "c"]] * 2
            ),
            Column(bitldp.Hierarchy(16, epsilon=1.0), "age"),
        ]
    ).client_document(),
]

#: What may differ in a document that is equal: words for people, names, a budget, and a golden key's test.
HARMLESS = ("mechanism", "fingerprint", "unit", "given", "keyed", "spends", "golden", "sha256")


@pytest.mark.parametrize("index", range(len(MUTATED)))
def test_a_mutated_document_is_refused_or_equal(index: int) -> None:
    """2,565 mutations in all, each with the right sum: n = 135 of each of 19 documents, seeded."""
    honest, rng = open_document(MUTATED[index]), random.Random(2026 + index)
    fields = json.loads(MUTATED[index])
    kept = 0
    for _ in range(135):
        other = mutated(fields, rng)
        try:
            text = sealed(other)
        except (ValueError, UnicodeError):
            continue
        try:
            read = open_document(text)
        except DocumentError:
            continue
        kept += 1
        assert read.epsilon <= honest.epsilon * (1.0 + 1e-9), "a law that costs more"
        assert abs(read.epsilon - read.promise.epsilon) <= 1e-12 * max(1.0, read.epsilon)
        same = {name: each for name, each in other.items() if name not in HARMLESS}
        if same == {name: each for name, each in fields.items() if name not in HARMLESS}:
            assert read.program.fields == honest.program.fields
    assert kept < 60


def test_flipped_bytes_are_refused() -> None:
    """Without a new sum: 300 flipped bytes of one document, seeded."""
    rng = random.Random(7)
    for _ in range(300):
        at = rng.randrange(len(GRR))
        other = GRR[:at] + chr(ord(GRR[at]) ^ 1 << rng.randrange(7)) + GRR[at + 1 :]
        with pytest.raises(DocumentError):
            open_document(other)
