"""The README's code runs as written."""

from __future__ import annotations

import importlib
import pickle
import re
from importlib.util import find_spec
from pathlib import Path

import bitldp
import numpy as np
import pytest
from support.arrows import between_rooms, python_arrows
from support.documents import blocks, check_python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = (ROOT / "docs" / "guides" / "claims.md").read_text(encoding="utf-8")
MAP = (ROOT / "docs" / "internals" / "house.md").read_text(encoding="utf-8")
SPEED = (ROOT / "docs" / "guides" / "speed.md").read_text(encoding="utf-8")
MOST_LINES = 120


def test_python_blocks_run_and_print_what_they_say() -> None:
    assert blocks(README, "python"), "the README shows Python"
    check_python(README, "README.md")


def test_a_stranger_reads_it_in_two_minutes() -> None:
    """Few lines; what to install stands at the top, and the first code is six lines."""
    lines = README.splitlines()
    assert len(lines) <= MOST_LINES
    assert lines.index("pip install bitldp") < 10
    (code, *_) = blocks(README, "python")
    assert len([line for line in code.splitlines() if line and not line.startswith("# ->")]) == 6


def test_the_mechanism_that_contributing_adds_is_a_mechanism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block runs as a file of its own, in 40 lines, and everyone who asks a mechanism gets an answer."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert len(source.splitlines()) <= 40
    (tmp_path / "grid_response.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    mechanism = importlib.import_module("grid_response").GridResponse(epsilon=2.0, bits=2, features=3)
    assert mechanism.guarantee.holds
    assert mechanism == pickle.loads(pickle.dumps(mechanism))
    x = np.linspace(-1.0, 1.0, 60_000).reshape(-1, 3)
    packed = mechanism.randomize(x, rng=1, output="packed")
    mean = mechanism.accumulator()
    mean.update(packed, output="packed", records=len(x))
    estimate = mean.estimate()
    assert (abs(estimate.value - x.mean(axis=0)) < 5.0 * estimate.stderr).all()
    assert bitldp.account([(mechanism, 1)], epsilon=2.0).delta <= 1e-9
    assert mechanism.extremes().blocks
    if find_spec("flwr") is not None:
        from bitldp.federated.wire.codec import ReportForm

        assert ReportForm(mechanism).fields[0].bits == 2
    with pytest.raises(ValueError, match=r"^bits: must be between 1 and 8"):
        type(mechanism)(epsilon=1.0, bits=9)


def between(name: str, text: str) -> str:
    """Return what stands between the marks of a name."""
    found = re.search(f"<!-- {name}:begin -->\n(.*?)<!-- {name}:end -->", text, flags=re.DOTALL)
    assert found is not None
    return found[1].strip()


def test_the_claims_are_those_that_are_computed() -> None:
    """The tables of claimed and exact epsilons are what ``bitldp explain --claims`` computes."""
    pytest.importorskip("rich", reason='needs pip install "bitldp[cli]"')
    from bitldp import report

    computed = report.claims_markdown().strip()
    assert between("claims", CLAIMS) == computed
    shown = between("claims", README).splitlines()
    assert len(shown) == 7  # a head, and five rows
    assert set(shown) <= set(computed.splitlines())
    assert any(row.endswith("| NO |") for row in shown)
    assert any(row.endswith("| yes |") for row in shown)


@pytest.mark.slow
def test_the_map_is_that_of_the_package() -> None:
    """The page and the package draw the same house, in ten lines, and leave no room out."""
    drawn = blocks(MAP, "text")[0].splitlines()
    assert len(drawn) == 10
    assert "\n".join(f"    {line}" for line in drawn) in str(bitldp.__doc__)
    rooms = set(between_rooms(python_arrows(Path(bitldp.__file__).parent))) - {"bitldp", "__main__"}
    assert rooms <= set(re.findall(r"\w+", " ".join(line[27:] for line in drawn)))


def test_the_speed_table_is_there() -> None:
    assert between("speed", SPEED).count("|") > 40
