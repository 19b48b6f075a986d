"""Arrays that mostly fit an argument, and what is no array: for calls that are drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.fuzz import SECRET, SECRET_CODE, SECRET_TEXT, mostly

DTYPES = [
    "u1",
    "u2",
    "u4",
    "u8",
    "i1",
    "i2",
    "i4",
    "i8",
    "f4",
    "f8",
    "f2",
    "?",
    "c8",
    "O",
    "S8",
    "M8[s]",
    ">f4",
]
LAYOUTS = ["C", "F", "reversed", "every second", "askew", "read-only", "broadcast", "masked"]
SHAPES = [(), (0,), (1,), (8,), (16,), (64,), (3, 8), (8, 3), (0, 8), (8, 0), (2, 2, 2), (1000, 8)]


class Lying:
    """A sequence that does not have the length it says."""

    def __init__(self, says: int, has: int) -> None:
        self.says, self.has = says, has

    def __len__(self) -> int:
        return self.says

    def __getitem__(self, place: int) -> float:
        if not 0 <= place < self.has:
            raise IndexError(place)
        return SECRET


class Grudging:
    """An object that gives something else as its array."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __array__(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


ODD: list[Callable[[], Any]] = [
    lambda: None,
    lambda: SECRET,
    lambda: SECRET_TEXT,
    lambda: [SECRET_TEXT] * 8,
    lambda: [[SECRET], [SECRET, SECRET]],
    lambda: [10**400] * 8,
    lambda: Lying(10**18, 3),
    lambda: Lying(0, 3),
    lambda: Lying(8, 0),
    lambda: Lying(3, 8),
    lambda: Grudging(np.ones(8)),
    lambda: Grudging(None),
    lambda: Grudging(ValueError("no array")),
    lambda: bytes(8),
    lambda: memoryview(bytes(8)),
    lambda: {"a": SECRET},
    lambda: [0, 1, 1, 0, 1, 0, 0, 1],
]


@st.composite
def arrays(draw: st.DrawFn, fitting: tuple[int, ...] = (16,), dtypes: str = "u1 u2 i8 f4 f8") -> Any:
    """Draw arrays that mostly are of this shape, and now and then what is no array."""
    if draw(st.integers(0, 15)) == 15:
        return draw(st.sampled_from(ODD))()
    shape = draw(mostly(st.just(fitting), st.sampled_from(SHAPES), 8))
    dtype = np.dtype(draw(mostly(st.sampled_from(dtypes.split()), st.sampled_from(DTYPES))))
    values = np.full(shape, draw(st.sampled_from([0, 0, 1, 1, 1])), np.int64)
    x = values.astype(dtype)
    if x.dtype.kind == "f":
        x[...] = draw(st.sampled_from([SECRET, -SECRET, 0.0, 1e-40]))
    if x.size and draw(st.integers(0, 7)) == 7:
        bound = np.iinfo(x.dtype).max if x.dtype.kind in "iu" else 1
        wrong = {"f": [np.nan, np.inf, 1e30], "S": [SECRET_TEXT.encode()], "O": [SECRET, SECRET_TEXT]}
        one = draw(st.sampled_from(wrong.get(x.dtype.kind, [min(SECRET_CODE, bound), 1])))
        with np.errstate(over="ignore"):
            x.flat[draw(st.integers(0, x.size - 1))] = np.asarray(one).astype(x.dtype)
    return laid(x, draw(mostly(st.just("C"), st.sampled_from(LAYOUTS), 4)))


def laid(x: NDArray[Any], layout: str) -> NDArray[Any]:
    """Return the same array with its elements lying in another way."""
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "reversed" and x.ndim:
        x = np.ascontiguousarray(x[::-1])[::-1]
    elif layout == "every second" and x.ndim:
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    elif layout == "askew" and x.dtype.kind != "O" and x.nbytes:
        askew = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        np.copyto(askew, x)
        x = askew
    elif layout == "broadcast" and x.size:
        x = np.broadcast_to(x.flat[0], x.shape)
    elif layout == "masked":
        x = np.ma.masked_array(x, mask=np.zeros(x.shape, bool))
    elif layout == "read-only":
        x.flags.writeable = False
    return x
