"""Commands whose options are those of the mechanisms: each is written once, in a constructor."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from bitldp.cli.catalogue.entries import entries
from bitldp.cli.catalogue.entry import Entry
from bitldp.cli.catalogue.fields import shown
from bitldp.cli.once import Once

__all__ = ["AsJson", "MechanismCommand", "offering"]

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]

_CHOSEN, _HELPING = "bitldp.chosen", "bitldp.helping"
_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_FEW = 6  # mechanisms that are named beside an option
_ALIASES = {"classes": ("--categories",)}


def offering(
    of: Callable[[Entry], bool] = lambda _: True, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of mechanisms.

    Parameters
    ----------
    of : callable
        Whether a mechanism is one of the command's.
    without : collection of str
        Options that the command does not have, or has as its own.

    Returns
    -------
    callable
        The command gets, as its argument `options`, those that were given, by name with underscores.
    """
    takers: dict[str, list[Entry]] = {}
    for each in filter(of, entries().values()):
        for name in each.options:
            if name not in without:
                takers.setdefault(name, []).append(each)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [each for each in signature.parameters.values() if each.name != "options"]
        for name, those in takers.items():
            stated = _stated(name, those)
            parameters.append(inspect.Parameter(name, _BY_NAME, default=None, annotation=stated))

        @wraps(command)
        def run(**given: Any) -> None:
            options = {name: given.pop(name) for name in takers}
            command(**given, options={name: each for name, each in options.items() if each is not None})

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.offered = frozenset(takers)  # type: ignore[attr-defined]
        run.command_class = MechanismCommand  # type: ignore[attr-defined]
        return run

    return decorate


def _stated(name: str, takers: Sequence[Entry]) -> Any:
    """Return the annotation of an option that some mechanisms take."""
    given = next((each.options[name] for each in takers if each.options[name].about), takers[0].options[name])
    names = ", ".join(each.name for each in takers) if len(takers) <= _FEW else ""
    flags = [f"{shown(name)}/{shown('no_' + name)}" if given.kind is bool else shown(name)]
    words = {word: None for each in takers for word in each.options[name].words}
    option = typer.Option(
        *(*flags, *_ALIASES.get(name, ())),
        help=f"{names}: {given.sentence}" if names else given.sentence,
        metavar=None if given.kind is bool else "|".join(words) or given.form,
    )
    return Annotated[given.kind | None, option]


class MechanismCommand(Once):
    """A command whose help shows the options of the mechanism that is named beside ``--help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the mechanism that is named, and read the arguments."""
        ctx.meta[_CHOSEN] = None
        if "--help" in args:
            ctx.meta[_CHOSEN] = _named(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; in the help of a mechanism those that apply to it, in its own words."""
        params, chosen = super().get_params(ctx), ctx.meta.get(_CHOSEN)
        if chosen is None or not ctx.meta.get(_HELPING):
            return params
        own = {*chosen.options, *(("low", "high", "points") if chosen.kind.on_points else ())}
        of_others = set(getattr(self.callback, "offered", ())) - own
        found = [copy.copy(param) for param in params if param.name not in of_others]
        for param in found:
            if given := chosen.options.get(param.name):
                param.help, param.metavar = given.help, None if given.kind is bool else given.form
        return found

    def get_help(self, ctx: Any) -> str:
        """Return the help, of one mechanism where it is named."""
        ctx.meta[_HELPING] = True
        try:
            return super().get_help(ctx)
        finally:
            ctx.meta[_HELPING] = False

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does, and what the mechanism is."""
        chosen = ctx.meta.get(_CHOSEN)
        if chosen is not None:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{chosen.name}: {chosen.summary}; takes {' or '.join(chosen.takes)}.")
        super().format_help_text(ctx, formatter)


def _named(args: Sequence[str]) -> Entry | None:
    """Return the mechanism that is named among arguments."""
    words = [arg.removeprefix("--mechanism=").lower().replace("_", "-") for arg in args]
    if "--mechanism" in args[:-1]:
        words = [words[args.index("--mechanism") + 1]]
    return next((entries()[word] for word in words if word in entries()), None)
