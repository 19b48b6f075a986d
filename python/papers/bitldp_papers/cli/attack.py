"""``bitldp attack``: what an attacker makes of what clients send, beside what the exact epsilon allows."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from bitldp.base.documents import jsonable
from bitldp.base.errors import require
from bitldp.base.files import replacing
from bitldp.cli.plugin import CommandError, UsageError, print_whole, sentences, wide_console
from bitldp.cli.plugin import names as listed
from bitldp.report import number
from rich.console import Console
from rich.table import Table

from bitldp_papers.cli.given import Held, Label, Public, opened

__all__ = ["attack"]

_NAMES = ("linkage", "membership", "inversion")


def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help="linkage, membership or inversion.")],
    data: Annotated[
        str,
        typer.Option(metavar="NAME|FILE", help="Data set, or a file; its test records are the candidates."),
    ] = "digits",
    label: Label = None,
    ranges: Public = None,
    test: Held = None,
    epsilon: Annotated[
        str, typer.Option(metavar="E,E,...", help="Exact budgets to attack, besides the papers' settings.")
    ] = "1,4,8",
    rounds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Releases of each record; --epsilon covers all of them.")
    ] = 1,
    trials: Annotated[int, typer.Option(min=1, max=1_000_000, help="Attacks for each seed.")] = 200,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Number of seeds, from --seed on.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Default: attack-output/NAME.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Attack what clients send, at the papers' settings and at an exact epsilon.

    linkage: which of all test records a released one is of. membership: whether a report is of a person whose
    record is known, or of another. inversion: which record, and which label, the gradients of a client were
    made of, while a model is trained in --rounds. The attacker names the likeliest candidate: by the law that
    the mechanism samples from, added over the rounds. Beside each success stand the most that the exact
    epsilon allows any attacker, and the epsilon that the successes prove at 95 % confidence, of all rounds
    together. The folder holds attack.json, attack.svg and attack.png.

    Example: bitldp attack inversion --rounds 30 --trials 50
    """
    with sentences(), ExitStack() as stack:
        require("bitldp attack", ("flwr", "jax", "sklearn", "matplotlib"), "papers")
        from bitldp_papers.attacks import ATTACKS
        from bitldp_papers.attacks.outcomes import WORDS, outcome
        from bitldp_papers.data import DatasetError, using
        from bitldp_papers.figures.drawing import drawn

        if name not in _NAMES:
            raise UsageError(f"no attack {name!r}; there are {', '.join(_NAMES)}")
        budgets = _budgets(epsilon)
        seeds = range(seed, seed + repeats)
        console = Console(stderr=True)
        attacked = []
        try:
            mine = opened(data, label, ranges, test)
            if mine is not None:
                data = stack.enter_context(using(mine))
            with console.status(f"{name} on {data}"):
                for each in ATTACKS[name](data, seeds=seeds, epsilons=budgets, trials=trials, rounds=rounds):
                    attacked.append(each)  # one by one: an interrupt ends it between them
        except (ValueError, DatasetError) as error:
            raise CommandError(str(error)) from None
        result = outcome(name, data, attacked, trials)
        folder = out or Path("attack-output") / name
        folder.mkdir(parents=True, exist_ok=True)
        document = {"attack": name, "seeds": list(seeds), **result.document()}
        text = json.dumps(jsonable(document), indent=1, allow_nan=False)
        files = {"attack.json": f"{text}\n".encode()}
        title = f"{name.capitalize()} on {data}: {WORDS[name]}"
        files |= {f"attack.{form}": each for form, each in drawn(result, title).items()}
        for file, content in files.items():
            with replacing(folder / file) as target:
                target.write(content)
        if as_json:
            print(text)
            return
        many = f", {rounds} rounds" if rounds > 1 else ""
        table = Table(title=f"{title}{many}, {trials} trials a seed, {repeats} seeds")
        more = list(attacked[0].more)
        names = ("mechanism", "claimed epsilon", "exact epsilon", "success", "at most", "proves", *more)
        for column in names:
            table.add_column(column, justify="left" if column == "mechanism" else "right")
        for each in attacked:
            spread = "" if math.isnan(each.deviation) else f" ± {each.deviation:.4f}"
            cells = (number(each.claimed), number(each.exact, 6), f"{each.mean:.4f}{spread}")
            table.add_row(
                each.mechanism,
                *cells,
                f"{each.ceiling:.4f}",
                number(each.proven(), 3),
                *(f"{each.more[m]:.4f}" for m in more),
            )
        screen = wide_console()
        print_whole(screen, table)
        screen.print(f"chance {number(attacked[0].chance)}; {result.honest}", markup=False, highlight=False)
        for finding in result.findings:
            screen.print(f"{finding.word}: {finding.says} ({finding.because})", markup=False, highlight=False)
        screen.print(f"folder: {folder}", markup=False)


def _budgets(text: str) -> list[float]:
    """Return the budgets of a list."""
    try:
        budgets = [float(each) for each in listed(text, "--epsilon")]
    except ValueError:
        budgets = []
    if not budgets or not all(0.0 < each < math.inf for each in budgets):
        raise UsageError(f"--epsilon {text}: must be numbers above zero, separated by commas")
    return budgets
