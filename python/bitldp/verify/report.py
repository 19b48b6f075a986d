"""A privacy report: its digests, its plan, its mechanisms, its file and its signature."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from . import parameters
from .columns import released_columns, released_values
from .delta import delta_of
from .files import FilePart, contents_of, parts_of, sha256_of, values_of
from .findings import FALSE, NOTE, PROVEN, Lie, Statement, Unproven, looked, must
from .laws import (
    CONTEXT,
    ONE,
    agrees,
    decimal,
    epsilon_of,
    epsilons_of_features,
    of_bit,
    of_law,
    rows,
    well_formed,
)
from .memoized import charges_of, memoized
from .parameters import BITS, CODES, RECORDS, SIZES, WORDS

__all__ = ["canonical", "verify"]

_TRUST = (
    "consistent; no file shows that its reports were drawn from these laws and not copied from the records, "
    "so the writer is trusted"
)
_TABLES = ("MVU", "MetricMVU", "MinimaxVariance", "ThreeOutputs", "BitwiseRR")
_NEVER = 1e-9  # relative, of what the doubles of a formula may miss
_LAST = 1e-15  # relative, of what a sum of doubles may
_DELTA = Decimal("0.9")  # of a delta: what noise of least width reaches

_COLUMN = {
    *("mechanism", "parameters", "columns", "categories", "interval", "nulls", "fill", "output", "label"),
    *("decode", "unit"),
}
_POLICIES = ("refuse", "category", "fill", "report")
_TYPES = (
    *("integer", "float32", "float64", "boolean", "date", "text", "bytes"),
    *("timestamp", "time", "duration"),
)
_BIT = 1.0 / 3.0  # of epsilon: what a bit takes that says whether there is a number


def verify(
    report: Mapping[str, Any], output: Path | None = None, key: bytes | None = None
) -> list[Statement]:
    """Check a privacy report.

    Parameters
    ----------
    report : mapping
        The JSON values of a report.
    output : pathlib.Path, optional
        The released file.
    key : bytes, optional
        Public key of Ed25519, in PEM, of who must have signed the report.

    Returns
    -------
    list of Statement
        What was checked; `verdict` sums it up.
    """
    if not isinstance(report, Mapping) or not isinstance(report.get("mechanisms"), list):
        return [Statement(FALSE, "is not a privacy report: it has no list of mechanisms")]
    with localcontext(CONTEXT):
        return _verified(report, output, key)


def _verified(report: Mapping[str, Any], output: Path | None, key: bytes | None) -> list[Statement]:
    result = looked("the report", lambda: _digests(report)) + looked("the report", lambda: _stated(report))
    for number, entry in enumerate(report["mechanisms"], 1):

        def mechanism(entry: Any = entry, number: int = number) -> Iterator[Statement]:
            return _mechanism(entry, f"{number}. {entry['mechanism']} on {', '.join(entry['columns'][:3])}")

        result += looked(f"mechanism {number}", mechanism)
    if all(each.verdict != FALSE for each in result):
        result += looked("a record", lambda: _total(report))
    if output is None:
        result.append(Statement(NOTE, "file not checked: none was given"))
    else:
        result += looked("the file", lambda: _file(report, output))
    if key is not None:
        result += looked("the signature", lambda: _signed(report, key))
    elif "signature" in report:
        result.append(Statement(NOTE, "signed; --signed-by checks by whom"))
    if all(each.verdict != FALSE for each in result):
        result.append(Statement(NOTE, _TRUST))
    return result


# -- what the report says of itself, and of its plan


def _digests(report: Mapping[str, Any]) -> Iterator[Statement]:
    rest = {name: value for name, value in report.items() if name not in ("report_sha256", "signature")}
    plan = report["plan"]
    same = canonical(rest) == report["report_sha256"]
    if plan is not None or report["plan_sha256"] is not None:
        same = same and canonical(plan) == report["plan_sha256"]
    must(same, "was CHANGED after it was written")
    yield Statement(PROVEN, "the report matches its digests, which anybody could recompute")


def canonical(values: Any) -> str:
    """Return the SHA-256 of JSON values with their keys sorted and no spaces; NaN and infinity are none."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _stated(report: Mapping[str, Any]) -> Iterator[Statement]:
    """Check what the report says beside its mechanisms."""
    must(report["tool"] == "bitldp", "is of another tool")
    records, entries, plan = report["rows"], report["mechanisms"], report["plan"]
    must(type(records) is int and records >= 0, "rows is no number of them")
    must(len(entries) > 0, "names no mechanism: nothing was randomized")
    if report["repeatable"]:
        yield Statement(
            NOTE, "made with a key, according to its writer: whoever holds the key can test values"
        )
    if report["seeded"] is not False:
        yield Statement(FALSE, "SEEDED: made with a fixed seed, for tests only; it has no privacy")
    must(type(report["repeatable"]) is bool, "repeatable is neither true nor false")
    named = isinstance(report["release"], str) and report["release"] != ""
    must(named or (report["release"] is None and not report["repeatable"]), "the release has no name")
    must(named == (report["mechanism"] == "plan"), "a release by a plan has a name, and no other")
    must(isinstance(report["snapshot"], str), "the snapshot has no name")
    must(report["repeatable"] or report["snapshot"] == "", "a snapshot is of a repeatable release")
    kept = report["kept_unperturbed"]
    if plan is None:
        must(kept == [] and len(entries) == 1, "an array has one mechanism, and keeps nothing")
        names = entries[0]["columns"]
        must(names == [str(j) for j in range(len(names))], "the columns of an array are numbers")
        yield Statement(NOTE, "an array has no plan; the parameters are those of the mechanism's entry")
    else:
        must(not set(plan) - {"column", "keep", "types", "keep_as"}, "the plan has keys that no plan has")
        parts = [part for column in plan["column"] for part in _parts(column)]
        must(len(parts) == len(entries), "has other mechanisms than its plan")
        for entry, part in zip(entries, parts, strict=True):
            _planned(entry, part)
        must(kept == plan.get("keep", []), "keeps other columns than its plan")
        yield from _linked(report, plan.get("keep_as", {}))
        if "types" in plan:
            _typed(plan["types"], entries)
        yield Statement(PROVEN, "mechanisms, parameters and columns are those of the plan")
    if kept:
        yield Statement(NOTE, f"released as they are, without any privacy: {', '.join(kept)}")


def _linked(report: Mapping[str, Any], keep_as: Any) -> Iterator[Statement]:
    """Check what the report says of the pseudonyms of its records."""
    must(isinstance(keep_as, dict) and len(keep_as) <= 1, "the plan keeps several columns of ids")
    must(all(form == "pseudonym" for form in keep_as.values()), "the plan keeps a column in no known form")
    names = [f"{name}_pseudonym" for name in keep_as]
    must(report.get("linked_by", []) == names, "is linked by other columns than its plan says")
    must(not names or report["repeatable"], "has pseudonyms, and no key that they are made with")
    if names:
        yield Statement(
            NOTE,
            f"linked by {names[0]}: reports of one person in all releases under its key are linked, for "
            "everybody, and the epsilons of these releases add up",
        )


class _Part(NamedTuple):
    """One mechanism of a plan's column: what the plan says of it, its name and its parameters.

    `suffix` is what the name of the released column ends with, beside that of the column.
    """

    column: Mapping[str, Any]
    mechanism: str
    parameters: dict[str, Any]
    suffix: str = ""


def _parts(column: Mapping[str, Any]) -> list[_Part]:
    """Return the mechanisms of a plan's column."""
    must(not set(column) - _COLUMN, "a column of the plan has keys that none has")
    nulls, own = column.get("nulls", "refuse"), dict(column["parameters"])
    must(
        nulls in _POLICIES and (nulls == "fill") == ("fill" in column), "the plan has no such nulls and fill"
    )
    if nulls == "report":
        return _with_bit(column, own)
    if column["mechanism"] != "BitRand":
        return [_Part(column, column["mechanism"], own)]
    label = {**column, "columns": [column["label"]], "interval": None}
    if column.get("output") == "bits":
        label |= {"output": None, "decode": None}
    classes = {"classes": own.pop("classes"), "epsilon": own.pop("epsilon_y")}
    features = {**own, "epsilon": own["epsilon_x"]}
    del features["epsilon_x"]
    return [_Part({**column, "categories": None}, "FRR", features), _Part(label, "LabelRR", classes)]


def _with_bit(column: Mapping[str, Any], own: dict[str, Any]) -> list[_Part]:
    """Return a column of numbers with gaps, and the bit that says where they are: they share one epsilon."""
    columns, epsilon = column["columns"], own["epsilon"]
    must(isinstance(columns, str) or len(columns) == 1, "nulls='report' is of one column")
    bit = {"columns": columns, "categories": ["missing", "present"], "output": "codes"}
    shared = {"categories": 2, "epsilon": epsilon * _BIT, "features": 1, "unit": "record"}
    number = {**own, "epsilon": epsilon * (1.0 - _BIT)}
    return [_Part(column, column["mechanism"], number), _Part(bit, "GRR", shared, "_present")]


def _typed(types: Any, entries: Sequence[Mapping[str, Any]]) -> None:
    """Check that a plan states a type of each column that a mechanism reads, and of one more: the ids'."""
    must(isinstance(types, Mapping) and len(types) > 0, "the plan's types are none")
    must(all(kind in _TYPES for kind in types.values()), "the plan states a type that no column has")
    lists = {name for name in types if any(f"{name}[0]" in entry["columns"] for entry in entries)}
    read = {name for entry in entries for name in entry["columns"] if name.rpartition("[")[0] not in lists}
    read |= lists
    must(read <= set(types), "the plan states types, and not of all of its columns")
    must(len(set(types) - read) <= 1, "the plan states types of columns that it does not read")


def _planned(entry: Mapping[str, Any], part: _Part) -> None:
    """Check that a mechanism's entry is the plan's."""
    column, name, plan, _ = part
    title = ", ".join(entry["columns"][:3])
    columns, stated = column["columns"], entry["parameters"]
    must(entry["mechanism"] == name, f"{title}: is {entry['mechanism']}, by the plan {name}")
    named, many = [columns] if isinstance(columns, str) else columns, stated.get("features", 1)
    if len(named) == 1 and type(many) is int and many > 1:  # a column of lists
        named = [f"{named[0]}[{j}]" for j in range(many)]
    must(entry["columns"] == named, f"{title}: other columns")
    for each in sorted({*plan, *stated}):
        must(_same(plan.get(each), stated.get(each)), f"{title}: {each} is another in the plan")
    if not parameters.known(name):
        return
    listed = column.get("categories")
    if listed is None:
        listed = next((v for k, v in plan.items() if k in SIZES and isinstance(v, list)), None)
    if "categories" in entry:
        texts = [list(map(str, each)) if isinstance(each, list) else str(each) for each in listed or []]
        must(entry["categories"] == texts, f"{title}: other categories than the plan's")
        size = next((stated[k] for k in SIZES if type(stated.get(k)) is int), None)
        missing = column.get("nulls") == "category"
        alike = name in RECORDS or size is None or size == len(texts) + missing
        must(alike, f"{title}: the mechanism has another number of categories")
    gaps = column.get("nulls") == "report"
    must(not gaps or "interval" in entry, f"{title}: nulls='report' is for numbers")
    if "points" in entry and stated.get("interval") is None:  # of a mechanism that knows no interval
        integers = [0, entry["points"] - 1] if name == "Hierarchy" else None
        must(
            entry["interval"] == column.get("interval", integers),
            f"{title}: another interval than the plan's",
        )
    elif "intervals" in entry:
        own = column.get("interval") or []
        own = own if own and isinstance(own[0], list) else [own] * len(entry["intervals"])
        must(entry["intervals"] == own, f"{title}: other intervals than the plan's")
    else:
        must(column.get("interval") is None, f"{title}: the mechanism has an interval of its own, or none")
    coded = name in (*CODES, *RECORDS) or "intervals" in entry
    output = "codes" if coded else "bits" if name in BITS else "values"
    must(entry["output"] == (column.get("output") or output), f"{title}: another output than the plan's")
    numbers = entry["output"] == "values" and "interval" in entry
    must(("decode" in entry) == ("bias_bound" in entry) == numbers, f"{title}: decode is for numbers")
    must(not numbers or entry["decode"] in ("unbiased", "reported"), f"{title}: decode is another word")
    if numbers and column.get("decode") is not None:
        must(column["decode"] == entry["decode"], f"{title}: decode is another in the plan")


def _same(plan: Any, stated: Any) -> bool:
    """Tell whether a parameter of a plan is the stated one; of a list, a number or a digest may be stated."""
    if isinstance(stated, Mapping) and isinstance(plan, list):
        if "labels" in stated:
            return stated == {"labels": len(plan), "sha256": hashlib.sha256(repr(plan).encode()).hexdigest()}
        flat = list(chain.from_iterable(plan)) if isinstance(plan[0], list) else plan
        form = {"<f8": "d", "<i8": "q"}.get(stated["dtype"])
        if form is None:
            raise Unproven(f"numbers of type {stated['dtype']} are known by their digest alone")
        return bool(hashlib.sha256(struct.pack(f"<{len(flat)}{form}", *flat)).hexdigest() == stated["sha256"])
    if isinstance(plan, list) and type(stated) is int:
        return len(plan) == stated
    return isinstance(plan, bool) == isinstance(stated, bool) and bool(plan == stated)


# -- a mechanism: parameters, law, epsilon


def _mechanism(entry: Mapping[str, Any], name: str) -> Iterator[Statement]:
    kind, p, law = entry["mechanism"], entry["parameters"], entry["law"]
    well_formed(law)
    try:
        rebuilt = parameters.checked(kind, p, law)
    except Lie as reason:
        raise Lie(f"{name}: {reason}") from None
    made = "its law is that of its parameters" if rebuilt else "its table is as stated, within its budget"
    printed = {each: decimal(entry["epsilon_exact"][each]) for each in ("bit", "feature", "record")}
    if kind == "Gaussian":
        yield from _gaussian(entry, name, printed)
    else:
        must(type(entry["delta"]) in (int, float) and entry["delta"] == 0, "delta: a pure mechanism has none")
        for each, exact in _exact(kind, p, law).items():
            said = f"epsilon {exact:.12g} from its integers, printed {printed[each]:.15g}"
            must(agrees(printed[each], exact), f"{name}: {said} ({each})")
        yield Statement(PROVEN, f"{name}: {made}; {said}")
    yield from _claim(entry, name, printed)
    _public(kind, p, entry)


def _exact(kind: str, p: Mapping[str, Any], law: Sequence[Mapping[str, Any]]) -> dict[str, Decimal]:
    """Return the exact epsilon of the worst bit, of the worst feature and of a record."""
    every = [one for symbols in law for one in symbols["laws"]]
    record, feature, bit = epsilon_of(law), max(map(of_law, every)), max(map(of_bit, every))
    if kind == "BitwiseRR":  # a bit of the report is that of the input by randomized response
        bit = feature / int(p["bits"])
    elif kind == "LabelLaplace":  # a label is two of the entries
        feature = record
    elif kind in WORDS:
        feature = max(epsilons_of_features(every[0], int(p["bits"])))
    return {"bit": bit, "feature": feature, "record": record}


def _gaussian(entry: Mapping[str, Any], name: str, printed: Mapping[str, Decimal]) -> Iterator[Statement]:
    """Check the delta of Gaussian noise, of one number and of all that are released."""
    law, p = entry["law"], entry["parameters"]
    delta = decimal(entry["delta"])
    must(0 < delta < 1 and entry["delta"] == p["delta"], "delta is not that of its parameters")
    must(printed["bit"] == printed["feature"], f"{name}: a number is one symbol, and the worst bit")
    unit = p["unit"]
    must(printed[unit] == Decimal(p["epsilon"]), f"{name}: its epsilon is not that of its parameters")
    for each, those in (("feature", [{**law[0], "times": 1}]), ("record", law)):
        exact = delta_of(those, printed[each])
        said = f"delta {exact:.6g} from its integers at epsilon {printed[each]:.12g}, printed {delta:.6g}"
        must(exact <= delta and (exact >= delta * _DELTA or printed[each] == 0), f"{name}: {said} ({each})")
    yield Statement(PROVEN, f"{name}: {said}")


def _claim(entry: Mapping[str, Any], name: str, printed: Mapping[str, Decimal]) -> Iterator[Statement]:
    kind, p = entry["mechanism"], entry["parameters"]
    claimed, unit = decimal(entry["epsilon_claimed"]), p.get("unit", "record")
    asked = parameters.claimed(kind, p)
    must(
        abs(claimed - asked) <= asked * Decimal(_NEVER), f"{name}: the epsilon claimed is not that asked for"
    )
    must(entry["claim_covers"] == unit, f"{name}: claim_covers is another unit than its parameters'")
    holds = kind == "Gaussian" or printed[unit] <= claimed
    must(entry["holds"] is holds, f"{name}: holds is otherwise, by claimed and exact epsilon")
    if not holds:
        yield Statement(NOTE, f"{name}: the claim of epsilon {entry['epsilon_claimed']} does NOT hold")
    given = parameters.given(kind, p, entry["law"])
    must(entry["given"] == given, f"{name}: given is not what its epsilon takes as known")
    if given:
        yield Statement(NOTE, f"{name}: given {given}")


def _public(kind: str, p: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Check what a reader of the columns is told of numbers: interval, step, points, letters."""
    title = ", ".join(entry["columns"][:3])
    must("interval" in entry or not {"step", "points", "letters"} & set(entry), f"{title}: has no numbers")
    if "interval" not in entry:
        return
    low, high = entry["interval"]
    moved = 0.0
    own = p.get("interval")
    if kind in WORDS:
        moved = 2.0 ** (p["integer_bits"] + 1 - p["bits"])
        limit = 2.0 ** p["integer_bits"] - moved
        own = [-limit, limit]
        must(entry["step"] == moved, f"{title}: its step is another")
    elif kind == "LDPFLDuchi":
        own = [p["center"] - p["radius"], p["center"] + p["radius"]]
    must(own is None or [low, high] == list(own), f"{title}: its interval is not that of its parameters")
    if "points" in entry:
        size = next((p[k] for k in SIZES if type(p.get(k)) is int), entry["points"])
        must(entry["points"] == size, f"{title}: its number of points is another")
        moved = 0.0 if p.get("rounding") == "dither" else (high - low) / (size - 1) / 2.0
    if entry.get("decode") == "unbiased":
        good = abs(entry["bias_bound"] - moved) <= _NEVER * (high - low)
        must(good, f"{title}: bias_bound is not how far its numbers move")
    elif "bias_bound" in entry:
        must(
            moved <= entry["bias_bound"] < math.inf, f"{title}: bias_bound is below what its numbers move by"
        )
    if "letters" in entry:
        letters = [float(each) for each in entry["letters"]]
        largest = max(map(abs, (*letters, low, high)))
        _even(kind, letters, largest * _NEVER, title)
        for at, row in rows(entry["law"][0]["laws"][0]):
            must(len(row) == len(letters), f"{title}: has another number of letters than of reports")
            mean = math.fsum(weight / ONE * letter for weight, letter in zip(row, letters, strict=True))
            good = abs(mean - low - at * (high - low)) <= _NEVER * largest
            must(good, f"{title}: the mean of its letters is not the number")


def _even(kind: str, letters: Sequence[float], near: float, title: str) -> None:
    """Refuse letters of windows and of noise that do not follow each other by the same step."""
    steps = [b - a for a, b in pairwise(letters)]
    if kind in ("Laplace", "LabelLaplace", "SampledSigns"):  # ends stand for what is beyond them
        steps = steps[1:-1]
    if kind not in (*_TABLES, "Hybrid", "BitBudgets") and steps:
        must(max(steps) - min(steps) <= 4 * near, f"{title}: its letters do not follow each other evenly")


def _total(report: Mapping[str, Any]) -> Iterator[Statement]:
    """Check the sums over all mechanisms."""
    stated, entries = report["total_per_record"], report["mechanisms"]
    exact = [decimal(each["epsilon_exact"]["record"]) for each in entries]
    printed, total = decimal(stated["epsilon_exact"]), sum(exact, Decimal(0))
    said = f"a record: epsilon {total:.12g} together, printed {printed:.15g}"
    must(agrees(printed, total), said)
    claims = Decimal(0)
    for each in entries:
        p = each["parameters"]
        times = p.get("k") or len(each["columns"]) if each["claim_covers"] == "feature" else 1
        claims += decimal(each["epsilon_claimed"]) * times
    claimed = decimal(stated["epsilon_claimed"])
    must(abs(claimed - claims) <= claims * Decimal(_NEVER), "the total claimed is not the sum of the claims")
    delta = min(Decimal(1), sum((decimal(each["delta"]) for each in entries), Decimal(0)))
    good = abs(decimal(stated["delta"]) - delta) <= delta * Decimal(_LAST)
    must(good, "the total delta is not the sum of the deltas")
    must(stated["holds"] is all(each["holds"] for each in entries), "the claim of a record is said otherwise")
    given = "; ".join(dict.fromkeys(each["given"] for each in entries if each["given"]))
    must(stated["given"] == given, "what the total takes as known is said otherwise")
    yield Statement(PROVEN, said)
    yield from memoized(report, total)
    if "ledger" in report:
        charged = sum(
            (decimal(each["guarantee"]["record"]) * each["count"] for each in report["ledger"]), Decimal(0)
        )
        wanted, name = charges_of(report, total)
        enough = "memoized" in report and charged > wanted  # of a series that had a larger cap
        must(enough or agrees(charged, wanted), "its ledger was charged another epsilon")
        noted = all(f"{each['note']} ".startswith(f"{name} ") for each in report["ledger"])
        must(report["release"] is None or noted, "its ledger was charged for another release")
        yield Statement(
            PROVEN, f"a ledger was charged epsilon {charged:.12g} for it, according to the report"
        )
    if "ledger_state" in report:
        yield from _state(report["ledger_state"], len(report.get("ledger", ())))


def _state(state: Mapping[str, Any], own: int) -> Iterator[Statement]:
    """Check the form of a ledger's state: its charges, this report's among them, and their checksum."""
    must(set(state) == {"entries", "sha256"}, "the state of its ledger has other keys")
    entries, digest = state["entries"], state["sha256"]
    must(
        own > 0 and type(entries) is int and entries >= own, "its ledger had fewer charges than it was given"
    )
    hexadecimal = isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef")
    must(hexadecimal, "the checksum of its ledger is none")
    said = "perturb --after, or Ledger.open(at_least=), compares"
    yield Statement(NOTE, f"charges in its ledger at that time: {entries:,}; {said}")


# -- the file


def _file(report: Mapping[str, Any], path: Path) -> Iterator[Statement]:
    listed = report.get("files")
    if listed is None:
        must(sha256_of(path) == report["output_sha256"], "is NOT the file that the report is about")
        yield Statement(PROVEN, "the file matches the digest in the report")
        parts = [FilePart(path, report["rows"], set())]
    else:
        parts = parts_of(path, listed)
        must(canonical(listed) == report["output_sha256"], "is NOT the folder of the report")
        yield Statement(PROVEN, f"the folder matches the digest in the report, with its {len(parts):,} files")
    names: list[str] = []
    allowed: dict[str, tuple[set[str] | None, int]] = {}
    for entry, part in zip(report["mechanisms"], _columns(report), strict=True):
        own = [f"{name}{part.suffix}" for name in released_columns(entry)]
        reports = released_values(entry, part.column)
        if reports is not None:
            allowed |= dict.fromkeys(own, reports)
        names += own
    names += report["kept_unperturbed"] + report.get("linked_by", [])
    ordered = report["release"] is not None  # a run by options leaves columns where they were
    rows, looked_at = 0, True
    for file in parts:
        must(file.keys <= set(report["kept_unperturbed"]), "is in folders of a column that is not kept")
        own = [name for name in names if name not in file.keys]
        found = contents_of(file.path, own)
        same = found.names == own if ordered else sorted(found.names) == sorted(own)
        must(same, f"has other columns than the plan releases and keeps: {_named(found.names)}")
        must(found.rows == file.rows, f"has {found.rows:,} rows, by the report {file.rows:,}")
        rows += found.rows
        looked_at = looked_at and found.delimiter is not None
        if found.delimiter is not None:
            places = {found.names.index(name): each for name, each in allowed.items()}
            values_of(file.path, found.delimiter, places)
    must(rows == report["rows"], f"has {rows:,} rows, by the report {report['rows']:,}")
    what = "file" if listed is None else "folder"
    yield Statement(PROVEN, f"the {what} has {rows:,} rows, and the columns of the plan: {_named(names)}")
    if looked_at:
        yield Statement(PROVEN, "all values are possible reports of the mechanisms")
    else:
        yield Statement(NOTE, "its values were not checked: only text files are read here")


def _named(names: Sequence[str]) -> str:
    return f"{', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"


def _columns(report: Mapping[str, Any]) -> list[_Part]:
    """Return what the plan says of each mechanism; of an array, nothing."""
    if report["plan"] is None:
        return [_Part({}, "", {})]
    return [part for column in report["plan"]["column"] for part in _parts(column)]


# -- the signature


def _signed(report: Mapping[str, Any], key: bytes) -> Iterator[Statement]:
    """Check that the report, its plan and its ledger's entries were signed by the key that is given."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise Unproven('--signed-by needs cryptography: pip install "bitldp[sign]"') from None
    if "signature" not in report:
        raise Unproven("the report has no signature")
    try:
        public = load_pem_public_key(key)
    except ValueError:
        raise Unproven("--signed-by is not a public key in PEM") from None
    if not isinstance(public, Ed25519PublicKey):
        raise Unproven("--signed-by is not an Ed25519 key")
    signed = {name: value for name, value in report.items() if name != "signature"}
    try:
        public.verify(bytes.fromhex(report["signature"]), b"bitldp report\0" + canonical(signed).encode())
    except InvalidSignature:
        raise Lie("is NOT that of the key that was given") from None
    yield Statement(PROVEN, "signed with the given key: plan, report and ledger charges")
