"""Every name that a document may use: what sources define, the command line knows and folders hold."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

# What others define: classes of Flower and NumPy, options of Flower's programs.
FOREIGN_CLASSES = {"ClientApp", "FedAvg", "Generator", "SeedSequence"}
FOREIGN_OPTIONS = {"--node-config"}

# The shapes of code in a sentence, in the order in which they are tried; each has a method below.
SHAPES = (
    (r"bitldp (.+)", "_command"),
    (r"make (\S+)", "_target"),
    (r"(--\S+).*", "_option"),
    (r"((?:pip|source|flwr) .+)", "_foreign"),
    (r"bitldp\[(\w+)\]", "_extra"),
    (r"(\S*/\S*|\.\S+|\S+\.(?:py|rs|md|toml|json))", "_path"),
    (r"(\w+=\S*)", "_setting"),
    (r"(.*\(.*\))", "_call"),
    (r"([\w.-]+)", "_dotted"),
)


class Vocabulary:
    """The names of a checkout: `knows` tells whether a piece of code in a document stands for something."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = (root / "python" / "bitldp", root / "python" / "papers" / "bitldp_papers")

    def knows(self, code: str) -> bool:
        """Whether everything that a piece of code names exists."""
        for shape, method in SHAPES:
            if found := re.fullmatch(shape, code):
                known: bool = getattr(self, method)(found[1])
                return known
        return False

    # -- one method a shape

    def _command(self, text: str) -> bool:
        words = text.split()
        command = "" if words[0].startswith("--") else words[0]
        return {word for word in words if word.startswith("--")} <= self.commands.get(command, set()) and (
            command in self.commands
        )

    def _target(self, name: str) -> bool:
        return re.search(rf"^{re.escape(name)}:", self._text("Makefile"), re.MULTILINE) is not None

    def _option(self, option: str) -> bool:
        return option in FOREIGN_OPTIONS or any(option in options for options in self.commands.values())

    def _foreign(self, text: str) -> bool:
        return all(self._extra(name) for name in re.findall(r"bitldp\[(\w+)\]", text))

    def _extra(self, name: str) -> bool:
        return re.search(rf"^{name} = \[", self._text("pyproject.toml"), re.MULTILINE) is not None

    def _path(self, path: str) -> bool:
        if f"/{path.strip('/')}/" in self._text(".gitignore").splitlines():
            return True
        if "/" not in path and any(path.endswith(each) for each in self.strings if re.match(r"\.\w", each)):
            return True  # an example's file, of a kind that the package writes
        places = (self.root, *(place for each in self.packages for place in (each.parent, each)))
        return any(any(place.glob(path.rstrip("/"))) for place in places)

    def _setting(self, text: str) -> bool:
        name, _, given = text.partition("=")
        values = {each.strip("\"'") for each in given.split("|")} - {"", "None", "True", "False"}
        return self._name(name) and all(
            each.isupper() or each.replace(".", "").isdigit() or self._name(each) for each in values
        )

    def _call(self, text: str) -> bool:
        try:
            call = ast.parse(text, mode="eval").body
        except SyntaxError:
            return False
        if not isinstance(call, ast.Call) or not self._dotted(ast.unparse(call.func)):
            return False
        named = {each.arg for each in call.keywords} | {
            each.id for each in call.args if isinstance(each, ast.Name)
        }
        found = _public(ast.unparse(call.func))
        return found is None or named <= set(inspect.signature(found).parameters)

    def _dotted(self, text: str) -> bool:
        return all(self._name(part) for part in text.split(".")) and _importable(text)

    def _name(self, name: str) -> bool:
        is_class = re.fullmatch(r"[A-Z][A-Za-z0-9]+", name) is not None
        return name in (self.classes if is_class else self.names)

    # -- what there is

    @cached_property
    def classes(self) -> set[str]:
        """Classes that the package defines or takes from elsewhere."""
        found = {each.name for each in self._nodes if isinstance(each, ast.ClassDef)}
        for each in self._nodes:
            if isinstance(each, (ast.Import, ast.ImportFrom)):
                found |= {alias.name.rpartition(".")[2] for alias in each.names}
        return found | FOREIGN_CLASSES

    @cached_property
    def names(self) -> set[str]:
        """What is defined anywhere: modules, functions, parameters, attributes, words that are arguments."""
        found = set(self.strings)
        for each in self._nodes:
            if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                found.add(each.name)
            elif isinstance(each, ast.arg):
                found.add(each.arg)
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                found.add(each.attr)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
        for path in [*self._paths("*"), *(self.root / "tests").glob("*")]:
            found.add(path.stem)
        for path in (self.root / "rust").rglob("*.rs"):
            found |= {path.stem, path.parent.name} | set(re.findall(r"\"([\w-]+)\"", path.read_text()))
        for path in (self.root / "rust").glob("*/include/*.h"):  # what C calls
            found |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        for path in [self.root / "Cargo.toml", *self.root.glob("rust/*/Cargo.toml")]:
            found |= set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))
        return (
            found
            | {path.name for path in self.root.iterdir()}
            | {*dir(builtins), "true", "unsafe", "bitldp", "bitldp_papers"}
        )

    @cached_property
    def strings(self) -> set[str]:
        """Strings of one word: choices of arguments, keys of forms, variables of the environment."""
        found = {each.value for each in self._nodes if isinstance(each, ast.Constant)}
        return {each for each in found if isinstance(each, str) and re.fullmatch(r"[\w.-]+", each)}

    @cached_property
    def commands(self) -> dict[str, set[str]]:
        """The options of each command of ``bitldp``, and of the program itself."""
        from bitldp.cli.program import app
        from typer.main import get_command

        top = get_command(app)
        found = {"": _options(top)}
        for name, command in top.commands.items():
            found[name] = _options(command) | {
                option for each in getattr(command, "commands", {}).values() for option in _options(each)
            }
        return found

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(self._walked())

    def _walked(self) -> Iterator[ast.AST]:
        for path in [*self._paths("*.py"), *self._paths("*.pyi")]:
            yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))

    def _paths(self, pattern: str) -> Iterator[Path]:
        for package in self.packages:
            yield from package.rglob(pattern)

    def _text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


def _options(command: Any) -> set[str]:
    return {"--help"} | {option for each in command.params for option in each.opts + each.secondary_opts}


def _importable(code: str) -> bool:
    """Whether a name that begins with one of the packages leads somewhere."""
    package, *parts = code.split(".")
    if package not in ("bitldp", "bitldp_papers"):
        return True
    found: Any = import_module(package)
    for part in parts:
        if not hasattr(found, part):
            try:
                import_module(f"{found.__name__}.{part}")
            except (AttributeError, ImportError):
                return False
        found = getattr(found, part)
    return True


def _public(name: str) -> Any:
    """Return what a public name stands for; None for what is not the package's."""
    for home in map(import_module, ("bitldp", "bitldp.compression", "bitldp.selection", "bitldp.federated")):
        if hasattr(home, name):
            return getattr(home, name)
    return None
