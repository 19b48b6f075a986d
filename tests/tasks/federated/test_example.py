"""The example of docs and README: it installs where it says, and runs under ``flwr run`` if ray is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "flower"


def test_python_versions_agree():
    """Flower needs 3.11, this package 3.10: the extra leaves Flower out where there is none."""
    package, app = (folder.joinpath("pyproject.toml").read_text() for folder in (ROOT, EXAMPLE))
    assert 'requires-python = ">=3.10"' in package
    assert re.search(r'"flwr>=1\.41,<1\.43; python_version >= \'3\.11\'"', package)
    assert 'requires-python = ">=3.11"' in app


def test_without_flower_the_package_says_what_is_missing(tmp_path):
    """On Python 3.10 there is no Flower to install: the sentence names the version that has one."""
    script = """
import sys
sys.modules["flwr"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "flwr" else find(name, *more)
import bitldp
try:
    import bitldp.federated
except ImportError as error:
    print(type(error).__name__, error)
"""
    made = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    sentence = 'bitldp.federated, on Python 3.11 or newer, needs flwr: pip install "bitldp[fl]"'
    assert made.stdout.strip() == f"MissingExtraError {sentence}"


def simulate():
    """Return the module of the script."""
    spec = importlib.util.spec_from_file_location("simulate", EXAMPLE / "simulate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:ledger='run'")
def test_the_script_finds_the_line_that_the_server_prints(monkeypatch, capsys):
    pytest.importorskip("flwr", reason="the extra fl is not installed")
    pytest.importorskip("sklearn", reason="the example's digits come with scikit-learn")
    from bitldp.federated import run_in_process

    monkeypatch.syspath_prepend(str(EXAMPLE))
    try:
        from digits_app.client_app import app as client
        from digits_app.server_app import app as server

        run_in_process(server, client, 2, run_config={"num-server-rounds": 1, "save-to": ""})
    finally:
        for name in [name for name in sys.modules if name.startswith("digits_app")]:
            del sys.modules[name]
    found = simulate().ACCURACY.search(capsys.readouterr().out)
    assert found is not None
    assert "after 1 rounds of 2 clients: each number of their mean update is clipped to 0.05" in found[0]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs flwr[simulation]: make example")
def test_it_runs_in_flowers_simulation_engine():
    made = subprocess.run(
        [sys.executable, str(EXAMPLE / "simulate.py"), "--timeout", "400"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    found = re.match(r"50 nodes: accuracy (\d\.\d+) after 10 rounds of 50 clients", made.stdout)
    assert found is not None, made.stdout
    assert float(found[1]) > 0.4  # .65 to .86 in 16 runs with fresh keys: six sd; two clients stay below .35
