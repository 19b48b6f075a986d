"""The extension module. Faces of the Rust core: unpack, call, map the error; nothing else."""

from collections.abc import Sequence
from typing import Any, Literal
import numpy as np
from numpy.typing import NDArray

__version__: str
CHUNK: int  # 8192: values (features or samples) in one addressed chunk of the keystream

def isa() -> (
    str
): ...  # "avx512" | "avx2" | "scalar": what the kernels run on (BITLDP_ISA forces one; checked at import)
def available_isas() -> list[str]: ...  # what this CPU can run, best first
def log_ratio(numerator: int, denominator: int) -> float: ...  # ln(a/b), rounded up; inf where b == 0 < a
def keystream(
    key: bytes, nonce: int, length: int
) -> bytes: ...  # canonical keystream of (key, nonce): tests and benchmarks only
def pack(
    reports: NDArray[Any], bits: int
) -> NDArray[
    np.uint8
]: ...  # b bits a report, most significant first, no padding between: == np.packbits of the bits
def unpack(
    packed: NDArray[np.uint8], bits: int, count: int
) -> NDArray[Any]: ...  # smallest unsigned dtype; refuses a wrong length

class FixedPoint:  # frozen, ==, hash, picklable
    def __new__(
        cls,
        bits: int,
        *,
        integer_bits: int,
        sign: Literal["bitrand", "ldpfl"] = "bitrand",
        infinities: Literal["refuse", "saturate"] = "refuse",
    ) -> "FixedPoint": ...
    bits: int
    integer_bits: int
    fraction_bits: int
    sign: str
    infinities: str
    step: float  # 2**-fraction_bits
    limit: float  # largest magnitude
    def encode(
        self, x: Any
    ) -> NDArray[Any]: ...  # float32/float64 -> codes (smallest unsigned dtype), same shape
    def decode(self, codes: Any, dtype: Any = np.float32) -> NDArray[Any]: ...  # codes -> float32/float64

class Grid:  # frozen, ==, hash, picklable: real value -> index of one of `points` equidistant points of [low, high]
    def __new__(
        cls,
        points: int,
        *,
        low: float,
        high: float,
        rounding: Literal["dither", "nearest"] = "dither",
        clip: bool = True,
    ) -> "Grid": ...
    points: int
    low: float
    high: float
    rounding: str
    clip: bool
    def values(self) -> NDArray[np.float64]: ...  # the points
    def outside(self, x: Any) -> int: ...  # how many values clip would move

# All `randomize` methods: positional arguments only; key is 32 bytes or None (a fresh one from the operating system);
# threads None (automatic), or >= 1; first_chunk: how many CHUNKs of this key's stream to skip; out: C-contiguous, writeable,
# exact shape and dtype, not overlapping x. x: NumPy array or anything np.asarray takes. Errors: ValueError / TypeError that
# name the argument, before anything is written.

class Bits:  # picklable. Independent bits on ARBITRARY strings: K laws of l positions (most significant first)
    def __new__(
        cls,
        p: Sequence[Sequence[float]],
        q: Sequence[Sequence[float]],
        features: int,
        pattern: Sequence[int] | None = None,
    ) -> "Bits":
        ...
        # p[k][i] = P(report 1 | bit 1), q[k][i] = P(report 1 | bit 0); pattern[j] = law of feature j (default: law 0 for all)
    bits: int
    features: int
    laws: int
    symmetric: bool
    epsilon: tuple[float, float, float]  # exact (worst bit, worst feature, record), rounded up, inf possible
    def thresholds(
        self,
    ) -> list[list[tuple[int, int]]]: ...  # per law, per position (T_p, T_q) over 2**64 (2**64 itself = 1)
    def randomize(
        self,
        x: Any,
        codec: FixedPoint | None,
        key: bytes | None,
        output: str,
        out: Any | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        ...
        # x: (n, features), or (features,) one record (features == 1: (n,) too). float32/64 with a codec, unsigned codes without.
        # output "codes" (same shape, smallest unsigned dtype), "bits" ((n, features*bits) uint8), "values" (codec needed; x's float dtype or out's), "packed" (1-D uint8)

class Unary:  # picklable. Bits on ONE-HOT input: category -> k bits, position x with p, others with q
    def __new__(cls, categories: int, p: float, q: float) -> "Unary": ...
    categories: int
    epsilon: tuple[float, float, float]  # (worst bit, one-hot pair, same)
    epsilon_arbitrary: float  # what it would be on arbitrary strings: the sum over all bits
    def thresholds(self) -> tuple[int, int]: ...
    def randomize(
        self, x: Any, key: bytes | None, output: str, out: Any | None, threads: int | None, first_chunk: int
    ) -> NDArray[Any]:
        ...
        # x: (n,) integers in [0, categories); output "bits" ((n, k) uint8) or "packed" (1-D uint8)

class Window:  # picklable. N cells, `width` of them share probability `high`, the rest 1-high; uniform within each
    def __new__(
        cls, cells: int, width: int, high: float, order: NDArray[np.uint16] | None = None
    ) -> "Window":
        ...
        # order (N, N): row x lists the cells from best to worst; the window is its first `width`. Without it: the width cells nearest x, shifted inside at the edges
    cells: int
    width: int
    epsilon: float  # exact, rounded up
    high: int  # T over 2**64: P(in window)
    def start(self, x: int) -> int: ...  # first cell of x's window (no order)
    def probabilities(self) -> NDArray[np.float64]: ...  # (N, N), for small N
    def randomize(
        self,
        x: Any,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | None,
        output: str,
        out: Any | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        ...
        # x: integers in [0, N) of any shape, or floats with a grid of N points; output "codes", "values" (letters: N numbers; float64, or out's dtype), "packed"

class Matrix:  # picklable. Any row-stochastic table
    def __new__(
        cls, probabilities: NDArray[np.float64]
    ) -> "Matrix": ...  # (R, C); rows must sum to 1 within 1e-9
    inputs: int
    outputs: int
    epsilon: float
    constant_time: bool  # whole table read for every sample (small tables)
    def weights(self) -> list[list[int]]: ...  # integer rows, each summing to exactly 2**64
    def probabilities(self) -> NDArray[np.float64]: ...
    def randomize(
        self,
        x: Any,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | None,
        output: str,
        out: Any | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]: ...
