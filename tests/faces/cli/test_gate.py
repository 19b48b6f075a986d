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
from bitldp.sums import Histogram, SecureSum, Vector
from support.command import invoke
from support.ports import free_port
from support.summed_app import key_pair

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
    mod, sums, times = policy_of(written())
    assert sums is None
    plan = mod.codec.plan(mod.codec.layout({"w1": np.zeros(7), "b": np.zeros(2)}))
    assert plan.mechanism == bitldp.CrossPolytope(7, epsilon=4.0)
    assert (mod.codec.clip, mod.codec.only, mod.failing, mod.others) == (0.5, ("w*",), "zero", "refuse")
    assert mod.evaluation.metrics == {"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0, 1.0))}
    assert mod.account.budget == 40.0
    assert times == {"every": 60.0}


def test_a_size_that_is_written_cuts_the_update_into_records(written) -> None:
    mod, _, times = policy_of(
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
        "time reveals nothing",
        "accuracy",
    ):
        assert text in result.stdout
    later = invoke("gate", written(replies="every = 5\ndeadline = 20"), "--check").stdout
    assert "which of 4 is the app's choice" in later


def test_the_help_shows_the_lines_of_a_policy() -> None:
    assert '    mechanism = "cross-polytope"\n    epsilon = 4.0\n' in invoke("gate", "--help").stdout


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
    block, more = re.findall(r"```toml\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "policy.toml"
    path.write_text(textwrap.dedent(block).replace("/var/lib/fl-gate", str(tmp_path)))
    mod, _, _ = policy_of(path, begin=True)
    assert mod.codec.keep_local == ("*running_*",)
    assert mod.evaluation.metrics == {"accuracy": bitldp.Duchi(epsilon=0.5, interval=(0.0, 1.0))}
    for index in (1, 2, 3):
        key_pair(tmp_path / f"hospital-{index}.key")
    (tmp_path / "hospital-2.key").rename(tmp_path / "node.key")
    for folder in ("/var/lib/fl-gate", "/etc/fl-gate"):
        more = more.replace(folder, str(tmp_path))
    (tmp_path / "ledger.json").unlink()
    path.write_text(textwrap.dedent(more))
    update, sums, times = policy_of(path, begin=True)
    assert update is None
    assert sums.agreement.sum == SecureSum(Vector(1000), epsilon=1.0, clients=3, floor=2)
    assert times == {"every": 60.0, "short": 1.0}


SUM = """
[sum]
epsilon = 8
floor = 2
categories = 4
keys = ["{0}/node-0.key.pub", "{0}/node-1.key.pub", "{0}/node-2.key.pub"]
key = "{0}/node-1.key"
value = "arrays"
[ledger]
file = "{0}/sums.json"
sums = 8
sums_delta = 1e-6
[replies]
every = 60
short = 2
"""


@pytest.fixture
def summing(tmp_path):
    """Return a function that writes a policy of sums, and begins its ledger."""
    for index in range(3):
        key_pair(tmp_path / f"node-{index}.key")

    def write(change=("", ""), begun=True) -> Path:
        path = tmp_path / "sums.toml"
        path.write_text(SUM.format(tmp_path).replace(*change) if change[0] else SUM.format(tmp_path))
        if begun and not (tmp_path / "sums.json").exists():
            with bitldp.Ledger.open(tmp_path / "sums.json", budget=0.0, create=True) as ledger:
                ledger.allow_sums(8.0, delta=1e-6)
        return path

    return write


def test_a_policy_of_sums_is_the_mod_of_the_same_words(summing) -> None:
    update, mod, times = policy_of(summing())
    assert update is None
    assert mod.agreement.sum == SecureSum(Histogram(4), epsilon=8.0, clients=3, floor=2)
    assert (mod.failing, mod.nonfinite, mod.secrets) == ("zero", "zero", "file")
    assert (mod.account.budget, mod.account.delta) == (8.0, 1e-6)
    assert times == {"every": 60.0, "short": 2.0}


def test_updates_and_sums_have_one_ledger(summing, tmp_path) -> None:
    more = '[update]\nmechanism = "duchi"\nepsilon = 1\nclip = 1\n[ledger]\nbudget = 3'
    path = summing(("[ledger]", more), begun=False)
    assert invoke("gate", path, "--begin").exit_code == 0
    update, sums, _ = policy_of(path)
    assert update.account.path == sums.account.path
    ledger = bitldp.Ledger.load(tmp_path / "sums.json")
    assert (ledger.budget, ledger.sums.budget, ledger.sums.delta) == (3.0, 8.0, 1e-6)


def test_the_check_says_what_sums_keep(summing) -> None:
    result = invoke("gate", summing(), "--check")
    assert result.exit_code == 0, result.stderr
    for text in (
        "a share of SecureSum(Histogram(categories=4)",
        "from 2 of 3 clients on",
        "local epsilon of a share alone",
        "all sums cost central epsilon 8 and delta 1.000e-06 at most",
        "the server may lie about everything",
        "without the app is sent after 2 seconds",
    ):
        assert text.lower() in result.stdout.lower()


WRONG_SUMS = {
    r"\[sum\] clients is unknown": ("floor = 2", "clients = 3"),
    r"\[sum\] needs keys": ("keys =", "#"),
    r"\[ledger\] needs sums": ("sums = 8", ""),
    r"needs a table \[replies\]": ("[replies]", "#"),
    r"\[sum\] keys must be a list of files": ("keys = [", "keys = [3, "),
    r"\[sum\] .*absent.pub: No such file": ("node-2.key.pub", "absent.pub"),
    r"\[sum\] key: its public key is not in the list": ("node-1.key.pub", "node-3.key.pub"),
    r"\[sum\] floor": ("floor = 2", "floor = 4"),
    r"\[sum\] epsilon": ("epsilon = 8", "epsilon = 0"),
    r"--features: is for vectors, --categories for a histogram": ("floor = 2", "features = 2"),
    r"the ledger was begun with 8 and delta 1.000e-06 for sums, not 9": ("sums = 8", "sums = 9"),
    r"value: ": ('"arrays"', '"all"'),
    r"\[sum\] must be a table": ("[sum]", "sum = 3\n[update]"),
}


@pytest.mark.parametrize("sentence", WRONG_SUMS)
def test_a_wrong_policy_of_sums_is_refused_by_name(sentence, summing, tmp_path) -> None:
    key_pair(tmp_path / "node-3.key")
    with pytest.raises(UsageError, match=sentence):
        policy_of(summing(WRONG_SUMS[sentence]))


def test_a_wrong_policy_begins_no_ledger(summing, tmp_path) -> None:
    assert invoke("gate", summing(("floor = 2", "floor = 4"), begun=False), "--begin").exit_code == 2
    assert not (tmp_path / "sums.json").exists()


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
