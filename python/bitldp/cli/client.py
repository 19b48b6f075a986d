"""``bitldp client``: documents for clients that are not Python, written and explained."""

from __future__ import annotations

import json
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bitldp.base.documents import jsonable
from bitldp.base.errors import PlanError
from bitldp.base.files import replacing
from bitldp.cli.catalogue import entries, entry, needed, shown
from bitldp.cli.commands import AsJson, given_options, mechanisms, offering
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import sentences, wide_console
from bitldp.client import ClientDocument, ClientRecord, DocumentError, NoDocumentError, open_document
from bitldp.client.document import counted
from bitldp.privacy import PrivacyClaimWarning, number

__all__ = ["client", "document_facts"]

_PAGE = ("bitldp.js", "bitldp.d.ts", "bitldp.wasm")
"""Files of a page, which stand in the folder `web` of `bitldp.client` where they were built."""

_IDS = ("u64", "digest", "text")  # of records whose answers stay

_WRITTEN = "--float32, --ledger, --most, --header and --document are for a document that is written"

_DOCUMENT = "client.json"  # beside the files of a page


def document_facts(document: ClientDocument) -> dict[str, Any]:
    """Return what a document says and what follows from its integers, as JSON values."""
    promise, spends = document.promise, document.spends
    return {
        "mechanism": promise.mechanism,
        "fingerprint": document.fingerprint,
        "epsilon": {"stated": promise.epsilon, "exact": document.epsilon, "covers": "record"},
        "delta": document.delta,
        "given": promise.given,
        "values": [_described(record) for record in document.program.records],
        "report_bytes": document.report_bytes(),
        "golden": "repeated",
        "header": _headed(document),
        "answers": "drawn anew" if document.keyed is None else "the same for the same value",
        "most_reports": None if spends is None else {"ledger": spends[0], "most": spends[1]},
        "sentence": document.sentence(),
    }


def _headed(document: ClientDocument) -> str:
    """Return what stands before the codes of a report."""
    if document.update is not None:
        return "of an update's message"
    return "of the wire format" if document.header else "none"


def _described(record: ClientRecord) -> dict[str, Any]:
    """Return what a client takes, and what it refuses."""
    name = ", ".join(record.names) if record.names else counted(record.columns, "value")
    if not record.real:
        missing = record.labels[int(record.fill or 0)] if record.labels else record.fill
        return {
            "columns": name,
            "type": record.type,
            "labels": record.labels,
            **({} if record.fill is None else {"missing": missing}),
            "refused": "other categories",
        }
    refused = [] if record.fill is not None or record.gaps else ["NaN"]
    if record.outside == "refuse":
        refused.append(f"numbers outside {'their intervals' if record.intervals else 'the interval'}")
    own = {"intervals": record.intervals} if record.intervals else {"interval": record.interval}
    return {
        "columns": name,
        "type": record.type,
        **own,
        **({} if record.below is None else {"points": record.below}),
        **({} if record.unit is None else {"unit": record.unit}),
        **({"gaps": "NaN"} if record.gaps else {}),
        **({} if record.fill is None else {"missing": record.fill}),
        "refused": " and ".join(refused) or "nothing",
    }


def _print(facts: dict[str, Any], console: Console) -> None:
    """Show the facts of a document."""
    epsilon, most = facts["epsilon"], facts["most_reports"]
    rows = {
        "mechanism": facts["mechanism"],
        "fingerprint": facts["fingerprint"],
        "epsilon, as stated": number(epsilon["stated"], 12),
        "epsilon, from the integers": number(epsilon["exact"], 12),
        **({"delta": number(facts["delta"])} if facts["delta"] else {}),
        **({"given": facts["given"]} if facts["given"] else {}),
        "report": counted(facts["report_bytes"], "byte"),
        "header": facts["header"],
        "answers": facts["answers"],
        "reports": "no limit but the client's own" if most is None else f"{most['most']} by {most['ledger']}",
        "golden report": facts["golden"],
    }
    table = Table(box=SIMPLE_HEAD, show_header=False)
    for name, value in rows.items():
        table.add_row(name, str(value))
    for record in facts["values"]:
        extent = ""
        if record.get("interval"):
            extent = " from {:g} to {:g}".format(*record["interval"])
        elif record.get("intervals"):
            extent = " " + ", ".join("from {:g} to {:g}".format(*each) for each in record["intervals"])
        elif record.get("labels"):
            extent = f", {len(record['labels'])} labels"
        if "missing" in record:
            missing = record["missing"]
            extent += f", {missing if isinstance(missing, str) else format(missing, 'g')} where it is missing"
        if "gaps" in record:
            extent += ", NaN where there is none"
        if "unit" in record:
            extent += f", in {record['unit']}"
        table.add_row(record["columns"], f"{record['type']}{extent}; refused: {record['refused']}")
    console.print(table)
    console.print(facts["sentence"])


def _written(path: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    with replacing(path) as file:
        file.write(text.encode())


def _of_page(folder: Path, text: str) -> list[Path]:
    """Write a document and the files of a page into a folder; return what was written.

    Raises
    ------
    UsageError
        Where this installation has no such files.
    """
    built = files("bitldp.client").joinpath("web")
    missing = [name for name in _PAGE if not built.joinpath(name).is_file()]
    if missing:
        raise UsageError(
            f"--out: this installation has no {', '.join(missing)} for pages; "
            "--document writes the document alone"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PAGE:
        (folder / name).write_bytes(built.joinpath(name).read_bytes())
    _written(folder / _DOCUMENT, text + "\n")
    return [folder / name for name in (*_PAGE, _DOCUMENT)]


@offering()
def client(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Document to check and explain.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME", autocompletion=mechanisms, help="Mechanism to write a document for."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN", help="Plan to write a document for: a form with its columns."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Privacy budget of a record.")] = None,
    document: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the document.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the document and the files that a web page needs."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Explain the document (the default for FILE alone).")
    ] = False,
    float32: Annotated[
        bool, typer.Option("--float32", help="Clients pass numbers in single precision.")
    ] = False,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the ledger in which a client counts its reports."),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --ledger: the most reports that a client sends."),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header", help="Put a header and a checksum before each report.")
    ] = False,
    keyed: Annotated[
        str | None,
        typer.Option(
            metavar="IDS",
            help="With --plan: the same answers of an id (u64, digest or text) give the same report.",
        ),
    ] = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Write or check the document from which a web page, an app or a daemon randomizes.

    A document is data: the integers of the law, the exact epsilon, the layout of a report. Whoever reads it
    computes epsilon again, and so does this command.

    Example: bitldp client --mechanism grr --categories 16 --epsilon 1 --document grr.json
    """
    options = given_options(given)
    with sentences():
        named = {"FILE": file, "--mechanism": mechanism, "--plan": plan}
        sources = [name for name, value in named.items() if value is not None]
        if len(sources) != 1:
            raise UsageError("one of FILE, --mechanism and --plan is needed")
        if mechanism is None:
            for name in [*(["epsilon"] if epsilon is not None else []), *options]:
                raise UsageError(f"{shown(name)} has no effect without --mechanism")
        settings = _settings(float32, ledger, most, header, keyed)
        if file is not None and (document or float32 or header or ledger):
            raise UsageError(_WRITTEN)
        if keyed is not None and plan is None:
            raise UsageError("--keyed has no effect without --plan")
        try:
            text = _text(file, plan, mechanism, epsilon, options, settings)
            made = open_document(text)  # as a client does
        except (DocumentError, NoDocumentError) as error:
            raise UsageError(str(error)) from None
        written = []
        if document is not None:
            _written(document, text + "\n")
            written.append(document)
        if out is not None:
            written += _of_page(out, made.text)
        if show or not written:
            facts = document_facts(made)
            if as_json:
                print(json.dumps(jsonable(facts), indent=2))
            else:
                _print(facts, wide_console())
        for path in written:
            print(path)


def _settings(
    float32: bool, ledger: str | None, most: int | None, header: bool, keyed: str | None
) -> dict[str, Any]:
    """Return the options of a document that is written."""
    if (ledger is None) != (most is None):
        raise UsageError("--ledger and --most need each other")
    if keyed is not None and keyed not in _IDS:
        raise UsageError(f"--keyed {keyed}: must be one of {', '.join(_IDS)}")
    return {
        "dtype": "float32" if float32 else "float64",
        "spends": None if ledger is None else (ledger, most),
        "header": header,
        **({} if keyed is None else {"keyed": keyed}),
    }


def _text(
    file: Path | None,
    plan: Path | None,
    mechanism: str | None,
    epsilon: float | None,
    options: dict[str, Any],
    settings: dict[str, Any],
) -> str:
    """Return the document that was named, or that of what was named."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{file}: cannot be read as text") from None
    if plan is not None:
        from bitldp.tables import TablePlan

        try:
            return TablePlan.read(plan).client_document(**settings)
        except PlanError as error:
            raise UsageError(f"{plan}: {error}") from None
    budget, chosen = needed("--epsilon", epsilon), entry(needed("--mechanism", mechanism))
    chosen.check(options, entries())
    with warnings.catch_warnings():
        # The document states the exact epsilon alone.
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return chosen.build(budget, options).client_document(**settings)
