"""Tables of the decision page: what `bitldp.recommend` answers, asked while the site is built."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bitldp
from bitldp.report import number

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
PEOPLE = 10_000

_Error = Callable[[float], str]


def _mean(variance: float) -> str:
    return f"± {number(math.sqrt(variance / PEOPLE), 2)}"


def _plain(value: float) -> str:
    return number(value, 2)


def _share(value: float) -> str:
    return f"{100.0 * value:.2g} %"


@dataclass(frozen=True)
class Asked:
    """One task: what is asked in plain words, of which sizes, and how its error is said."""

    task: str
    way: tuple[str, str]  # what somebody has, and wants
    title: str
    what: str
    sizes: Mapping[str, Mapping[str, Any]]
    error: str
    say: _Error = field(default=_mean)


#: In the order of the page.
TASKS = (
    Asked(
        "mean",
        ("numbers", "an average"),
        "A mean",
        "Numbers of a known interval: ages, durations, prices. Here of [-1, 1].",
        {"one number": {}, **{f"{d} numbers": {"features": d} for d in (10, 100)}},
        "standard error of each mean from 10,000 people",
    ),
    Asked(
        "frequency",
        ("answers of a list", "the share of each"),
        "How often each category occurs",
        "Answers of a public list: countries, browsers, diagnoses.",
        {f"{k:,} categories": {"categories": k} for k in (4, 32, 1000, 100_000)},
        "standard error of a share from 10,000 people",
    ),
    Asked(
        "record",
        ("rows of a table", "all of it"),
        "Several attributes of one person",
        "A row of a table: categories and numbers under one budget.",
        {
            "16, 16 and 3 categories": {"categories": [16, 16, 3]},
            "16 times yes or no": {"categories": [2] * 16},
            "the same and 2 numbers": {"categories": [16, 16, 3], "features": 2},
        },
        "standard error of each answer from 10,000 people",
    ),
    Asked(
        "distribution",
        ("numbers", "a median, a shape"),
        "A distribution, a median, quantiles",
        "Numbers whose shape counts, not their mean alone.",
        {f"{n:,} people": {"users": n} for n in (10_000, 1_000_000)},
        "expected distance (Wasserstein-1), as a share of the interval",
        _share,
    ),
    Asked(
        "range",
        ("ordered values", "counts between two ends"),
        "How many lie in a range",
        "Ordered values: how many between 720 and 840, for any two ends.",
        {f"{n:,} values": {"size": n} for n in (16, 1024)},
        "standard error of a range's share from 10,000 people",
    ),
    Asked(
        "top",
        ("words, addresses", "the top ten"),
        "The most frequent words",
        "Words that nobody could list: addresses, queries, crash sites.",
        {"words of 16 bits": {"size": 2**16}, "words of 64 bits": {"size": 2**64}},
        "standard error of a word's share from 10,000 people",
    ),
    Asked(
        "vector",
        ("updates, embeddings", "their mean"),
        "A mean of vectors",
        "Updates of a model, embeddings, clipped to a ball of radius 1.",
        {f"{d} numbers, {norm}": {"features": d, "norm": norm} for norm in ("l2",) for d in (16, 128, 768)}
        | {f"128 numbers, {norm}": {"features": 128, "norm": norm} for norm in ("l1", "linf")},
        "length of the error of the mean from 10,000 people",
    ),
    Asked(
        "point",
        ("a place, a rating", "the report itself"),
        "A value near the true one",
        "One report for its own sake: a place, a rating.",
        {f"{n} points": {"candidates": n} for n in (24, 100)},
        "expected steps between the report and the truth",
        _plain,
    ),
    Asked(
        "label",
        ("the class of a record", "the report itself"),
        "Labels to train on",
        "The class of a record, to be used as it is reported.",
        {f"{k} classes": {"categories": k} for k in (2, 10)},
        "chance that a reported label is false",
        _share,
    ),
)


def sections() -> str:
    """Return the list of tasks and a section for each, which become pages: tables are filled in there."""
    ways = [
        f"| {have} | {want} | [{asked.title[0].lower()}{asked.title[1:]}](#{asked.task}) |"
        for asked in TASKS
        for have, want in (asked.way,)
    ]
    parts = [
        f"### {asked.title} {{#{asked.task}}}\n\n{asked.what} A cell names the best mechanism, with its "
        f"{asked.error}, the bits of a report and, where a bound is known, the most by which its error "
        f"exceeds the best possible one.\n\n<!-- site:choosing {asked.task} -->\n"
        for asked in TASKS
    ]
    return "\n".join(["| you have | you want | go to |", "|---|---|---|", *ways, "", *parts])


def table(task: str, links: Mapping[str, str], epsilons: Sequence[float] = EPSILONS) -> str:
    """Return the table of a task as HTML, and the call that computes a row of it.

    Parameters
    ----------
    task : str
        Task of `bitldp.recommend`.
    links : mapping of str to str
        Link to the section of each mechanism, by the name of its class.
    epsilons : sequence of float
        Budgets of a record, the columns.
    """
    (asked,) = (asked for asked in TASKS if asked.task == task)
    shades: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        rows = [_row(asked, name, size, links, epsilons, shades) for name, size in asked.sizes.items()]
    heads = "".join(f"<th>ε {epsilon:g}</th>" for epsilon in epsilons)
    call = ", ".join([repr(task), "epsilon=2.0", *_arguments(next(reversed(asked.sizes.values())))])
    call = call.replace("'", '"')
    return (
        f'<div class="md-typeset__scrollwrap"><table class="choice"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>\n\n`bitldp.recommend({call})`\n"
    )


def _arguments(size: Mapping[str, Any]) -> Sequence[str]:
    return [f"{name}={value!r}" for name, value in size.items()]


def _row(
    asked: Asked,
    name: str,
    size: Mapping[str, Any],
    links: Mapping[str, str],
    epsilons: Sequence[float],
    shades: list[str],
) -> str:
    cells = []
    for epsilon in epsilons:
        advice = bitldp.recommend(asked.task, epsilon=epsilon, **size)  # type: ignore[arg-type]
        best = advice.rows[0]
        kind = type(best.mechanism).__name__
        if kind not in shades:
            shades.append(kind)
        bits = "1 bit" if best.bits == 1 else f"{best.bits:,} bits"
        link = f'<a href="{links[kind]}">{kind}</a>'
        cells.append(
            f'<td class="s{shades.index(kind) % 7}" data-label="ε {epsilon:g}">{link}<br>'
            f"<small>{asked.say(best.mean)}<br>{bits}{_proven(advice)}</small></td>"
        )
    return f"<tr><th>{name}</th>{''.join(cells)}</tr>"


def _proven(advice: bitldp.Recommendation) -> str:
    """Return how near the least the answer is proven to be, where a bound says it within a third."""
    said = re.match(r"proven (within [0-9.]+ %)", advice.proof)
    return f"<br>{said[1]}" if said and float(said[1].split()[1]) < 33.0 else ""
