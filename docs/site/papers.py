"""Pages of the papers' figures, from the record of their last run: what was printed, what is so, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import drawing
from bitldp import report
from bitldp_papers.page.buys import CANDIDATES, attacks_table, buys_table
from bitldp_papers.page.parts import overrun, standing

RECORD = Path(__file__).parents[2] / "benches" / "records" / "papers.json"

#: Who is on which page: a short name, what it is, and where it was published.
PAPERS = {
    "bitrand": ("BitRand", "bits of features, randomized one by one; ICLR 2022 submission"),
    "ldpfl": ("LDPFL", "features of local networks, by UER and MOUE, sent to a server"),
    "mvu": ("MVU", "numbers and updates in few bits; Chaudhuri, Guo and Rabbat, UAI 2022"),
    "fedsel": ("FedSel", "one dimension of a gradient, chosen in private; Liu et al., DASFAA 2020"),
    "brr": ("BRR", "points near the truth; arXiv:2504.20926"),
    "attack": ("Attacks", "what the papers fear, played against their own settings"),
    "honest": ("At a true ε", "what is learned where the ε of a client is what it says"),
    "peers": ("Other libraries", "the same laws elsewhere: time and error"),
}
_FIVE = tuple(PAPERS)[:5]
_SHOWN = 8  # rows of a comparison that are there at once


def record() -> dict[str, Any]:
    """Return the record."""
    result: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return result


def pages() -> dict[str, str]:
    """Return a page a paper, by its address."""
    kept = record()
    result = {}
    for key, (name, what) in PAPERS.items():
        mine = _of(kept, key)
        parts = "\n".join(_figure(figure, one, kept) for figure, one in mine.items())
        result[f"papers/{key}.md"] = (
            f"# {name}\n\n{what[0].upper()}{what[1:]}. {len(mine)} figures and tables, made again; "
            f"[all papers](../papers.md).\n\n{parts}\n"
        )
    return result


def overview() -> str:
    """Return what each epsilon buys, and a line a figure: the paper's number, ours, why."""
    kept = record()
    attacks = [
        {**one, "name": name, "paper": "attack"} for name, one in _of(kept, "attack").items() if "rows" in one
    ]
    parts = [
        "\n## What the published ε really buys\n",
        "The exact ε is computed from the integers that are sampled. “Found” is the chance that an attacker "
        f"with {CANDIDATES:,} candidates, equally likely before, names the right one after a single report: "
        "the most that the claimed ε would allow, and the most that the exact one does.\n",
        buys_table(),
        _folded(str(attacks_table(attacks))),
        "\n## Every figure: the paper's number, ours, and why\n",
        f"{len(kept['figures'])} figures and tables in their short form, run on {kept['date']} by "
        f"`make papers` (bitldp {kept['versions']['bitldp']}, Python {kept['versions']['python']}). A "
        "figure's name leads to its drawing and all its numbers.\n",
    ]
    for key, (name, what) in PAPERS.items():
        parts += [f"\n### {name}\n", f"{what[0].upper()}{what[1:]}: [page](papers/{key}.md).\n"]
        parts += ["| figure | the paper | ours | why |", "|---|---:|---:|---|"]
        parts += [_line(key, figure, one) for figure, one in _of(kept, key).items()]
    return "\n".join(parts)


def _folded(table: str) -> str:
    """Return a long table under its title, to be opened by a click."""
    title = re.search(r"<h2>(.*?)</h2>", table)
    name = title[1] if title else ""
    return f"<details><summary>{name}</summary>{table.replace(f'<h2>{name}</h2>', '')}</details>"


def _of(kept: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: one for name, one in kept["figures"].items() if name.partition("-")[0] == key}


def _line(key: str, name: str, one: Mapping[str, Any]) -> str:
    link = f"[{_words(one['title'])}](papers/{key}.md#{name})"
    if "verdict" not in one:
        return f"| {link} | | | {_words(one['reason'])} |"
    first = next((each for each in one["compared"] if each["paper"] is not None), one["compared"][0])
    what = f"<br><small>{_words(first['what'])}</small>"
    ours = _number(first["ours"], first["spread"])
    return f"| {link}{what} | {_number(first['paper']) or 'drawn'} | {ours} | {_words(one['verdict'])} |"


def _figure(name: str, one: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    parts = [f"## {one['title']} {{#{name}}}\n", f"{one['source']} · `bitldp paper {name} --quick`\n"]
    whose = "The paper" if name.partition("-")[0] in _FIVE else "The claim"
    parts += [f'!!! quote "{whose}"', f"    {_sentence(one['claim'])}\n"]
    if "verdict" not in one:
        return "\n".join([*parts, f"Not made: {one['reason']}\n"])
    parts += ['!!! abstract "What is so"', f"    {_sentence(one['verdict'])}\n"]
    if one["panels"]:
        parts += [drawing.inline(one["panels"], one["title"], name), ""]
    elif "rows" not in one:
        parts.append("Its drawing is not kept: it would show records of the data set.\n")
    parts += [_compared(one["compared"]), ""]
    if one.get("rows") and not one["panels"]:
        parts += [_whole(one["rows"]), ""]
    for title, key in (("Honestly", "honest"), ("Stand-in", "stand_in")):
        if one[key]:
            parts.append(f"**{title}.** {_sentence(one[key])}\n")
    seeds = ", ".join(map(str, one["seeds"]))
    data = ", ".join(one["data"]) or "none"
    how = f"Short form, {kept['date']}: seeds {seeds}; data: {data}; {one['seconds']:,.0f} s."
    parts.append(f"<small>{how}</small>\n")
    return "\n".join(parts)


def _compared(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers side by side; a column in which nothing stands is left out."""
    names = ("what", "the paper", "ours", "claimed ε", "exact ε")
    lines = [
        [
            _words(row["what"]),
            _number(row["paper"]),
            _number(row["ours"], row["spread"]),
            _number(row["claimed"]),
            _exact(row),
        ]
        for row in rows
    ]
    heads, cut = standing(names, lines)
    head = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    shown = ["| " + " | ".join(line) + " |" for line in cut]
    first = "\n".join(head + shown[:_SHOWN])
    if not shown[_SHOWN:]:
        return first
    rest = "\n".join(f"    {line}" for line in head + shown[_SHOWN:])
    return f'{first}\n\n??? note "{len(shown) - _SHOWN} more"\n\n{rest}'


def _whole(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole table of a paper, as it was made again, to be opened by a click."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(map(_words, names)) + " |", "|---" * len(names) + "|"]
    lines += ["| " + " | ".join(_number(row.get(name)) for name in names) + " |" for row in rows]
    return '??? note "The whole table"\n\n' + "\n".join(f"    {line}" for line in lines)


def _exact(row: Mapping[str, Any]) -> str:
    """Return the exact epsilon, marked where it is above the claimed one."""
    shown = _number(row["exact"])
    # The record's numbers have four digits.
    return f"**{shown}**{{.fails}}" if overrun(row, 1e-3) else shown


def _number(value: Any, spread: float | None = None) -> str:
    if value is None:
        return ""
    if value == "infinity":
        return "∞"
    if not isinstance(value, (int, float)):
        return _words(str(value))
    text = report.number(float(value), 4)
    return f"{text} ± {report.number(spread, 2)}" if spread else text


def _sentence(text: str) -> str:
    words = _words(text)
    first = words[0] if words.startswith("f-RR") else words[0].upper()
    return f"{first}{words[1:].rstrip('.')}."


def _words(text: str) -> str:
    """Return a sentence with what Markdown would read as its own taken literally."""
    return re.sub(r"([\\*_|\[\]`#])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")
