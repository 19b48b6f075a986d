"""The extension module: the bindings of the Rust core. Its docstrings are in the module itself."""

from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = [
    "CHUNK",
    "Bits",
    "Cap",
    "Cube",
    "Design",
    "FixedPoint",
    "Grid",
    "KeyedRandomness",
    "Matrix",
    "Mixture",
    "Rotation",
    "Select",
    "Shift",
    "Subset",
    "Unary",
    "Window",
    "__version__",
    "available_isas",
    "coordinates",
    "count_hashes",
    "count_ones",
    "count_progressions",
    "count_words",
    "csv_rows",
    "distinct",
    "function_values",
    "functions",
    "hash_cells",
    "hash_supports",
    "histogram",
    "isa",
    "keystream",
    "log_ratio",
    "pack",
    "sampled_histogram",
    "sampled_sums",
    "scaled",
    "sliding_masses",
    "sums",
    "text_digests",
    "unpack",
    "words",
]

__version__: str
CHUNK: int

def isa() -> Literal["avx512", "avx2", "neon", "scalar"]: ...
def available_isas() -> list[str]: ...
def log_ratio(numerator: int, denominator: int) -> float: ...
def words(
    key: bytes | KeyedRandomness | None, records: int, each: int, first_chunk: int, chunk: int | None = None
) -> NDArray[np.uint64]: ...
def coordinates(
    key: bytes | KeyedRandomness | None, records: int, features: int, k: int, first_chunk: int
) -> NDArray[np.unsignedinteger]: ...
def distinct(draws: NDArray[np.uint64], features: int) -> NDArray[np.unsignedinteger]: ...
def scaled(draws: NDArray[np.uint64], counts: int | NDArray[np.int64]) -> NDArray[np.int64]: ...
def functions(draws: NDArray[np.uint64], prime: int) -> NDArray[np.uint32]: ...
def function_values(
    functions: NDArray[np.uint32], inputs: NDArray[np.uint32], prime: int, values: int
) -> NDArray[np.uint32]: ...
def keystream(key: bytes, nonce: int, length: int) -> bytes: ...
def pack(
    reports: ArrayLike,
    bits: int,
    *,
    out: NDArray[np.uint8] | None = None,
    threads: int | None = None,
) -> NDArray[np.uint8]: ...
def unpack(
    packed: NDArray[np.uint8],
    bits: int,
    count: int,
    *,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
) -> NDArray[Any]: ...
def count_hashes(
    reports: NDArray[np.uint32], inputs: int, prime: int, values: int, *, threads: int | None = None
) -> NDArray[np.uint64]: ...
def count_ones(
    reports: ArrayLike,
    width: int,
    *,
    form: Literal["bits", "packed"] = "bits",
    records: int | None = None,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
def count_progressions(
    reports: ArrayLike,
    inputs: int,
    modulus: int,
    width: int,
    *,
    form: Literal["codes", "bits", "packed"] = "codes",
    records: int | None = None,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
def count_words(
    reports: ArrayLike,
    columns: int,
    bits: int,
    *,
    form: Literal["codes", "bits", "packed"] = "codes",
    records: int | None = None,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
def histogram(
    reports: ArrayLike,
    columns: int,
    alphabet: int,
    *,
    form: Literal["codes", "bits", "packed"] = "codes",
    records: int | None = None,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
def sums(
    reports: ArrayLike,
    columns: int,
    alphabet: int,
    *,
    form: Literal["codes", "bits", "packed"] = "codes",
    records: int | None = None,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...
def sampled_histogram(
    indices: ArrayLike,
    codes: ArrayLike,
    dimensions: int,
    alphabet: int,
    *,
    form: Literal["codes", "packed"] = "codes",
    pairs: int | None = None,
) -> NDArray[np.uint64]: ...
def sampled_sums(
    indices: ArrayLike,
    codes: ArrayLike,
    dimensions: int,
    alphabet: int,
    *,
    form: Literal["codes", "packed"] = "codes",
    pairs: int | None = None,
) -> NDArray[np.uint64]: ...
def sliding_masses(
    counts: NDArray[np.uint64],
    width: int,
    high: float,
    *,
    smoothing: bool = True,
    gain: float = 1e-3,
    most: int | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]: ...
def hash_cells(seeds: NDArray[np.uint32], words: NDArray[np.uint64], cells: int) -> NDArray[np.uint32]: ...
def csv_rows(
    columns: Sequence[
        NDArray[Any] | tuple[NDArray[np.int32] | None, NDArray[np.int64], NDArray[np.uint8], bool]
    ],
    delimiter: str,
) -> NDArray[np.uint8]: ...
def text_digests(
    offsets: NDArray[np.int64], texts: NDArray[np.uint8], *, threads: int | None = None
) -> NDArray[np.uint8]: ...
def hash_supports(
    seeds: NDArray[np.uint32],
    reports: NDArray[np.uint32],
    words: NDArray[np.uint64],
    cells: int,
    *,
    threads: int | None = None,
) -> NDArray[np.uint64]: ...

@final
class FixedPoint:
    def __new__(
        cls,
        bits: int,
        *,
        integer_bits: int,
        sign: Literal["bitrand", "ldpfl"] = "bitrand",
        infinities: Literal["refuse", "saturate"] = "refuse",
    ) -> FixedPoint: ...
    @property
    def bits(self) -> int: ...
    @property
    def integer_bits(self) -> int: ...
    @property
    def fraction_bits(self) -> int: ...
    @property
    def sign(self) -> Literal["bitrand", "ldpfl"]: ...
    @property
    def infinities(self) -> Literal["refuse", "saturate"]: ...
    @property
    def step(self) -> float: ...
    @property
    def limit(self) -> float: ...
    def encode(
        self, x: ArrayLike, *, out: NDArray[Any] | None = None, threads: int | None = None
    ) -> NDArray[Any]: ...
    def decode(
        self,
        codes: ArrayLike,
        dtype: DTypeLike | None = None,
        *,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> NDArray[Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]: ...

@final
class Grid:
    def __new__(
        cls,
        points: int,
        *,
        low: float,
        high: float,
        rounding: Literal["dither", "nearest"] = "dither",
        clip: bool = True,
    ) -> Grid: ...
    @property
    def points(self) -> int: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def rounding(self) -> Literal["dither", "nearest"]: ...
    @property
    def clip(self) -> bool: ...
    def values(self) -> NDArray[np.float64]: ...
    def outside(self, x: ArrayLike) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]: ...

@final
class Bits:
    def __new__(
        cls,
        p: Sequence[Sequence[float]],
        q: Sequence[Sequence[float]],
        features: int,
        pattern: Sequence[int] | None = None,
    ) -> Bits: ...
    @property
    def bits(self) -> int: ...
    @property
    def features(self) -> int: ...
    @property
    def laws(self) -> int: ...
    @property
    def symmetric(self) -> bool: ...
    @property
    def epsilon(self) -> tuple[float, float, float]: ...
    @property
    def pattern(self) -> list[int] | None: ...
    def thresholds(self) -> list[list[tuple[int, int]]]: ...
    def randomize(
        self,
        x: ArrayLike,
        codec: FixedPoint | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    @staticmethod
    def from_integers(
        thresholds: Sequence[Sequence[tuple[int, int]]], features: int, pattern: Sequence[int] | None = None
    ) -> Bits: ...

@final
class Rotation:
    def __new__(
        cls, features: int, radius: float, kind: Literal["hadamard", "haar"], key: bytes
    ) -> Rotation: ...
    @property
    def features(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def dimensions(self) -> int: ...
    def rotate(
        self, x: ArrayLike, rotations: NDArray[np.uint32], threads: int | None = None
    ) -> NDArray[np.float32]: ...
    def letters(
        self,
        rotations: NDArray[np.uint32],
        reports: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> NDArray[np.float64]: ...
    def sums(
        self,
        rotations: NDArray[np.uint32],
        reports: NDArray[np.uint32],
        scale: float,
        threads: int | None = None,
    ) -> list[NDArray[np.float64]]: ...
    def undo_counts(
        self,
        rotations: NDArray[np.uint32],
        counts: NDArray[np.uint64],
        scale: float,
        threads: int | None = None,
    ) -> NDArray[np.float64]: ...
    def __getnewargs__(self) -> tuple[int, float, str, bytes]: ...

@final
class Select:
    def __new__(
        cls,
        counts: NDArray[np.uint32],
        weights: NDArray[np.uint64],
        nothing: int | None = None,
        signed: bool = False,
    ) -> Select: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def total(self) -> int: ...
    @property
    def nothing(self) -> int | None: ...
    @property
    def signed(self) -> bool: ...
    def runs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
    def weights(self) -> NDArray[np.uint64]: ...
    def randomize(
        self,
        x: ArrayLike,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def randomize_rotated(
        self,
        x: ArrayLike,
        rotation: Rotation,
        rotations: NDArray[np.uint32],
        key: bytes | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def __getnewargs__(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64], int | None, bool]: ...

@final
class Design:
    @staticmethod
    def translates(
        inputs: int, width: int, high: float, order: NDArray[np.uint32], mute: bool = False
    ) -> Design: ...
    @staticmethod
    def progressions(inputs: int, modulus: int, width: int, high: float, mute: bool = False) -> Design: ...
    @staticmethod
    def halves(inputs: int, bits: int, apart: int, high: float, mute: bool = False) -> Design: ...
    @staticmethod
    def from_integers(
        family: Literal["translates", "progressions", "halves"],
        inputs: int,
        cells: int,
        width: int,
        high: int,
        order: NDArray[np.uint32] | None = None,
        mute: bool = False,
    ) -> Design: ...
    @property
    def family(self) -> Literal["translates", "progressions", "halves"]: ...
    @property
    def inputs(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def high(self) -> int: ...
    @property
    def mute(self) -> bool: ...
    @property
    def order(self) -> NDArray[np.uint32] | None: ...
    def randomize(
        self,
        x: ArrayLike,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...

@final
class Subset:
    def __new__(cls, elements: int, size: int, high: float, mute: bool = False) -> Subset: ...
    @property
    def elements(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def high(self) -> int: ...
    @property
    def mute(self) -> bool: ...
    def randomize(
        self,
        x: ArrayLike,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    @staticmethod
    def from_integers(elements: int, size: int, high: int, mute: bool = False) -> Subset: ...

@final
class Unary:
    def __new__(cls, categories: int, p: float, q: float) -> Unary: ...
    @property
    def categories(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def epsilon(self) -> tuple[float, float, float]: ...
    @property
    def epsilon_arbitrary(self) -> float: ...
    def thresholds(self) -> tuple[int, int]: ...
    def randomize(
        self,
        x: ArrayLike,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    @staticmethod
    def from_integers(categories: int, p: int, q: int) -> Unary: ...

@final
class Window:
    def __new__(
        cls,
        cells: int,
        width: int,
        high: float,
        order: NDArray[np.uint16] | None = None,
        mute: bool = False,
    ) -> Window: ...
    @property
    def cells(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def high(self) -> int: ...
    @property
    def mute(self) -> bool: ...
    @property
    def order(self) -> NDArray[np.uint16] | None: ...
    def start(self, x: int) -> int: ...
    def probabilities(self) -> NDArray[np.float64]: ...
    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    @staticmethod
    def from_integers(
        cells: int, width: int, high: int, order: NDArray[np.uint16] | None = None, mute: bool = False
    ) -> Window: ...

@final
class Matrix:
    def __new__(cls, probabilities: NDArray[np.float64]) -> Matrix: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def constant_time(self) -> bool: ...
    def weights(self) -> list[list[int]]: ...
    def probabilities(self) -> NDArray[np.float64]: ...
    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    @staticmethod
    def from_weights(weights: Sequence[Sequence[int]]) -> Matrix: ...

@final
class Mixture:
    def __new__(cls, window: Window, matrix: Matrix) -> Mixture: ...
    @property
    def window(self) -> Window: ...
    @property
    def matrix(self) -> Matrix: ...
    @property
    def outputs(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    def randomize(
        self,
        x: ArrayLike,
        grids: tuple[Grid, Grid],
        letters: NDArray[np.float64] | None,
        keys: tuple[bytes | KeyedRandomness | None, bytes | KeyedRandomness | None],
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def __getnewargs__(self) -> tuple[Window, Matrix]: ...

@final
class Shift:
    def __new__(
        cls, inputs: int, outputs: int, weights: Sequence[int], offset: int = 0, mute: bool = False
    ) -> Shift: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def reach(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def mute(self) -> bool: ...
    def delta(self, epsilon: float) -> float: ...
    def weights(self) -> list[int]: ...
    def probabilities(self) -> NDArray[np.float64]: ...
    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def __getnewargs__(self) -> tuple[int, int, list[int], int, bool]: ...

@final
class KeyedRandomness:
    def __new__(
        cls, key: bytes, context: bytes, ids: NDArray[np.uint64] | NDArray[np.uint8], column: int = ...
    ) -> KeyedRandomness: ...
    def stage(self, stage: int) -> KeyedRandomness: ...
    def bound(self, x: ArrayLike, threads: int | None = None) -> KeyedRandomness: ...
    def taken(self, records: NDArray[np.int64], column: int) -> KeyedRandomness: ...
    def words(self, count: int, stream: int, threads: int | None = None) -> NDArray[np.uint64]: ...
    def __len__(self) -> int: ...

@final
class Cap:
    def __new__(
        cls,
        windows: Sequence[tuple[int, int]],
        subsets: Sequence[tuple[int, int]],
        hits: int,
        high: int,
        mute: bool = False,
    ) -> Cap: ...
    @property
    def windows(self) -> list[tuple[int, int]]: ...
    @property
    def subsets(self) -> list[tuple[int, int]]: ...
    @property
    def hits(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def share(self) -> tuple[int, int]: ...
    @property
    def values(self) -> int: ...
    @property
    def codes(self) -> int: ...
    @property
    def report_bits(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def mute(self) -> bool: ...
    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def __getnewargs__(
        self,
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int, int, bool]: ...

@final
class Cube:
    def __new__(cls, bits: int, near: int, far: int, high: int, mute: bool = False) -> Cube: ...
    @property
    def bits(self) -> int: ...
    @property
    def near(self) -> int: ...
    @property
    def far(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def mute(self) -> bool: ...
    def with_high(self, high: int, mute: bool = False) -> Cube: ...
    def sizes(self) -> tuple[int, int]: ...
    def edges(self) -> tuple[int, int]: ...
    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: tuple[float, float] | None,
        key: bytes | KeyedRandomness | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
        /,
    ) -> NDArray[Any]: ...
    def __getnewargs__(self) -> tuple[int, int, int, int, bool]: ...
