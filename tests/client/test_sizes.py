"""What clients are sent stays small: the module, its script, the library."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from bitldp import client

ROOT = Path(__file__).parents[2]
WEB = Path(client.__file__).parent / "web"
MODULE = ROOT / "target" / "wasm-golden" / "wasm32-unknown-unknown" / "client" / "bitldp_client.wasm"
LIBRARY = ROOT / "target" / "golden" / "libbitldp_client.so"


def zipped(path: Path) -> int:
    """Return the bytes of a file as it crosses a wire; skip where it was not built."""
    if not path.is_file():
        pytest.skip(f"{path.name} is not built")
    return len(gzip.compress(path.read_bytes(), 9))


def test_the_script_of_a_page_is_three_kilobytes() -> None:
    assert zipped(WEB / "bitldp.js") <= 3000


def test_the_module_of_a_page_is_small() -> None:
    # A compiler of another month makes some hundredths more or less.
    assert zipped(MODULE) <= 166_000
    assert MODULE.stat().st_size <= 420_000


def test_the_library_is_small() -> None:
    if not LIBRARY.is_file():
        pytest.skip("the library is not built; make client-c builds it")
    # The compiler's own standard library has the words of panics, and what names functions in them.
    small = Path("/usr/lib/rustlib/src/rust/library/std/Cargo.toml").is_file()
    assert LIBRARY.stat().st_size <= (450_000 if small else 850_000)
