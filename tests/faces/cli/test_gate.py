"""``bitldp gate``: its policy, what it says before it opens, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

import bitldp
import numpy as np
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.gate import policy_of
from bitldp.federated import Layout
from support.command import invoke
from support.network import free_port

UPDATE = 'mechanism = "cross-polytope"\nepsilon = 4\nclip = 0.5\nonly = ["w*"]'
METRICS = '[metrics.accuracy]\nmechanism = "duchi"\nepsilon = 0.5\nlow = 0\nhigh = 1'
LEDGER = 'file = "{ledger}"\nbudget = 40'
REPLIES = "every = 60"


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a policy, and begins its ledger."""

    def write(update=UPDATE, metrics=METRICS, ledger=LEDGER, replies=REPLIES, begun=True) -> Path:
        file = tmp_path / "ledger.json"
        path = tmp_path / "policy.toml"
        ledger = ledger.format(ledger=file)
        path.write_text(f"[update]\n{update}\n{metrics}\n[ledger]\n{ledger}\n[replies]\n{replies}\n")
        if begun and not file.exists():
            with bitldp.Ledger.open(file, budget=40.0, create=True):
                pass
        return path

    return write


def test_a_policy_is_the_mod_of_the_same_words(written) -> None:
    mod, times = policy_of(written())
    plan = mod.codec.plan(mod.codec.layout({"w1": np.zeros(7), "b": np.zeros(2)}))
    assert plan.mechanism == bitldp.CrossPolytope(7, epsilon=4.0)
    assert (mod.codec.clip, mod.codec.only, mod.failing, mod.others) == (0.5, ("w*",), "zero", "refuse")
    assert mod.evaluation.metrics == {"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0, 1.0))}
    assert mod.account.budget == 40.0
    assert times == {"every": 60.0}


def test_a_size_that_is_written_cuts_the_update_into_records(written) -> None:
    mod, times = policy_of(
        written(
            'mechanism = "duchi"\nepsilon = 1\nfeatures = 2\nclip = 1', replies="every = 5\ndeadline = 20"
        )
    )
    plan = mod.codec.plan(Layout.of({"w": np.zeros(6)}))
    assert plan.mechanism == bitldp.Duchi(epsilon=1.0, features=2)
    assert plan.records == 3
    assert times == {"every": 5.0, "deadline": 20.0}


def test_the_check_says_what_may_leave(written) -> None:
    result = invoke("gate", written(), "--check")
    assert result.exit_code == 0, result.stderr
    for text in (
        "cross-polytope of epsilon 4",
        "the l2 norm 0.5",
        "epsilon 40",
        "time tells nothing",
        "accuracy",
    ):
        assert text in result.stdout
    later = invoke("gate", written(replies="every = 5\ndeadline = 20"), "--check").stdout
    assert "which of 4 is the app's choice" in later


def test_a_ledger_is_begun_once_and_by_hand(written, tmp_path) -> None:
    path = written(begun=False)
    with pytest.raises(CommandError, match="no such ledger; create it once with --begin"):
        policy_of(path)
    assert invoke("gate", path, "--begin").exit_code == 0
    with bitldp.Ledger.open(tmp_path / "ledger.json", budget=40.0) as ledger:
        ledger.charge(bitldp.Duchi(epsilon=1.0))
    again = invoke("gate", path, "--begin")
    assert again.exit_code == 1
    assert "exists already; its budget cannot be given again" in again.stderr
    assert bitldp.Ledger.load(tmp_path / "ledger.json").spent == pytest.approx(1.0)


def test_the_policy_of_the_guide_is_one(tmp_path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "guides" / "gate.md"
    (block,) = re.findall(r"```toml\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "policy.toml"
    path.write_text(textwrap.dedent(block).replace("/var/lib/fl-gate", str(tmp_path)))
    mod, _ = policy_of(path, begin=True)
    assert mod.codec.keep_local == ("*running_*",)
    assert mod.evaluation.metrics == {"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0, 1.0))}


WRONG = {
    r"\[sums\] is unknown": {"metrics": "[sums]\nclients = 3"},
    r"\[ledger\] create is unknown": {"ledger": LEDGER + "\ncreate = true"},
    r"\[ledger\] needs budget": {"ledger": 'file = "{ledger}"'},
    r"\[replies\] needs every": {"replies": "deadline = 3"},
    r"\[update\] needs clip": {"update": 'mechanism = "duchi"\nepsilon = 1'},
    r"\[update\] needs mechanism and epsilon": {"update": "clip = 1"},
    r"no mechanism 'noise'": {"update": 'mechanism = "noise"\nepsilon = 1\nclip = 1'},
    r"--points does not apply": {"update": 'mechanism = "duchi"\nepsilon = 1\nclip = 1\npoints = 3'},
    r"\[update\] features must be N": {
        "update": 'mechanism = "duchi"\nepsilon = 1\nclip = 1\nfeatures = "2"'
    },
    r"clip: must": {"update": 'mechanism = "duchi"\nepsilon = 1\nclip = -1'},
    r"categories, not numbers": {"metrics": '[metrics.a]\nmechanism = "grr"\nepsilon = 1\ncategories = 3'},
    r"no TOML": {"replies": "every = "},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_policy_is_refused_by_name(sentence, written) -> None:
    options = WRONG[sentence]
    with pytest.raises(UsageError, match=sentence if "categories" not in sentence else "metrics"):
        policy_of(written(**options))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--supernode is needed"),
        (("--supernode", "127.0.0.1:9094"), "give --app-user, or --listen"),
        (("--supernode", "127.0.0.1:9094", "--listen", "127.0.0.1:1", "--app-user", "fl"), "give --app-user"),
        (("--supernode", "127.0.0.1:9094", "--app-user", "fl"), "--app-home is needed"),
        (("--supernode", "127.0.0.1:9094", "--listen", "127.0.0.1:1", "--hide", "/x"), "need --app-user"),
        (("--supernode", "10.0.0.1:9094", "--listen", "127.0.0.1:1"), "--root-certificates is needed"),
        (("--supernode", "127.0.0.1", "--listen", "127.0.0.1:1"), "--supernode: must be host:port"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, sentence, written) -> None:
    result = invoke("gate", written(), *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="it is ended by a signal")
def test_a_gate_waits_for_its_node_and_ends_by_a_signal(written) -> None:
    here, there = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "bitldp", "gate", str(written()), "--supernode", there, "--listen", here]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as gate:
        try:
            assert gate.stderr is not None
            assert gate.stderr.readline() == "the gate is open\n"
            assert "the SuperNode does not answer (ConnectError); waiting" in gate.stderr.readline()
            gate.send_signal(signal.SIGTERM)
            assert gate.wait(20) == 0
        finally:
            gate.kill()
