"""Pages of the papers' figures, from the record of their last run: what was printed, what is so, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import drawing
from bitldp import report
from bitldp_papers.figures import FORMS
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
        parts = "\n".join(_figure(figure, one) for figure, one in mine.items())
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
        "\n## Accuracy by exact ε\n",
        "The exact ε is computed from the integers that are sampled. “Found” is the chance that an attacker "
        f"with {CANDIDATES:,} candidates, equally likely before, names the right one after a single report: "
        "the most that the claimed ε would allow, and the most that the exact one does.\n",
        buys_table(),
        _folded(str(attacks_table(attacks))),
        "\n## Every figure: the paper's number, ours, and what holds\n",
        f"{len(kept['figures'])} figures and tables ({_forms(kept)}), made by `make papers` until "
        f"{kept['date']} (bitldp {kept['versions']['bitldp']}, Python {kept['versions']['python']}). A "
        "figure's name leads to its drawing and all its numbers. “The paper” has numbers that stand in its "
        "text, and, with ±, those read off a drawing; what a formula of the paper gives is not among them. "
        "What holds is computed: from these numbers, and of learning from paired differences over the seeds, "
        "at 95 %.\n",
    ]
    for key, (name, what) in PAPERS.items():
        parts += [f"\n### {name}\n", f"{what[0].upper()}{what[1:]}: [page](papers/{key}.md).\n"]
        parts += ["| figure | the paper | ours | what holds |", "|---|---:|---:|---|"]
        parts += [_line(key, figure, one) for figure, one in _of(kept, key).items()]
    return "\n".join(parts)


def _folded(table: str) -> str:
    """Return a long table under its title, to be opened by a click."""
    title = re.search(r"<h2>(.*?)</h2>", table)
    name = title[1] if title else ""
    return f"<details><summary>{name}</summary>{table.replace(f'<h2>{name}</h2>', '')}</details>"


def _of(kept: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: one for name, one in kept["figures"].items() if name.partition("-")[0] == key}


def _forms(kept: Mapping[str, Any]) -> str:
    """Return how many figures are there in which form."""
    counts = {form: sum(one["form"] == form for one in kept["figures"].values()) for form in FORMS}
    return ", ".join(f"{count} in the {form} form" for form, count in counts.items() if count)


def _line(key: str, name: str, one: Mapping[str, Any]) -> str:
    link = f"[{_words(one['title'])}](papers/{key}.md#{name})"
    if "verdict" not in one:
        return f"| {link} | | | {_words(one['reason'])} |"
    first = next((each for each in one["compared"] if each["paper"] is not None), one["compared"][0])
    what = f"<br><small>{_words(first['what'])}</small>"
    ours = _number(first["ours"], first["spread"])
    so = [f"**{each['word']}**: {_words(each['says'])}" for each in one["findings"]]
    return f"| {link}{what} | {_paper(first)} | {ours} | {'<br>'.join(so) or _words(one['verdict'])} |"


def _figure(name: str, one: Mapping[str, Any]) -> str:
    parts = [f"## {one['title']} {{#{name}}}\n"]
    parts += [f"{one['source']} · `bitldp paper {name}{_option(one['form'])}`\n"]
    whose = "The paper" if name.partition("-")[0] in _FIVE else "The claim"
    parts += [f'!!! quote "{whose}"', f"    {_sentence(one['claim'])}\n"]
    if "verdict" not in one:
        return "\n".join([*parts, f"Not made: {one['reason']}\n"])
    if one["findings"]:
        parts += [_findings(one["findings"]), ""]
    else:
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
    parts.append(f"<small>{_how(one)}</small>\n")
    return "\n".join(parts)


def _option(form: str) -> str:
    """Return the option of a form."""
    return {"quick": " --quick", "full": ""}.get(form, f" --form {form}")


def _how(one: Mapping[str, Any]) -> str:
    """Return form, date, seeds, data and seconds of a figure: those of the run that made it."""
    seeds = [", ".join(map(str, one["seeds"]))] if one["seeds"] else []
    seeds += [f"{', '.join(map(str, some))} ({_words(of)})" for of, some in one["fewer"].items()]
    shared = f", and {one['borrowed']:,.0f} s of steps that figures share" if one["borrowed"] else ""
    return (
        f"{one['form'].capitalize()} form, {one['date']}: seeds {'; '.join(seeds) or 'none'}; data: "
        f"{', '.join(one['data']) or 'none'}; {one['seconds']:,.0f} s{shared}."
    )


def _findings(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return what is stated, whether it is so, and the numbers behind it."""
    lines = ["| statement | so | because |", "|---|---|---|"]
    for each in findings:
        so = f"**{each['word']}**{{.fails}}" if each["holds"] is False else f"**{each['word']}**"
        lines.append(f"| {_words(each['says'])} | {so} | {_words(each['because'])} |")
    return "\n".join(lines)


def _compared(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers side by side; a column in which nothing stands is left out."""
    names = ("what", "the paper", "formula", "ours", "agrees", "claimed ε", "exact ε")
    lines = [
        [
            _words(row["what"]),
            _paper(row),
            _number(row["formula"]),
            _number(row["ours"], row["spread"]),
            _agreement(row),
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


def _paper(row: Mapping[str, Any]) -> str:
    """Return the paper's number: as it is printed, or with the uncertainty of what was read off."""
    return _words(row["text"]) if row["text"] else _number(row["paper"], row["within"])


def _agreement(row: Mapping[str, Any]) -> str:
    """Return whether ours is the paper's number, in words; nothing where there is none."""
    if not row.get("reached", True):
        return "not reached"
    if row["agrees"] is None:
        return "within the spread" if row["kind"] in ("printed", "drawn") else ""
    return "yes" if row["agrees"] else "**no**{.fails}"


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
