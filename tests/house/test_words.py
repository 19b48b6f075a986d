"""One word, one thing: no class name stands twice, and no docstring begins by a riddle."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "python" / "bitldp", ROOT / "python" / "papers" / "bitldp_papers")

RIDDLES = ("What", "Of", "In what", "Whether", "That which")
"""Words that no docstring begins with: its first line is a plain sentence, verb or noun first."""


def sources(*folders: Path) -> dict[str, ast.Module]:
    """Return the modules of packages, parsed, by the path in their package's folder."""
    return {
        str(path.relative_to(folder.parent)): ast.parse(path.read_text(encoding="utf-8"))
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    }


def class_names_that_stand_twice(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the public classes of one name in several files, or several times in one: name and files."""
    files = defaultdict(list)
    for path, module in modules.items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(path)
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def riddles(modules: Mapping[str, ast.Module]) -> list[str]:
    """Return the docstrings that begin with one of `RIDDLES`: file, name and first line."""
    return [
        f"{path}: {name}: {line}"
        for path, module in modules.items()
        for name, line in _first_lines(module)
        if any(f"{line} ".startswith((f"{word} ", f"{word},")) for word in RIDDLES)
    ]


def _first_lines(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the first line of each docstring, with the name of what has it."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module):
        if isinstance(node, documented):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "the module"), text.splitlines()[0]
        for constant, text in _documented_constants(node):
            yield constant, text.splitlines()[0]


def _documented_constants(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names of a body's assignments that a string follows, and the string."""
    body = getattr(node, "body", None)
    for statement, after in pairwise(body) if isinstance(body, list) else ():
        text = after.value.value if _is_constant(after) else None
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(text, str):
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            yield ast.unparse(target), text


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return sources(*PACKAGES)


def test_no_class_name_stands_twice(modules: dict[str, ast.Module]) -> None:
    twice = class_names_that_stand_twice(modules)
    assert not twice, "\n".join(f"{name}: {', '.join(files)}" for name, files in sorted(twice.items()))


def test_no_docstring_begins_by_a_riddle(modules: dict[str, ast.Module]) -> None:
    found = riddles(modules)
    assert not found, f"{len(found)} first lines:\n" + "\n".join(found)


# -- the checks themselves: faults planted in a small tree

SOUND = {
    "one.py": '"""Laws."""\n\n\nclass Law:\n    """Law of a report."""\n\n\nclass _Row:\n    pass\n',
    "two.py": '"""Whatever is left."""\n\nMOST = 1\n"""Largest count."""\n\n\nclass _Row:\n    pass\n',
}


@pytest.mark.parametrize(
    ("file", "text", "twice", "first_lines"),
    [
        ("three.py", '"""Rows."""\n\n\nclass Row:\n    pass\n', [], 0),
        ("three.py", "class Law:\n    pass\n", ["Law"], 0),
        ("inner/three.py", "class Law:\n    pass\n", ["Law"], 0),
        ("three.py", '"""What reports are worth."""\n', [], 1),
        ("three.py", 'class Row:\n    def law(self):\n        """Of least variance: the law."""\n', [], 1),
        ("three.py", 'def row():\n    """In what a report differs."""\n', [], 1),
        ("three.py", 'async def row():\n    """Whether a report differs."""\n', [], 1),
        ("three.py", 'MOST = 1\n"""What no count exceeds."""\n', [], 1),
        ("three.py", 'class Row:\n    most: int = 1\n    """That which no count exceeds."""\n', [], 1),
    ],
)
def test_a_planted_fault_is_found(
    tmp_path: Path, file: str, text: str, twice: list[str], first_lines: int
) -> None:
    package = tmp_path / "package"
    for name, source in {**SOUND, file: text}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    modules = sources(package)
    assert list(class_names_that_stand_twice(modules)) == twice
    assert len(riddles(modules)) == first_lines
