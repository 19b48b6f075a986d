"""Print what an extra of pyproject.toml brings, one requirement a line, without bitldp itself.

So the environment is filled while the extension module compiles: `make demo`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def requirements(project: dict[str, Any], extra: str) -> Iterator[str]:
    """Yield the requirements of an extra and of those that it names."""
    for line in project["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", line)
        if own is None:
            yield line
            continue
        for other in own[1].split(","):
            yield from requirements(project, other)


if __name__ == "__main__":
    described = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(dict.fromkeys([*described["dependencies"], *requirements(described, sys.argv[1])])))
