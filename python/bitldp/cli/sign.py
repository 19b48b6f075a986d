"""Signatures of privacy reports: a key pair, and what ``bitldp perturb --sign-with`` adds to a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from bitldp.base.errors import require
from bitldp.base.signing import private_key
from bitldp.cli.errors import UsageError
from bitldp.cli.screen import sentences
from bitldp.tables.column import canonical_digest

__all__ = ["Signer", "keypair"]

_PURPOSE = b"bitldp report\0"  # a signature for another purpose is none of a report


class Signer:
    """Private key of Ed25519 that signs privacy reports; it shows nothing of itself.

    Raises
    ------
    UsageError
        For a file that is not there, that others may read, or that holds no such key.
    MissingExtraError
        Without cryptography.
    """

    def __init__(self, path: Path) -> None:
        require("signing a report", ["cryptography"], "sign")
        try:
            self._key = private_key(path)
        except OSError as error:
            raise UsageError(f"--sign-with: {path}: {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"--sign-with: {error}") from None

    def signed(self, report: dict[str, Any]) -> dict[str, Any]:
        """Return a report with the signature of all of it: plan, laws, ledger, and the digest of the file."""
        signature = self._key.sign(_PURPOSE + canonical_digest(report).encode())
        return {**report, "signature": signature.hex()}

    def __repr__(self) -> str:
        return "Signer(...)"


def keypair(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File for the private key; the public one is written to FILE.pub."
        ),
    ],
) -> None:
    """Make a key pair: a private key to sign reports with, and a public one to check them.

    The private key signs (perturb --sign-with FILE) and stays with its owner. Whoever has the public one
    checks (verify --signed-by FILE.pub). Both are Ed25519 in PEM; neither file may exist.

    Example: bitldp keypair release.key
    """
    with sentences():
        require("a pair of keys", ["cryptography"], "sign")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            PublicFormat,
        )

        public = file.with_name(f"{file.name}.pub")
        for path in (file, public):
            if path.exists():
                raise UsageError(f"{path}: exists, and is not replaced")
        key = Ed25519PrivateKey.generate()
        _write(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
        _write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
        print(f"{file}: signs, and is yours alone; hand out {public}")


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file that nobody else may have begun."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(data)
