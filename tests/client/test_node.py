"""WebAssembly in Node against Python: the same bytes under the same keys, and fresh reports by their law.

`make test-wasm` builds the module; without it, or without Node, these tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.client import client_reports, open_document
from bitldp.tables import Column, TablePlan
from support.clients import replays

ROOT = Path(__file__).parents[2]
SAME = Path(__file__).parent / "js" / "same.mjs"
WEB = ROOT / "python" / "bitldp" / "client" / "web"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def module() -> Path:
    """Return the module that takes keys, for tests; skip where it was not built."""
    path = ROOT / "target" / "wasm-golden" / "wasm32-unknown-unknown" / "client" / "bitldp_client.wasm"
    if not path.is_file():
        pytest.skip("the module is not built; make test-wasm builds it")
    return path


def node(arguments: list[Any], given: str = "") -> str:
    """Return what Node prints."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, *map(str, arguments)], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_the_same_bytes_as_python() -> None:
    """A thousand records of every mechanism with a document, a key for each."""
    lines = list(replays(1000))
    said = node([SAME, module()], "\n".join(lines) + "\n")
    assert said.splitlines()[-1] == f"{len(lines)} documents, {len(lines) * 1000} reports, 0 wrong"


FRESH = """
import {{ Client, Refused }} from "{module}";
import {{ readFileSync }} from "node:fs";
const client = await Client.open(readFileSync(0, "utf8"), {{ wasm: readFileSync("{wasm}"), ...({options}) }});
{then}
"""


def page(tmp_path: Path, document: str, then: str, options: str = "{}") -> str:
    """Return what a script says that uses the module as a page does."""
    script = tmp_path / "page.mjs"
    script.write_text(
        FRESH.format(module=(WEB / "bitldp.js").as_uri(), wasm=module(), options=options, then=then)
    )
    return node([script], document)


@pytest.mark.statistical
def test_fresh_reports_follow_the_law(tmp_path: Path) -> None:
    """A million fresh reports of one category: chi-square by the exact law, alpha 1e-9."""
    mechanism = bitldp.GRR(["a", "b", "c", "d"], epsilon=1.0)
    said = page(
        tmp_path,
        mechanism.client_document(),
        """
        const counts = [0, 0, 0, 0], many = Array(10_000).fill("c");
        for (let round = 0; round < 100; round++) {
          for (const byte of await client.randomize(many)) {
            for (let at = 0; at < 8; at += 2) counts[(byte >> at) & 3] += 1;
          }
        }
        const { epsilon, fingerprint, labels } = client;
        console.log(JSON.stringify({ counts, epsilon, fingerprint, labels }));
        """,
    )
    answer = json.loads(said)
    assert answer["epsilon"] == mechanism.guarantee.record
    assert answer["fingerprint"] == open_document(mechanism.client_document()).fingerprint
    assert answer["labels"] == [["a", "b", "c", "d"]]
    expected = 1e6 * mechanism.probabilities()[2]
    statistic = float(np.sum((np.array(answer["counts"]) - expected) ** 2 / expected))
    assert sum(answer["counts"]) == 1_000_000
    assert statistic < 45.1  # of 3 degrees of freedom, 1e-9


def test_a_page_gives_labels_of_each_column_and_numbers_of_points(tmp_path: Path) -> None:
    """Sure answers at epsilon 50: another one has a chance below 1e-9."""
    record = bitldp.CategoricalRecord([3, 3], epsilon=100.0, spend="split")
    lists = [["a", "b", "c"], ["c", "a", "b"]]
    plan = TablePlan(
        [
            Column(bitldp.GRR(5, epsilon=50.0), "age", interval=(0, 40)),
            Column(record, ["p", "q"], categories=lists),
            Column(bitldp.CategoricalRecord([2, 2], epsilon=50.0), ["r", "s"], categories=[["n", "y"]] * 2),
        ]
    )
    then = """
    const { labels } = client, refused = [], keep = ({ kind, place }) => refused.push([kind, place]);
    const report = await client.randomize(27.5, ["c", "a"], ["y", "y"]);
    for (const wrong of [["c", "d"], ["d", "c"]]) {
      await client.randomize(27.5, wrong, ["y", "y"]).catch(keep);
    }
    console.log(JSON.stringify({ labels, refused, report: Array.from(report) }));
    """
    said = json.loads(page(tmp_path, plan.client_document(), then))
    assert said["labels"] == [None, lists, [["n", "y"]] * 2]
    assert said["refused"] == [["value", 1], ["value", 0]]
    (row,) = plan.from_clients([bytes(said["report"])]).to_pylist()
    assert (round(row["age"]), row["p_code0"], row["p_code1"], row["r_code0"]) == (30, 2, 1, 1)


def test_what_a_page_is_refused(tmp_path: Path) -> None:
    """Labels, codes and numbers that the document does not allow, limits and spent ledgers."""
    plan = TablePlan(
        [
            Column(bitldp.GRR(3, epsilon=1.0), "transport", categories=["foot", "bicycle", "car"]),
            Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 120.0)), "minutes"),
        ]
    )
    then = """
    const kinds = [];
    const tried = async (...records) => {
      try { kinds.push((await client.randomize(...records)).length); }
      catch (error) { kinds.push(`${error.kind}${error.place ?? ""}${error instanceof Refused}`); }
    };
    await tried("car", 25); await tried("train", 25); await tried("car", NaN);
    await tried("car", "25"); await tried("car");
    await tried(["car", "foot"], 25); await tried(["car", "foot"], [25, 30]);
    client.close(); await tried("car", 25);
    console.log(JSON.stringify(kinds));
    """
    ledger = "{ ledger: { charge: async () => {} } }"
    text = plan.client_document(spends=("survey", 1))
    kinds = json.loads(page(tmp_path, text, then, ledger))
    assert kinds[0] == 2
    assert kinds[1] == "value0true"
    assert kinds[2].startswith("value")
    assert kinds[3:5] == ["value0true", "shapetrue"]
    assert kinds[5].startswith("shape")
    assert kinds[6] == 3  # two categories of two bits, and two codes of eight
    assert kinds[7] == "pointertrue"
    for options, kind in (("{}", "budget"), ("{ epsilon: 1.5, " + ledger[1:], "limit")):
        with pytest.raises(AssertionError, match=f"Refused: {kind}"):
            page(tmp_path, text, "", options)
    refusing = "{ ledger: { charge: async () => { throw new Error('spent'); } } }"
    with pytest.raises(AssertionError, match="Error: spent"):
        page(tmp_path, text, "await client.randomize('car', 25);", refusing)


def test_each_record_is_charged_once_and_what_is_refused_is_not(tmp_path: Path) -> None:
    plan = TablePlan([Column(bitldp.Piecewise(epsilon=1.0, interval=(0.0, 120.0), clip=False), "minutes")])
    then = """
    const lengths = [];
    for (const given of [NaN, 121, [25, 130], [25, 30], 25, [25, 30]]) {
      try { lengths.push((await client.randomize(given)).length); }
      catch (error) { lengths.push(error.kind ?? error.message); }
      lengths.push(charged.length);
    }
    console.log(JSON.stringify([lengths, charged]));
    """
    ledger = """{ ledger: { charge: async (name, most) => {
      if (charged.length === 4) throw new Error("spent");
      charged.push([name, most]);
    } } }"""
    text = plan.client_document(spends=("survey", 30))
    said = page(tmp_path, text, then, f"(globalThis.charged = [], {ledger})")
    lengths, charged = json.loads(said)
    assert lengths[:6] == ["value", 0, "value", 0, "value", 0]
    assert lengths[6:12] == [2, 2, 1, 3, "spent", 4]  # of two records, the second was past the budget
    assert charged == [["survey", 30]] * 4


def test_a_client_that_is_closed_while_its_ledger_is_asked_makes_no_report(tmp_path: Path) -> None:
    text = bitldp.GRR(["a", "b"], epsilon=1.0).client_document(spends=("survey", 30))
    then = """
    const pending = client.randomize("a");
    client.close();
    await pending.catch((error) => console.log(error.kind));
    """
    assert page(tmp_path, text, then, "{ ledger: { charge: async () => {} } }") == "pointer\n"


def test_messages_and_updates_are_read_by_the_server(tmp_path: Path) -> None:
    plain = bitldp.GRR(["a", "b", "c"], epsilon=9.0)
    said = page(
        tmp_path,
        plain.client_document(header=True),
        """
        console.log(Buffer.from(await client.randomize("b")).toString("hex"));
        try { await client.randomize(["b", "a"]); } catch (error) { console.log(error.kind); }
        """,
    )
    message, kind = said.split()
    assert client_reports(plain, [bytes.fromhex(message)]).shape == (1,)
    assert kind == "shape"

    pytest.importorskip("flwr", reason="Flower needs Python 3.11")
    from bitldp.federated import UpdateCodec

    codec = UpdateCodec(bitldp.CrossPolytope(8, epsilon=3.0), clip=1.0)
    plan = codec.plan(codec.layout({"w": np.zeros(16, np.float32)})).at(2)
    said = page(
        tmp_path,
        plan.client_document(),
        """
        const vector = Float64Array.from({ length: 16 }, (_, index) => index - 7.5);
        console.log(Buffer.from(await client.randomize(vector)).toString("hex"));
        for (const wrong of [new Float64Array(8), new Float64Array(32), vector.map(() => NaN)]) {
          try { await client.randomize(wrong); } catch (error) { console.log(error.kind); }
        }
        """,
    )
    message, *kinds = said.split()
    assert plan.decode(bytes.fromhex(message)).shape == (16,)
    assert kinds == ["shape", "shape", "value"]
