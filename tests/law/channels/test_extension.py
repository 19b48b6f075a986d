"""What the extension module does at its edges, whatever mechanism calls it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bitldp import BRR, FRR, GRR, OUE, FixedPoint, Grid, Matrix, Piecewise, Unary, Window, unpack
from bitldp._core import Bits, KeyedRandomness, Rotation, Select, csv_rows, sliding_masses

KEY = bytes(32)


def test_letters_are_not_written_over() -> None:
    letters = np.arange(8.0)
    channel = Window(8, 1, 1.0)
    with pytest.raises(ValueError, match="out: an array that shares no memory with letters"):
        channel.randomize(np.arange(8)[::-1], None, letters, KEY, "values", letters, None, 0)
    assert letters.tolist() == list(range(8))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_negative_cells_are_refused_however_many_cells_there_are(dtype: type) -> None:
    channel = Window(2**32 - 1, 1, 1.0)
    with pytest.raises(ValueError, match="x: element 1 "):
        channel.randomize(np.array([0, -5], dtype), None, None, KEY, "codes", None, None, 0)


def test_a_pickled_matrix_has_the_same_integers() -> None:
    matrix = Matrix(np.array([[0.5, 0.5, 1e-15], [0.1, 0.2, 0.7]]))
    copy = pickle.loads(pickle.dumps(matrix))
    assert copy.weights() == matrix.weights()
    assert copy.epsilon == matrix.epsilon
    with pytest.raises(ValueError, match="weights: rows of equal length"):
        Matrix.from_weights([[1 << 64], [1 << 63, 1 << 63]])
    with pytest.raises(ValueError, match="weights: row 1 does not sum to 2"):
        Matrix.from_weights([[1 << 64, 0], [1 << 63, 0]])


def test_negative_numbers_name_their_argument() -> None:
    x = np.zeros((1, 2), np.float32)
    channel, codec = FRR(2, epsilon=1.0).channel, FixedPoint(10, integer_bits=5)
    for threads, first_chunk, name in [(-1, 0, "threads"), (0, 0, "threads"), (None, -1, "first_chunk")]:
        with pytest.raises(ValueError, match=f"{name}: "):
            channel.randomize(x, codec, KEY, "codes", None, threads, first_chunk)
    with pytest.raises(ValueError, match="x: "):
        Window(4, 1, 0.5).start(-1)
    with pytest.raises(ValueError, match="count: "):
        unpack(np.zeros(1, np.uint8), 3, -1)
    with pytest.raises(ValueError, match="categories: "):
        Unary(-3, 0.5, 0.2)


def test_arrays_that_lie_askew_are_copied() -> None:
    mechanism = FRR(4, epsilon=4.0)
    straight = np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)
    raw = np.zeros(straight.nbytes + 1, np.uint8)
    askew = raw[1:].view(np.float32).reshape(3, 4)
    askew[:] = straight
    assert not askew.flags.aligned
    assert np.array_equal(mechanism.randomize(askew, rng=5), mechanism.randomize(straight, rng=5))
    out = np.zeros(3 * 4 * 2 + 1, np.uint8)[1:].view(np.uint16).reshape(3, 4)
    with pytest.raises(ValueError, match="out: a C-contiguous, aligned array"):
        mechanism.randomize(straight, out=out)


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_equal(np.array([[0.5, -999.0]]), -999.0)
    for mechanism in (FRR(2, epsilon=1.0), Piecewise(epsilon=1.0, features=2, interval=(-1e3, 1e3))):
        with pytest.raises(TypeError, match="x: a masked array is not allowed"):
            mechanism.randomize(masked)
    for categorical in (GRR(4, epsilon=1.0), OUE(4, epsilon=1.0), BRR(4, epsilon=1.0)):
        with pytest.raises(TypeError, match="x: a masked array is not allowed"):
            categorical.randomize(np.ma.masked_equal(np.array([1, 2, 0]), 0))


def test_equal_grids_have_equal_hashes() -> None:
    assert Grid(3, low=-0.0, high=1.0) == Grid(3, low=0.0, high=1.0)
    assert len({Grid(3, low=-0.0, high=1.0), Grid(3, low=0.0, high=1.0)}) == 1


def threads_of_this_process() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Threads:"))


def test_threads_do_not_pile_up() -> None:
    """Pools of 2 to 11 threads would be 65; other tests of this process may have their own threads."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux to count threads")
    x = np.zeros(300_000, np.float32)
    mechanism = FRR(1, epsilon=1.0)
    before = threads_of_this_process()
    for threads in range(2, 12):
        mechanism.randomize(x, threads=threads)
    begun = threads_of_this_process() - before
    assert begun < 40, begun


def test_what_a_channel_was_made_of_is_asked_by_name() -> None:
    order = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]], np.uint16)
    np.testing.assert_array_equal(Window(3, 1, 0.5, order).order, order)
    assert Window(3, 1, 0.5).order is None
    assert Bits([[0.7], [0.6]], [[0.3], [0.2]], 3, [0, 1, 1]).pattern == [0, 1, 1]
    assert Bits([[0.7]], [[0.3]], 3).pattern is None
    counts, weights = Select(np.array([4, 2], np.uint32), np.array([1, 9], np.uint64)).runs()
    assert (counts.tolist(), weights.tolist()) == ([4, 2], [1, 9])


class Lying:
    """Columns whose number is not what it says."""

    def __init__(self, says: int, has: int) -> None:
        self.says, self.has = says, has

    def __len__(self) -> int:
        return self.says

    def __getitem__(self, place: int) -> np.ndarray:
        if place >= self.has:
            raise IndexError(place)
        return np.arange(3.0)


@pytest.mark.parametrize(("says", "has"), [(10**18, 1), (0, 2), (1, 3)])
def test_a_length_that_lies_is_refused(says: int, has: int) -> None:
    with pytest.raises(ValueError, match="whose length equals the number of its items"):
        csv_rows(Lying(says, has), ",")
    assert bytes(csv_rows(Lying(2, 2), ",")) == b"0,0\n1,1\n2,2\n"


def _repeated(value: np.generic, *shape: int) -> np.ndarray:
    """Return an array of more elements than any memory has, which lie in one place."""
    return np.broadcast_to(value, shape)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Matrix(_repeated(np.float64(0.5), 1 << 20, 1 << 30)),
        lambda: Select(_repeated(np.uint32(1), 1 << 50), _repeated(np.uint64(1), 1 << 50)),
        lambda: sliding_masses(_repeated(np.uint64(1), 1 << 20, 1 << 30), 5, 0.5),
        lambda: KeyedRandomness(KEY, b"", np.arange(3, dtype=np.uint64)).taken(
            _repeated(np.int64(1), 1 << 50), 0
        ),
        lambda: Rotation(1 << 19, 1.0, "hadamard", KEY).rotate(
            np.zeros((1, 1), np.float32), np.zeros(1 << 22, np.uint32)
        ),
        lambda: Rotation(1 << 19, 1.0, "hadamard", KEY).letters(*[np.zeros(1 << 22, np.uint32)] * 2, 1.0),
    ],
    ids=["Matrix", "Select", "sliding_masses", "taken", "rotate", "letters"],
)
def test_what_memory_does_not_hold_is_a_memory_error(ask: Callable[[], object]) -> None:
    with pytest.raises(MemoryError):
        ask()
