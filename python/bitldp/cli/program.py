"""The ``bitldp`` program: commands by name, each imported when it is called.

Another distribution adds a command by an entry point of the group ``bitldp.commands``: a function that Typer
can read, with the attribute ``command_class`` where it needs a class of its own (`bitldp.cli.plugin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from bitldp._core import __version__
from bitldp.base.errors import MissingExtraError

__all__ = ["BESIDE", "COMMANDS", "GROUP", "app"]

#: Entry points of this group are commands.
GROUP = "bitldp.commands"

#: Commands of the library: module and function, and the line that ``bitldp --help`` shows.
COMMANDS = {
    "plan": (
        "bitldp.cli.plan:plan",
        "Draft a plan from the types of a table, and print the expected errors of its answers.",
    ),
    "perturb": (
        "bitldp.cli.perturb.command:perturb",
        "Randomize columns of a file, or of many, under local differential privacy.",
    ),
    "estimate": (
        "bitldp.cli.estimate:estimate",
        "Answer questions from a released table, with confidence intervals.",
    ),
    "verify": (
        "bitldp.cli.verify:verify",
        "Check a privacy report: recompute epsilon from its parameters, compare plan, file and signature.",
    ),
    "keypair": (
        "bitldp.cli.sign:keypair",
        "Make a key pair: a private key to sign reports with, and a public one to check them.",
    ),
    "ledger": (
        "bitldp.cli.ledger:ledger",
        "Show what releases about a set of people have spent, and how much budget is left.",
    ),
    "gate": (
        "bitldp.cli.gate:gate",
        "Run a Flower app behind a gate that lets only private reports out.",
    ),
    "explain": (
        "bitldp.cli.explain:explain",
        "Show the guarantee and the expected error of a setting, without any data.",
    ),
    "client": (
        "bitldp.cli.client:client",
        "Write or check the document from which a web page, an app or a daemon randomizes.",
    ),
    "recommend": (
        "bitldp.cli.recommend:recommend",
        "Compare the mechanisms for a task at the same exact epsilon, best first.",
    ),
    "audit": (
        "bitldp.cli.audit:audit",
        "Draw reports, compute a lower bound on epsilon, and compare it with the exact value; needs no data.",
    ),
    "demo": (
        "bitldp.cli.demo:demo",
        "Release a table of real people, ask it questions, and compare the answers with the truth.",
    ),
}

#: Commands of this project's other distributions: the extra that brings each, and its line.
BESIDE = {
    "fl": (
        "papers",
        "Run a federated system of a paper with its clients, server and baselines, in this process.",
    ),
    "paper": (
        "papers",
        "Reproduce figures and tables of the papers as CSV, JSON, SVG and PNG, and on one page.",
    ),
    "attack": (
        "papers",
        "Attack what clients send, at the papers' settings and at an exact epsilon.",
    ),
}


class _Commands(MutableMapping[str, TyperCommand]):
    """Commands by name; one is imported when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, TyperCommand] = {}
        self._added: dict[str, EntryPoint] | None = None

    @property
    def added(self) -> dict[str, EntryPoint]:
        """The entry points of installed distributions, by name."""
        if self._added is None:
            found = {each.name: each for each in entry_points(group=GROUP)}
            self._added = {name: found[name] for name in sorted(found) if name not in COMMANDS}
        return self._added

    def line(self, name: str) -> str:
        """Return the line of the help about a command; those of the tables are not imported for it."""
        if name in COMMANDS:
            return COMMANDS[name][1]
        if name not in BESIDE:
            return self[name].get_short_help_str(limit=100)
        extra, line = BESIDE[name]
        return line if name in self.added else f'pip install "bitldp[{extra}]"'

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in self._loaded:
            self._loaded[name] = self._made(name)
        return self._loaded[name]

    def _made(self, name: str) -> TyperCommand:
        if name in COMMANDS:
            module, _, attribute = COMMANDS[name][0].partition(":")
            return _command(name, getattr(import_module(module), attribute))
        if name in self.added:
            return _command(name, self.added[name].load())
        if name in BESIDE:
            return _absent(name, BESIDE[name][0])
        raise KeyError(name)

    def __setitem__(self, name: str, command: TyperCommand) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*COMMANDS, *BESIDE, *self.added, *self._loaded])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _command(name: str, function: Callable[..., None], **settings: Any) -> TyperCommand:
    """Return a function as a command; its class is the attribute ``command_class``, `Once` by default."""
    from bitldp.cli.commands import Once

    one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    one.command(name, cls=getattr(function, "command_class", Once), **settings)(function)
    command: TyperCommand = get_command(one)  # type: ignore[assignment]
    return command


def _absent(name: str, extra: str) -> TyperCommand:
    """Return a command that says which extra brings it, whatever it is given."""

    def tell(rest: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        from bitldp.cli.screen import sentences

        with sentences():
            raise MissingExtraError(f'bitldp {name} needs bitldp-{extra}: pip install "bitldp[{extra}]"')

    tell.__doc__ = f'Comes with pip install "bitldp[{extra}]".'
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return _command(name, tell, context_settings=settings, add_help_option=False)


class _Program(TyperGroup):
    """The group of all commands."""

    commands: MutableMapping[str, TyperCommand]  # type: ignore[assignment]  # imported when looked up

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, those of the library first."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, without importing it."""
        known = self.commands
        with formatter.section("Commands"):
            formatter.write_dl([(name, known.line(name)) for name in known])  # type: ignore[attr-defined]


app = typer.Typer(
    cls=_Program,
    help="Local differential privacy: randomize files, and see what a setting guarantees.",
    no_args_is_help=True,
    rich_markup_mode=None,
    # Local variables of a failed run may be private data.
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        print(f"bitldp {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
