"""The secret key of a release: where it comes from, and what is derived from it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitldp.base.keys import check_secret

__all__ = ["ReleaseKey"]

_BYTES = 32


class ReleaseKey:
    """Secret of 32 bytes that makes a release repeatable: the same records get the same reports.

    Whoever holds it can test what a record's value was. Keep it with the owner of the data, never beside the
    released table. Destroy it when you no longer need to repeat a release.

    Its repr and its pickle hold a reference to an environment variable or a file, never the key itself: the
    processes of a cluster need the same variable or file. A key from `generate` cannot be pickled.

    Examples
    --------
    >>> import os
    >>> from bitldp.tables import ReleaseKey
    >>> os.environ["BITLDP_RELEASE_KEY"] = ReleaseKey.new_text()
    >>> ReleaseKey.from_env("BITLDP_RELEASE_KEY")
    ReleaseKey.from_env('BITLDP_RELEASE_KEY')
    """

    __slots__ = ("_key", "_reference")

    def __init__(self, key: bytes, reference: tuple[str, str] | None = None) -> None:
        if not isinstance(key, bytes) or len(key) != _BYTES:
            raise ValueError(f"key: must be {_BYTES} bytes")
        check_secret(key)
        self._key = key
        self._reference = reference

    @classmethod
    def from_env(cls, name: str) -> ReleaseKey:
        """Read the key from a variable of the environment: 64 hexadecimal digits.

        Raises
        ------
        ValueError
            If the variable is not set, or holds something else.
        """
        text = os.environ.get(name)
        if text is None:
            raise ValueError(
                f"the variable {name} is not set; it holds the release key, {2 * _BYTES} hex digits"
            )
        return cls(_digits(text, f"the variable {name}"), ("from_env", name))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ReleaseKey:
        """Read the key from a file of 64 hexadecimal digits.

        Raises
        ------
        ValueError
            If the file holds something else, or others than its owner may read it.
        OSError
            If it cannot be read.
        """
        file = Path(path).resolve()
        if os.name == "posix" and file.stat().st_mode & 0o077:
            raise ValueError(f"{file}: others may read it; a release key is its owner's alone (chmod 600)")
        return cls(
            _digits(file.read_text(encoding="ascii", errors="replace"), str(file)),
            ("from_file", str(file)),
        )

    @classmethod
    def generate(cls) -> ReleaseKey:
        """Draw a key for use in this process only."""
        return cls(secrets.token_bytes(_BYTES))

    @staticmethod
    def new_text() -> str:
        """Return a new key as 64 hexadecimal digits, to keep in a file or a variable."""
        return secrets.token_hex(_BYTES)

    def derive(self, *parts: bytes) -> bytes:
        """Return a key of 32 bytes for a purpose: HMAC-SHA256 of its parts, each with its length."""
        text = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
        return hmac.new(self._key, text, hashlib.sha256).digest()

    def __repr__(self) -> str:
        """Return where the key comes from."""
        if self._reference is None:
            return "ReleaseKey(...)"
        return f"ReleaseKey.{self._reference[0]}({self._reference[1]!r})"

    def __reduce__(self) -> tuple[Callable[..., ReleaseKey], tuple[Any, ...]]:
        """Pickle the reference; a key without one stays in its process."""
        if self._reference is None:
            raise TypeError("a generated release key cannot be pickled; use from_env or from_file")
        return getattr(ReleaseKey, self._reference[0]), (self._reference[1],)


def _digits(text: str, source: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != _BYTES:
        raise ValueError(f"{source}: must hold {2 * _BYTES} hexadecimal digits")
    return key
