"""Plans as documents: JSON values, TOML texts, and back; a bad one is refused by its line."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

import bitldp
from bitldp.base.errors import MissingExtraError, PlanError, require
from bitldp.codecs import Categories
from bitldp.mechanism.base import Mechanism
from bitldp.tables.column import Column

__all__ = ["column_of", "document_of", "parsed", "toml_of"]

_FIELDS = ("categories", "interval", "nulls", "fill", "output", "label", "decode")
_KEYS = ("mechanism", "parameters", "columns", *_FIELDS)
_DEFAULTS: dict[str, Any] = dict.fromkeys(_FIELDS) | {"nulls": "refuse"}


def document_of(column: Column) -> dict[str, Any]:
    """Return a column of a plan as JSON values.

    Raises
    ------
    PlanError
        For a mechanism with a parameter that is a function, which no file can hold.
    """
    mechanism = column.mechanism
    document: dict[str, Any] = {
        "mechanism": type(mechanism).__name__,
        "parameters": {
            name: _plain(type(mechanism).__name__, name, value)
            for name, value in mechanism.parameters.items()
            if value is not None
        },
        "columns": list(column.columns),
    }
    for name in _FIELDS:
        value = getattr(column, name)
        if value != _DEFAULTS[name]:
            document[name] = list(value) if isinstance(value, tuple) else value
    return document


def _plain(kind: str, name: str, value: Any) -> Any:
    if isinstance(value, Categories):
        return value.labels.tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [_plain(kind, name, each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{kind}: its {name} is infinite, which a plan's file does not hold")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mechanism):
        return {
            "mechanism": type(value).__name__,
            "parameters": {
                key: _plain(kind, key, each) for key, each in value.parameters.items() if each is not None
            },
        }
    raise PlanError(f"{kind}: its {name} is a {type(value).__name__}, which a plan's file does not hold")


def column_of(document: Any) -> Column:
    """Return the column of a plan that JSON values say.

    Raises
    ------
    PlanError
        For an unknown key, mechanism or parameter, and for what a constructor refuses.
    """
    if not isinstance(document, Mapping):
        raise PlanError("column: must be a table of keys")
    for name in document:
        if name not in _KEYS:
            raise PlanError(f"{name}: no such key; a column has {', '.join(_KEYS)}")
    for name in ("mechanism", "columns"):
        if name not in document:
            raise PlanError(f"{name}: is needed")
    mechanism = _mechanism(document["mechanism"], document.get("parameters", {}))
    columns = document["columns"]
    if not isinstance(columns, (str, list)):
        raise PlanError("columns: must be a name or a list of names")
    try:
        return Column(mechanism, columns, **{name: document[name] for name in _FIELDS if name in document})
    except (TypeError, ValueError) as error:
        raise PlanError(str(error)) from None


def _mechanism(name: Any, parameters: Any) -> Mechanism:
    kind = getattr(bitldp, name, None) if isinstance(name, str) and name in bitldp.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        alike = {each.casefold(): each for each in bitldp.__all__ if each[0].isupper()}
        near = get_close_matches(str(name).casefold(), alike, 1)
        meant = f"is {alike[near[0]]} meant?" if near else "it is the name of a class, as GRR"
        raise PlanError(f"mechanism: {name!r} is none of bitldp's; {meant}")
    if not isinstance(parameters, Mapping):
        raise PlanError("parameters: must be a table of the mechanism's parameters")
    given = {key: _value(each) for key, each in parameters.items()}
    try:
        return kind(**given)
    except MissingExtraError:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        text = str(error).replace(
            f"{kind.__name__}.__init__() got an unexpected keyword argument ", "no parameter "
        )
        raise PlanError(f"{kind.__name__}: {text}") from None


def _value(value: Any) -> Any:
    """Return a parameter of a document as a constructor takes it."""
    if isinstance(value, Mapping):
        return _mechanism(value.get("mechanism"), value.get("parameters", {}))
    if isinstance(value, list) and value and isinstance(value[0], list):
        return np.asarray(value)
    return value


def toml_of(columns: Sequence[Mapping[str, Any]], keep: Sequence[str]) -> str:
    """Return a plan as TOML."""
    lines = [f"keep = {_toml(list(keep))}", ""] if keep else []
    for column in columns:
        lines.append("[[column]]")
        lines += [f"{name} = {_toml(value)}" for name, value in column.items()]
        lines.append("")
    return "\n".join(lines)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def parsed(text: str) -> tuple[list[Column], list[str]]:
    """Return the columns and the kept names of a plan's TOML.

    Raises
    ------
    PlanError
        For a text that is no plan; the message begins with the line that is wrong.
    """
    document = _loads(text)
    for name in document:
        if name not in ("column", "keep"):
            raise PlanError(f"line {_line(text, name)}: {name}: no such key; a plan has column and keep")
    keep = document.get("keep", [])
    if not (isinstance(keep, list) and all(isinstance(name, str) for name in keep)):
        raise PlanError(f"line {_line(text, 'keep')}: keep: must be a list of names")
    tables = document.get("column", [])
    if not isinstance(tables, list) or not tables:
        raise PlanError("line 1: a plan has one or more [[column]] tables")
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _HEAD.match(line)]
    if len(starts) != len(tables):  # written in another form of TOML
        starts = [1] * len(tables)
    return [_located(text, start, table) for start, table in zip(starts, tables, strict=True)], keep


_HEAD = re.compile(r"\s*\[\[\s*column\s*\]\]")


def _located(text: str, start: int, table: Any) -> Column:
    """Return a column; what is wrong with it is said with the line that it stands in."""
    try:
        return column_of(table)
    except PlanError as error:
        named = str(error).partition(":")[0].split()[-1]
        lines = text.splitlines()[start:]
        ends = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[[")), len(lines))
        key = re.compile(rf"\s*(\[column\.)?{re.escape(named)}\b")
        own = next((i for i, line in enumerate(lines[:ends], start + 1) if key.match(line)), start)
        raise PlanError(f"line {own}: {error}") from None


def _line(text: str, name: str) -> int:
    key = re.compile(rf"\s*\[*{re.escape(name)}\b")
    return next((i for i, line in enumerate(text.splitlines(), 1) if key.match(line)), 1)


def _loads(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        require("plan files on Python 3.10", ["tomli"], "tables")
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = found[1] if found else str(len(text.splitlines()) or 1)
        raise PlanError(f"line {line}: {re.sub(r' [(]at .*[)]', '', str(error))}") from None
