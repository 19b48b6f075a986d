"""Keys of Ed25519 in PEM files: a private one that its owner alone may read, and a public one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitldp.base.errors import require

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["private_key", "public_key"]


def private_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """Return the private key of a PEM file.

    Raises
    ------
    ValueError
        For a file that others may read, or that holds no such key. No byte of the file is in the message.
    OSError
        If it cannot be read.
    MissingExtraError
        Without cryptography.
    """
    require("a signature", ["cryptography"], "sign")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    file = Path(path)
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise ValueError(f"{file}: other users can read it; restrict it to its owner (chmod 600)")
    key = _loaded(load_pem_private_key, file.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{file}: is not an unencrypted Ed25519 private key in PEM")
    return key


def public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """Return the public key of a PEM file.

    Raises
    ------
    ValueError
        For a file that holds no such key.
    OSError
        If it cannot be read.
    MissingExtraError
        Without cryptography.
    """
    require("a signature", ["cryptography"], "sign")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = _loaded(load_pem_public_key, Path(path).read_bytes())
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{Path(path)}: is not an Ed25519 public key in PEM")
    return key


def _loaded(load: Any, data: bytes, **options: Any) -> Any:
    """Return a key of any kind; None for what is none."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load(data, **options)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return None
