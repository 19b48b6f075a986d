"""Data of the page with a live form: a document, the client's script, its module, and each letter's estimate.

All of it is made of the package when the site is built. The page needs no server and fetches nothing, so
script and module are inside a script of the page: a browser loads neither of them from a folder.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.client import open_document
from bitldp.tables import TablePlan
from bitldp.tables.labels import Labels

PLAN = Path(__file__).parents[2] / "examples" / "survey" / "plan.toml"
WEB = Path(str(files("bitldp.client"))) / "web"
MODULE = WEB / "bitldp.wasm"
ABSENT = (
    "This site was built without `bitldp.wasm`, so the form below is off. In a clone, `make wasm` builds the "
    "module, where `tests/wasm/setup` finds or installs its tools; `make docs` then builds this page with it."
)


@cache
def plan() -> TablePlan:
    """Return the plan of the form: that of the example."""
    return TablePlan.read(PLAN)


def script(module: Path = MODULE) -> str:
    """Return the data as a script, which a page that was opened from a folder can read, too."""
    data: dict[str, Any] = {"document": plan().client_document(), "estimates": _estimates()}
    if module.is_file():
        data |= {"script": _text(WEB / "bitldp.js"), "module": _text(module)}
    return f"window.BITLDP_FORM = {json.dumps(data)};\n"


def said(module: Path = MODULE) -> str:
    """Return what the page says of the document, and why the form is off where it is."""
    text = plan().client_document()
    sentence = f"> {open_document(text).sentence()}"
    read = f"```json\n{json.dumps(json.loads(text), indent=1)}\n```"
    shown = "\n".join(f"    {line}" for line in read.splitlines())
    lines = [sentence, f'??? note "The document that your browser opens: {len(text):,} bytes"\n\n{shown}']
    if not module.is_file():
        lines.insert(0, f"!!! warning\n\n    {ABSENT}")
    return "\n\n".join(lines)


def _estimates() -> list[list[list[float]]]:
    """Return the estimate of one report alone, by column of the plan and by letter; their mean estimates."""
    result = []
    for codec in plan().codecs:
        mechanism: Any = codec.mechanism
        if isinstance(codec, Labels):
            letters = range(len(codec.categories))
            alone = [mechanism.estimate_frequencies(np.array([each])).value for each in letters]
        else:
            alone = [[each] for each in mechanism.unbias(np.arange(mechanism.alphabet))]
        result.append([[float(f"{value:.12g}") for value in each] for each in alone])
    return result


def _text(path: Path) -> str:
    return b64encode(path.read_bytes()).decode("ascii")
