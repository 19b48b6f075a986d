"""The direction of imports: rooms on floors, no circles, and the border of the two distributions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import bitldp
import bitldp_papers
import pytest
from support.arrows import (
    Arrows,
    between_rooms,
    circles,
    floors,
    imported,
    python_arrows,
    room_of,
    rust_arrows,
)

PACKAGE = Path(bitldp.__file__).parent
PAPERS = Path(bitldp_papers.__file__).parent
SITE = Path(__file__).parents[2] / "docs" / "site"
CRATES = Path(__file__).parents[2] / "rust"

FAMILIES = ("categorical", "numeric", "bits", "points", "record", "ordered", "compression", "selection")

# A room imports only rooms that stand before it. Accounting and ledger stand before the families, for two of
# them compute or keep a budget of their own; `bitldp` is the package itself, the list of its public names.
ORDER = (
    *("base", "privacy", "reference"),
    *("codecs", "channels", "letters", "release", "client", "estimate", "accounting", "mechanism", "design"),
    *("ledger", "sums", "amplification"),
    *FAMILIES,
    *("audit", "recommend", "federated", "bitldp"),
    *("tables", "verify", "sklearn"),
    *("report", "cli", "__main__"),
)

# They ask a mechanism what it is; they know none by its name.
ASKING = ("accounting", "ledger", "audit", "federated")

MOST_FLOORS = 10
DOORS = ("__main__",)  # a line or two that lead to `cli`: no floor

# What is not yet as it shall be. An entry that is no longer needed fails, too.
KNOWN = {
    ("federated", "categorical"),  # `Randomized` reports a number of examples by GRR
}
KNOWN_CIRCLES: set[frozenset[str]] = set()


def wrong_arrows(arrows: Arrows) -> set[tuple[str, str]]:
    """Return the arrows between rooms that lead upward, or from who asks to whom it must not know."""
    return {
        (room, target)
        for room, targets in between_rooms(arrows).items()
        for target in targets
        if ORDER.index(target) > ORDER.index(room) or (room in ASKING and target in FAMILIES)
    }


def border(package: Path, other: str) -> Iterator[tuple[str, str]]:
    """Yield what the files of a package import of another package: the file, and the dotted name."""
    for path in sorted(package.rglob("*.py")):
        for name in imported(path, path.stem):
            if name.split(".")[0] == other:
                yield path.relative_to(package).as_posix(), name


def beyond(package: Path, public: Iterable[str]) -> set[tuple[str, str]]:
    """Return the names of `bitldp` that files of a package take and that are not public."""
    known = set(public)
    taken = {each for each in border(package, "bitldp") if each[1] not in known}
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("bitldp."):
                *_, owner, name = ast.unparse(node).split(".")
                if name.startswith("_") and not name.startswith("__"):
                    taken.add((path.relative_to(package).as_posix(), f"{owner}.{name}"))
    return taken


@pytest.fixture(scope="module")
def public(monkeypatch_module: pytest.MonkeyPatch) -> set[str]:
    """Return the names that the reference documents."""
    pytest.importorskip("flwr", reason="the reference lists bitldp.federated, which needs Flower")
    monkeypatch_module.syspath_prepend(SITE)
    import reference

    found: set[str] = reference.public()
    return found


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def arrows() -> Arrows:
    return python_arrows(PACKAGE)


@pytest.mark.slow
def test_every_room_has_its_place(arrows: Arrows) -> None:
    assert {room_of(module) for module in arrows} == set(ORDER), "give each room its place in ORDER"


def test_imports_lead_downward(arrows: Arrows) -> None:
    assert wrong_arrows(arrows) - KNOWN == set()


def test_no_files_import_each_other(arrows: Arrows) -> None:
    crates = {path.name: circles(rust_arrows(path / "src")) for path in CRATES.iterdir()}
    assert {"client", "core", "python"} <= crates.keys()
    assert circles(arrows).union(*crates.values()) - KNOWN_CIRCLES == set()


def test_what_is_known_to_be_wrong_still_is(arrows: Arrows) -> None:
    assert KNOWN - wrong_arrows(arrows) == set(), "no longer needed: take it from KNOWN"
    found = circles(arrows).union(*(circles(rust_arrows(path / "src")) for path in CRATES.iterdir()))
    assert KNOWN_CIRCLES - found == set(), "no longer needed: take it from KNOWN_CIRCLES"


def test_the_house_is_no_tower(arrows: Arrows) -> None:
    """The package's list of names is no floor: who takes a name from it stands on the rooms that it lists."""
    wrong, rooms = wrong_arrows(arrows), between_rooms(arrows)
    listed = rooms.pop("bitldp")
    built = {
        room: {target for target in targets - {"bitldp"} if (room, target) not in wrong}
        | (listed - {room} if "bitldp" in targets else set())
        for room, targets in rooms.items()
        if room not in DOORS
    }
    chain = floors(built)
    assert len(chain) <= MOST_FLOORS, " > ".join(chain)


def test_the_library_knows_nothing_of_the_papers() -> None:
    assert list(border(PACKAGE, "bitldp_papers")) == []
    named = [path for path in PACKAGE.rglob("*.py") if "bitldp_papers" in path.read_text(encoding="utf-8")]
    assert named == []


def test_the_papers_use_public_names_alone(public: set[str]) -> None:
    assert beyond(PAPERS, public) == set()


def test_no_files_of_the_papers_import_each_other() -> None:
    assert circles(python_arrows(PAPERS)) == set()


def test_the_root_is_no_drawer() -> None:
    private = [path.name for path in PACKAGE.iterdir() if path.name.startswith("_") and path.suffix == ".py"]
    assert sorted(private) == ["__init__.py", "__main__.py"]


# -- the checks themselves: faults planted in small trees


def tree(folder: Path, files: dict[str, str]) -> Path:
    """Write files; Python packages get their `__init__`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".py":
            (path.parent / "__init__.py").touch()
    return folder


SOUND = {
    "bitldp/__init__.py": "from bitldp.points.brr import BRR\n",
    "bitldp/_core.pyi": "",
    "bitldp/base/checks.py": "import math\n",
    "bitldp/release/base.py": "from bitldp import _core\nfrom bitldp.base import checks\n",
    "bitldp/points/base.py": "from ..release.base import Release\nfrom bitldp._core import Window\n",
    "bitldp/points/brr.py": "from bitldp.points import base\n",
    "bitldp/accounting/laws.py": "from bitldp.release import base\n",
}


def test_a_sound_tree_passes(tmp_path: Path) -> None:
    found = python_arrows(tree(tmp_path, SOUND) / "bitldp")
    assert found["bitldp.points.base"] == {"bitldp.release.base"}
    assert found["bitldp.release.base"] == {"bitldp.base.checks"}
    assert not wrong_arrows(found)
    assert not circles(found)
    assert floors(between_rooms(found)) == ["bitldp", "points", "release", "base"]


@pytest.mark.parametrize(
    ("file", "line", "arrow"),
    [
        ("base/checks.py", "from bitldp.points.brr import BRR", ("base", "points")),
        ("base/checks.py", "def late():\n    import bitldp.points.brr", ("base", "points")),
        ("release/base.py", "from ..points import base as points", ("release", "points")),
        ("release/base.py", "from bitldp import BRR", ("release", "bitldp")),
        ("release/base.py", "import bitldp", ("release", "bitldp")),
        ("accounting/laws.py", "from bitldp.points.brr import BRR", ("accounting", "points")),
        ("audit/law.py", "if TYPE_CHECKING:\n    from bitldp.points import brr", ("audit", "points")),
    ],
)
def test_a_planted_arrow_upward_is_found(
    tmp_path: Path, file: str, line: str, arrow: tuple[str, str]
) -> None:
    name = f"bitldp/{file}"
    found = python_arrows(tree(tmp_path, {**SOUND, name: f"{SOUND.get(name, '')}{line}\n"}) / "bitldp")
    assert wrong_arrows(found) == {arrow}


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    planted = {
        "bitldp/points/base.py": "import bitldp.points.width\n",
        "bitldp/points/width.py": "from bitldp.points.brr import BRR\n",
    }
    found = python_arrows(tree(tmp_path, {**SOUND, **planted}) / "bitldp")
    assert not wrong_arrows(found)
    assert circles(found) == {frozenset({"bitldp.points.base", "bitldp.points.width", "bitldp.points.brr"})}


def test_a_planted_circle_of_rust_is_found(tmp_path: Path) -> None:
    sound = {
        "lib.rs": "pub mod codec;\npub mod kernel;\n",
        "codec/mod.rs": "mod grid;\nmod pack;\npub use grid::Grid;\npub use pack::{pack, unpack as undo};\n",
        "codec/grid.rs": "// crate::kernel::Isa\n#[cfg(test)]\nmod tests {\n    use crate::kernel::Isa;\n}\n",
        "codec/pack.rs": "use crate::kernel::{self, Isa};\n",
        "kernel/mod.rs": "use crate::{\n    codec::{Grid},\n};\n",
    }
    found = rust_arrows(tree(tmp_path / "sound", sound))
    assert found["codec::pack"] == {"kernel"}
    assert found["kernel"] == {"codec::grid"}
    assert not circles(found)
    for line in (
        "use crate::kernel::Isa;",
        "fn f() { crate::kernel::run() }",
        "use super::super::kernel::Isa;",
    ):
        planted = {**sound, "codec/grid.rs": f"{line}\n"}
        found = rust_arrows(tree(tmp_path / "planted", planted))
        assert circles(found) == {frozenset({"codec::grid", "kernel"})}
    planted = {
        "lib.rs": "mod codec;\n",
        "codec.rs": "mod grid;\nuse grid::Grid;\n",
        "codec/grid.rs": "use super::Real;\n",
    }
    found = rust_arrows(tree(tmp_path / "child", planted))
    assert circles(found) == {frozenset({"codec", "codec::grid"})}


def test_a_planted_step_over_the_border_is_found(tmp_path: Path) -> None:
    text = (
        "import bitldp\nfrom bitldp import GRR\nfrom bitldp.points import BRR\n"
        "from bitldp.base import checks\nfrom bitldp.base.documents import jsonable\n"
    )
    public = {
        "bitldp",
        "bitldp.GRR",
        "bitldp.points.BRR",
        "bitldp.base.checks",
        "bitldp.base.documents.jsonable",
    }
    found = tree(tmp_path, {"papers/brr.py": f"{text}x = GRR(3)._release\n"}) / "papers"
    assert beyond(found, public) == set()
    for line, name in (
        ("from bitldp.points.brr import BRR", "bitldp.points.brr.BRR"),
        ("def late():\n    import bitldp.points.matrix", "bitldp.points.matrix"),
        ("y = bitldp.GRR._quiet(3)", "GRR._quiet"),
    ):
        (found / "brr.py").write_text(f"{text}{line}\n", encoding="utf-8")
        assert beyond(found, public) == {("brr.py", name)}
