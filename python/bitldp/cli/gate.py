"""``bitldp gate``: the process between a SuperNode and its app."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bitldp.base.errors import require
from bitldp.cli.catalogue import Given, entry, shown
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.screen import sentences
from bitldp.cli.sums import kind_of
from bitldp.ledger import Ledger, NoLedgerError
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import number

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from bitldp.federated import ClientAccount, PrivateUpdateMod, SummedMod, UpdateCodec
    from bitldp.sums.protocol import Agreement

__all__ = ["Policy", "gate", "policy_of"]

_TABLES = ("update", "metrics", "sum", "ledger", "replies")
_CODEC = {"clip", "norm", "update", "interval", "integers", "only", "keep_local", "allow_biased", "rows"}
_KIND = {"categories", "features", "radius", "low", "high", "steps", "clip"}
_TERMS = {"epsilon", "delta", "floor", "colluding", "noise"}
_SUM = {*_KIND, *_TERMS, "keys", "key", "threshold", "degree", "value"}
_LEDGER = {"file", "budget", "delta", "repeat", "sums", "sums_delta"}
_REPLIES = {"every", "deadline", "short"}


class Policy(NamedTuple):
    """Policy of a node: what may leave it, and when.

    Attributes
    ----------
    update : PrivateUpdateMod or None
        How updates leave, and the metrics of evaluations.
    sums : SummedMod or None
        How the shares of a secure sum do; one of the two is there.
    times : dict of float
        When replies leave, by the names that `Gate` gives them.
    """

    update: PrivateUpdateMod | None
    sums: SummedMod | None
    times: dict[str, float]

    @property
    def options(self) -> dict[str, Any]:
        """All of it, by the names that `Gate` gives them."""
        mods = {"mod": self.update or self.sums, "sums": None if self.update is None else self.sums}
        return {**mods, **self.times}


def gate(
    policy: Annotated[Path, typer.Argument(help="TOML file of what may be sent, and the privacy budget.")],
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
    check: Annotated[bool, typer.Option("--check", help="Print what may be sent, and stop.")] = False,
) -> None:
    """Run a Flower app behind a gate that lets only private reports out.

    The server's side delivers the app's code: what that code promises is the server's word. The gate is the
    node owner's: it takes the plain update out of the app's reply, clips, randomizes and charges it by the
    owner's policy, and sends a reply that it builds itself, at a time that the app has no part in. An app
    that fails or is silent is answered for by a release of zeros. The SuperNode runs with --isolation
    process.

    With --app-user the gate starts the app as that user, in a network that has the gate and nothing else.

    The policy is a TOML file, with mechanisms as in `bitldp explain`:

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

    A table [sum], in place of [update] or beside it, has the terms of a secure sum as in `bitldp explain
    sum`, with the keys of all clients: the gate shares and masks as well.
    """  # noqa: D301 - the character, not the letters: it keeps the lines of the examples
    with sentences():
        require("bitldp gate, on Python 3.11 or newer,", ["flwr"], "fl")
        allowed = policy_of(policy, begin=begin)
        _say(allowed)
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
            allowed,
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
    policy: Policy,
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
        one = Gate(node=node, app=app, **policy.options)
        print("the gate is open", file=sys.stderr, flush=True)
        with suppress(KeyboardInterrupt):
            one.run(threading.Event())


def _address(option: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option}: must be host:port")
    return host.strip("[]"), int(port)


def _say(policy: Policy) -> None:
    """Print what may leave."""
    lines = [*_of_updates(policy.update), *_of_sums(policy.sums)]
    every, short = policy.times["every"], policy.times.get("short")
    steps = round(policy.times.get("deadline", every) / every)
    lines.append(
        f"a reply is sent {number(every)} seconds after its question; its time reveals nothing"
        if steps == 1
        else f"a reply leaves a multiple of {number(every)} seconds after its question; which of "
        f"{steps} is the app's choice"
    )
    if short is not None:
        lines.append(f"a reply without the app is sent after {number(short)} seconds")
    print("\n".join(lines))


def _of_updates(mod: PrivateUpdateMod | None) -> list[str]:
    if mod is None:
        return []
    mechanism = mod.codec.mechanism
    by = f"{mechanism!r}" if isinstance(mechanism, Mechanism) else f"{mechanism.__doc__}, as one record"
    return [
        f"an update leaves by {by}",
        f"clipped to the {mod.codec.norm} norm {number(mod.codec.clip)}",
        *_cost("all releases cost", mod.account),
        *(
            []
            if mod.evaluation is None
            else (f"{e.note} leaves by {e.release!r}" for e in mod.evaluation.charges)
        ),
    ]


def _of_sums(mod: SummedMod | None) -> list[str]:
    if mod is None:
        return []
    agreement = mod.agreement
    return [
        f"each number is sent as a share of {agreement.sum!r}, under masks",
        f"by the agreement {agreement.digest.hex()} of {agreement.clients} clients",
        *str(agreement.sum.guarantee).splitlines(),
        *_cost("all sums cost central", mod.account),
        *agreement.trust,
    ]


def _cost(what: str, account: ClientAccount) -> list[str]:
    budget = f"epsilon {number(account.budget)} and delta {number(account.delta)}"
    return [f"{what} {budget} at most, by the ledger {account.path}"]


def policy_of(path: Path, *, begin: bool = False) -> Policy:
    """Return the policy that a file describes.

    With `begin`, its ledger is begun.

    Raises
    ------
    UsageError
        For what is not a policy; the message names the table and the key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no TOML ({error})") from None
    _only(path, "", document, set(_TABLES))
    for name, table in document.items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: [{name}] must be a table")
    if "update" not in document and ("sum" not in document or "metrics" in document):
        raise UsageError(
            f"{path}: needs a table [update]" + (" or [sum]" if "metrics" not in document else "")
        )
    for name, needs in _needed(document).items():
        if name not in document:
            raise UsageError(f"{path}: needs a table [{name}]")
        for key in needs:
            if key not in document[name]:
                raise UsageError(f"{path}: [{name}] needs {key}")
    ledger, replies = dict(document["ledger"]), dict(document["replies"])
    _only(path, "ledger", ledger, _LEDGER)
    _only(path, "replies", replies, _REPLIES)
    try:
        codec = _codec(path, document["update"]) if "update" in document else None
        agreement = _agreement(path, document["sum"]) if "sum" in document else None
        if begin:  # after the checks above: a ledger is begun once
            _begin(ledger)
        update = None if codec is None else _update(path, codec, document.get("metrics", {}), ledger)
        sums = None if agreement is None else _sums(path, agreement, document["sum"], ledger)
    except NoLedgerError:
        raise CommandError(f"{ledger['file']}: no such ledger; create it once with --begin") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return Policy(update, sums, {name: float(value) for name, value in replies.items()})


def _needed(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what each table of a policy cannot do without."""
    result = {"ledger": ["file"], "replies": ["every"]}
    if "update" in document:
        result["update"] = ["clip"]
        result["ledger"].append("budget")
    if "sum" in document:
        result["sum"] = ["epsilon", "keys", "key"]
        result["ledger"].append("sums")
    return result


def _begin(ledger: Mapping[str, Any]) -> None:
    """Begin a ledger, with what sums may cost if there are any."""
    if Path(ledger["file"]).exists():
        raise CommandError(f"{ledger['file']}: exists already; its budget cannot be given again")
    budget, delta = ledger.get("budget", 0.0), ledger.get("delta", 0.0)
    with Ledger.open(ledger["file"], budget=budget, delta=delta, create=True) as begun:
        if "sums" in ledger:
            begun.allow_sums(ledger["sums"], delta=ledger.get("sums_delta", 0.0))


def _codec(path: Path, given: Mapping[str, Any]) -> UpdateCodec:
    """Return the codec of [update]."""
    from bitldp.federated import UpdateCodec

    update = dict(given)
    options = {name: update.pop(name) for name in _CODEC & update.keys()}
    return UpdateCodec.of(_mechanism(path, "update", update, "features"), options)


def _update(
    path: Path, codec: UpdateCodec, metrics: Mapping[str, Any], ledger: Mapping[str, Any]
) -> PrivateUpdateMod:
    """Return the mod of [update] and [metrics]."""
    from bitldp.federated import ClientAccount, PrivateUpdateMod

    chosen = {name: _mechanism(path, f"metrics.{name}", table, None) for name, table in metrics.items()}
    return PrivateUpdateMod(
        codec,
        budget=ClientAccount(ledger["budget"], ledger.get("delta", 0.0), ledger["file"]),
        metrics=chosen or None,
        repeat=ledger.get("repeat"),
        failing="zero",
    )


def _agreement(path: Path, given: Mapping[str, Any]) -> Agreement:
    """Return the terms of [sum], to which the node's key belongs."""
    from bitldp.sums import SecureSum
    from bitldp.sums.protocol import Agreement, SummingClient

    _only(path, "sum", given, _SUM)
    keys, key = given["keys"], given["key"]
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in (*keys, key)):
        raise UsageError(f"{path}: [sum] keys must be a list of files of public keys, and key a file")
    terms = {name: given[name] for name in _TERMS & given.keys()}
    kind = kind_of({name: given[name] for name in _KIND & given.keys()})
    graph = {name: given[name] for name in {"threshold", "degree"} & given.keys()}
    try:
        agreement = Agreement(SecureSum(kind, clients=len(keys), **terms), keys, **graph)
        SummingClient(agreement, key)  # a key of another node, or that others may read, is refused here
    except OSError as error:
        raise UsageError(f"{path}: [sum] {error.filename}: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: [sum] {error}") from None
    return agreement


def _sums(path: Path, agreement: Agreement, given: Mapping[str, Any], ledger: Mapping[str, Any]) -> SummedMod:
    """Return the mod of [sum], whose ledger says the same as the policy."""
    from bitldp.federated import SummedMod, SumsAccount

    account = SumsAccount(ledger["sums"], ledger.get("sums_delta", 0.0), ledger["file"])
    begun = Ledger.load(ledger["file"]).sums
    if (begun.budget, begun.delta) != (account.budget, account.delta):
        raise UsageError(
            f"{path}: [ledger] sums: the ledger was begun with {number(begun.budget)} and delta "
            f"{number(begun.delta)} for sums, not {number(account.budget)} and {number(account.delta)}"
        )
    value = given.get("value", "difference")
    return SummedMod(agreement, given["key"], budget=account, value=value, failing="zero", secrets="file")


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
