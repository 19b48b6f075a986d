"""Parameters and attributes as the docstring of a class describes them."""

from __future__ import annotations

import inspect
import re

__all__ = ["documented"]


def documented(kind: type, section: str) -> dict[str, str]:
    """Return the paragraphs of a section of a class's docstring ("Parameters", "Attributes") by name.

    Names that share a paragraph get it each; double backquotes are dropped, double quotes become single.
    """
    text = inspect.getdoc(kind) or ""
    _, _, text = text.partition(f"{section}\n{'-' * len(section)}\n")
    text = re.split(r"\n\n\w+\n-+\n", text, maxsplit=1)[0]
    result = {}
    for head, body in re.findall(r"^(\S.*)\n?((?:(?: +.*)?\n?)*)", text, re.MULTILINE):
        words = " ".join(body.split()).replace("``", "").replace('"', "'")
        for name in head.partition(" : ")[0].split(", "):
            result[name] = words
    return result
