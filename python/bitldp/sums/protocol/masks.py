"""Masks and envelopes: keys of a pair of clients, streams of a key, sealed shares, packed words.

All is of `cryptography`: X25519 (RFC 7748), HKDF of SHA-256 (RFC 5869), ChaCha20 with all 256 bits of the key
and ChaCha20-Poly1305 (RFC 8439). A key is used for one stream or one envelope, so that nonces are zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from bitldp._core import pack, unpack

__all__ = [
    "KEY_BYTES",
    "SEAL_BYTES",
    "Words",
    "opened",
    "packed",
    "packed_size",
    "pair_key",
    "public_of",
    "sealed",
    "seed_key",
    "stream",
    "unpacked",
    "word",
]

Words = NDArray[np.unsignedinteger[Any]]
"""Integers modulo 2**bits in the least unsigned type that holds them."""

KEY_BYTES = 32
SEAL_BYTES = 16
_NONCE = bytes(12)
_COUNTER = bytes(16)


def public_of(private: bytes) -> bytes:
    """Return the public key of a private one, 32 bytes each."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def pair_key(private: bytes, public: bytes, session: bytes, purpose: bytes, *parts: int) -> bytes:
    """Return the key of 32 bytes that two clients have together, for one purpose in one session.

    Parameters
    ----------
    private, public : bytes
        X25519 keys: one's own, and the other's.
    session : bytes
        Digest of all that the clients of the round have seen.
    purpose : bytes
        What the key is for.
    *parts : int
        Indices of the clients, in the order that the purpose has.

    Raises
    ------
    ValueError
        For a public key of small order, with which everybody would know the key.
    """
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    return _derived(shared, session, purpose, *parts)


def seed_key(seed: bytes, session: bytes, index: int) -> bytes:
    """Return the key of a client's own mask."""
    return _derived(seed, session, b"self", index)


def _derived(secret: bytes, session: bytes, purpose: bytes, *parts: int) -> bytes:
    info = b"bitldp sum " + purpose + b"\0" + b"".join(part.to_bytes(4, "little") for part in parts)
    return HKDF(SHA256(), KEY_BYTES, session, info).derive(secret)


def word(bits: int) -> np.dtype[Any]:
    """Return the least unsigned type that holds integers of so many bits, in little-endian order."""
    return np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if bits <= 8 * size)}")


def stream(key: bytes, count: int, bits: int) -> Words:
    """Return words of a key, uniform modulo 2**bits once they are reduced; shape (count,).

    They are whole words, so that sums of them wrap by themselves; who packs a sum takes its low bits.
    """
    kind = word(bits)
    data = bytearray(count * kind.itemsize)
    Cipher(ChaCha20(key, _COUNTER), mode=None).encryptor().update_into(data, data)
    return np.frombuffer(data, kind)


def sealed(key: bytes, plain: bytes) -> bytes:
    """Return an envelope, 16 bytes longer than its contents."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, plain, None)


def opened(key: bytes, envelope: bytes) -> bytes | None:
    """Return the contents of an envelope; None if it was not sealed with this key."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, envelope, None)
    except InvalidTag:
        return None


def packed_size(count: int, bits: int) -> int:
    """Return the bytes of packed words."""
    return (count * bits + 7) // 8


def packed(words: Words, bits: int) -> bytes:
    """Return the low bits of words, without gaps."""
    return pack(words & words.dtype.type((1 << bits) - 1), bits).tobytes()


def unpacked(data: bytes, count: int, bits: int) -> Words:
    """Return the words of packed bytes, below 2**bits.

    Raises
    ------
    ValueError
        If the bytes are not as many as `packed_size` says, or a bit is set that no word uses.
    """
    if len(data) != packed_size(count, bits):
        raise ValueError(f"words: {packed_size(count, bits)} bytes are needed, got {len(data)}")
    return np.asarray(unpack(np.frombuffer(data, np.uint8), bits, count)).astype(word(bits))
