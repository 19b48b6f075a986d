"""``bitldp gate``: the process between a SuperNode and its app."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bitldp.base.errors import require
from bitldp.cli.catalogue import Given, entry, shown
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.screen import sentences
from bitldp.ledger import Ledger, NoLedgerError
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import number

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from bitldp.federated import PrivateUpdateMod

__all__ = ["gate", "policy_of"]

_TABLES = ("update", "metrics", "ledger", "replies")
_CODEC = {"clip", "norm", "update", "interval", "integers", "only", "keep_local", "allow_biased", "rows"}
_LEDGER = {"file", "budget", "delta", "repeat"}
_REPLIES = {"every", "deadline"}


def gate(
    policy: Annotated[Path, typer.Argument(help="TOML file with what may leave and its privacy budget.")],
    supernode: Annotated[
        str | None, typer.Option(help="Address of the SuperNode's Runtime API, as 127.0.0.1:9094.")
    ] = None,
    root_certificates: Annotated[
        Path | None, typer.Option(help="PEM file of the authority that signed the SuperNode's certificate.")
    ] = None,
    secret: Annotated[
        Path | None, typer.Option(help="The file that the SuperNode takes as --superexec-auth-secret-file.")
    ] = None,
    app_user: Annotated[
        str | None, typer.Option(help="User to run the app as, confined; needs root and Linux.")
    ] = None,
    app_home: Annotated[Path | None, typer.Option(help="Folder that this user may write into.")] = None,
    app_command: Annotated[
        str | None, typer.Option(help="The app's flower-superexec; default: the one beside this Python.")
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option(help="Folder to hide from the app, besides /run. Repeatable."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Address for an app that is confined by other means, instead of --app-user."),
    ] = None,
    begin: Annotated[
        bool, typer.Option("--begin", help="Create the ledger, which must not exist yet, and stop.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Print what may leave, and stop.")] = False,
) -> None:
    r"""Run a Flower app behind a gate that lets only private reports out.

    The server's side delivers the app's code: what that code promises is the server's word. The gate is the
    node owner's: it takes the plain update out of the app's reply, clips, randomizes and charges it by the
    owner's policy, and sends a reply that it builds itself, at a time that the app has no part in. An app
    that fails or is silent is answered for by a release of zeros. The SuperNode runs with --isolation
    process.

    With --app-user the gate starts the app as that user, in a network that has the gate and nothing else.

    The policy is a TOML file, with mechanisms as of `bitldp explain`:

    \b
      [update]
      mechanism = "cross-polytope"
      epsilon = 4.0
      clip = 1.0

    \b
      [ledger]
      file = "/var/lib/me/ledger.json"
      budget = 40.0

    \b
      [replies]
      every = 60.0
    """
    with sentences():
        require("bitldp gate, on Python 3.11 or newer,", ["flwr"], "fl")
        mod, times = policy_of(policy, begin=begin)
        _say(mod, times)
        if check or begin:
            return
        if supernode is None:
            raise UsageError("--supernode is needed")
        if (app_user is None) == (listen is None):
            raise UsageError("give --app-user, or --listen if the app is confined by other means")
        if app_user is None and (app_home or app_command or hide):
            raise UsageError("--app-home, --app-command and --hide need --app-user")
        if app_user is not None and app_home is None:
            raise UsageError("--app-home is needed")
        host, _ = _address("--supernode", supernode)
        if root_certificates is None and host not in ("127.0.0.1", "::1", "localhost"):
            raise UsageError("--root-certificates is needed for a SuperNode on another machine")
        _run(
            mod,
            times,
            supernode,
            root_certificates,
            secret,
            app_user,
            app_home,
            app_command,
            hide or [],
            listen,
        )


def _run(
    mod: PrivateUpdateMod,
    times: Mapping[str, float],
    supernode: str,
    certificates: Path | None,
    secret: Path | None,
    user: str | None,
    home: Path | None,
    command: str | None,
    hide: list[str],
    listen: str | None,
) -> None:
    """Serve the app and answer the SuperNode, until a signal ends it."""
    from bitldp.federated.gate import AppRuntime, ConfinementError, Gate, NodeRuntime, confined
    from bitldp.federated.gate.confine import HIDDEN, PORT

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # at once: what was charged stays charged
    app = AppRuntime()
    with ExitStack() as stack:
        node = stack.enter_context(
            NodeRuntime(
                supernode,
                certificate=None if certificates is None else certificates.read_bytes(),
                secret=None if secret is None else secret.read_bytes(),
            )
        )
        if user is not None and home is not None:
            program = command or str(Path(sys.executable).parent / "flower-superexec")
            started = [program, "--insecure", "--runtime-api-address", f"127.0.0.1:{PORT}"]
            try:
                listening = stack.enter_context(confined(user, home, started, hidden=[*HIDDEN, *hide]))
            except ConfinementError as error:
                raise CommandError(f"--app-user: {error}") from None
        else:
            listening = stack.enter_context(socket.create_server(_address("--listen", listen or "")))
        stack.enter_context(app.served(listening))
        one = Gate(mod, node, app, **times)
        print("the gate is open", file=sys.stderr, flush=True)
        with suppress(KeyboardInterrupt):
            one.run(threading.Event())


def _address(option: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option}: must be host:port")
    return host.strip("[]"), int(port)


def _say(mod: PrivateUpdateMod, times: Mapping[str, float]) -> None:
    """Print what may leave."""
    steps = round(times.get("deadline", times["every"]) / times["every"])
    account = mod.account
    mechanism = mod.codec.mechanism
    by = f"{mechanism!r}" if isinstance(mechanism, Mechanism) else f"{mechanism.__doc__}, as one record"
    lines = [
        f"an update leaves by {by}",
        f"clipped to the {mod.codec.norm} norm {number(mod.codec.clip)}",
        f"all releases cost epsilon {number(account.budget)} and delta {number(account.delta)} at most, "
        f"by the ledger {account.path}",
        f"a reply leaves {number(times['every'])} seconds after its question; its time tells nothing"
        if steps == 1
        else f"a reply leaves a multiple of {number(times['every'])} seconds after its question; which of "
        f"{steps} is the app's choice",
    ]
    for charge in [] if mod.evaluation is None else mod.evaluation.charges:
        lines.append(f"{charge.note} leaves by {charge.release!r}")
    print("\n".join(lines))


def policy_of(path: Path, *, begin: bool = False) -> tuple[PrivateUpdateMod, dict[str, float]]:
    """Return the mod of a policy, and the times of its replies, by the names that `Gate` gives them.

    With `begin`, its ledger is begun.

    Raises
    ------
    UsageError
        For what is not a policy; the message names the table and the key.
    """
    from bitldp.federated import ClientAccount, PrivateUpdateMod, UpdateCodec

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no TOML ({error})") from None
    _only(path, "", document, set(_TABLES))
    for name in ("update", "ledger", "replies"):
        if not isinstance(document.get(name), dict):
            raise UsageError(f"{path}: needs a table [{name}]")
    update, ledger, replies = (dict(document[name]) for name in ("update", "ledger", "replies"))
    _only(path, "ledger", ledger, _LEDGER)
    _only(path, "replies", replies, _REPLIES)
    for table, name, given in (
        ("ledger", "file", ledger),
        ("ledger", "budget", ledger),
        ("replies", "every", replies),
    ):
        if name not in given:
            raise UsageError(f"{path}: [{table}] needs {name}")
    options = {name: update.pop(name) for name in _CODEC & update.keys()}
    if "clip" not in options:
        raise UsageError(f"{path}: [update] needs clip")
    metrics = {
        name: _mechanism(path, f"metrics.{name}", table, None)
        for name, table in dict(document.get("metrics", {})).items()
    }
    try:
        codec = UpdateCodec.of(_mechanism(path, "update", update, "features"), options)
        delta = ledger.get("delta", 0.0)
        if begin:
            if Path(ledger["file"]).exists():
                raise CommandError(f"{ledger['file']}: exists already; its budget cannot be given again")
            with Ledger.open(ledger["file"], budget=ledger["budget"], delta=delta, create=True):
                pass
        mod = PrivateUpdateMod(
            codec,
            budget=ClientAccount(ledger["budget"], delta, ledger["file"]),
            metrics=metrics or None,
            repeat=ledger.get("repeat"),
            failing="zero",
        )
    except NoLedgerError:
        raise CommandError(f"{ledger['file']}: no such ledger; create it once with --begin") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return mod, {name: float(value) for name, value in replies.items()}


def _only(path: Path, table: str, given: Mapping[str, Any], known: set[str]) -> None:
    for name in given:
        if name not in known:
            where = f"[{table}] {name}" if table else f"[{name}]"
            raise UsageError(f"{path}: {where} is unknown; there are {', '.join(sorted(known))}")


def _mechanism(path: Path, table: str, given: Any, sized_by: str | None) -> Any:
    """Return the mechanism of a table, or, where its size is that of the update, a function of the size."""
    if not isinstance(given, dict) or not {"mechanism", "epsilon"} <= given.keys():
        raise UsageError(f"{path}: [{table}] needs mechanism and epsilon")
    options = {**given}
    name, epsilon = str(options.pop("mechanism")), float(options.pop("epsilon"))
    chosen = entry(name)
    options = {key: _value(path, table, chosen.options.get(key), value) for key, value in options.items()}
    chosen.check(options, {name: chosen})
    if sized_by is None or chosen.size_option != sized_by or sized_by in options:
        return chosen.build(epsilon, options)

    def made(size: int) -> Mechanism:
        return chosen.construct(epsilon, size, options)

    made.__doc__ = f"{chosen.name} of epsilon {number(epsilon)}"
    return made


def _value(path: Path, table: str, option: Given | None, value: Any) -> Any:
    """Return a value of a policy as the command line would give it."""
    if option is None or (option.kind is float and type(value) is int):
        return float(value) if option is not None else value
    if type(value) is not option.kind:
        raise UsageError(f"{path}: [{table}] {shown(option.name)[2:]} must be {option.form}")
    return value
