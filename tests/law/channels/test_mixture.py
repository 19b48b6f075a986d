"""Mixtures: a window where a table answers 0, else the table's answer; and what is refused."""

import copy
import pickle

import numpy as np
import pytest
from bitldp import Grid, Matrix, Mixture, Window
from bitldp._core import CHUNK

KEYS = (bytes(range(32)), bytes(range(1, 33)))
CELLS = 9


def coin(share):
    rest = 1.0 - share
    return Matrix(np.array([[share, 0.7 * rest, 0.3 * rest], [share, 0.3 * rest, 0.7 * rest]]))


@pytest.fixture(scope="module")
def mixture():
    return Mixture(Window(CELLS, 4, 0.6), coin(0.4))


@pytest.fixture(scope="module")
def grids():
    return Grid(CELLS, low=-1.5, high=1.5), Grid(2, low=-1.0, high=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (7, 11), (CHUNK + 5,)])
def test_reports_are_the_windows_where_the_table_answers_0(mixture, grids, dtype, shape):
    x = np.random.default_rng(3).uniform(-1.2, 1.2, shape).astype(dtype)
    cells = mixture.window.randomize(x, grids[0], None, KEYS[0], "codes", None, None, 5)
    answers = mixture.matrix.randomize(x, grids[1], None, KEYS[1], "codes", None, None, 5)
    expected = np.where(answers == 0, cells, answers + (CELLS - 1))
    codes = mixture.randomize(x, grids, None, KEYS, "codes", None, None, 5)
    assert codes.shape == shape
    assert codes.dtype == np.uint8
    assert np.array_equal(codes, expected)
    letters = np.arange(mixture.outputs) / 3.0
    values = np.empty_like(x)
    assert mixture.randomize(x, grids, letters, KEYS, "values", values, 2, 5) is values
    assert np.array_equal(values, letters.astype(dtype)[expected])


def test_it_knows_its_parts_and_survives_pickling(mixture, grids):
    assert mixture.outputs == CELLS + 2
    assert mixture.epsilon == max(mixture.window.epsilon, mixture.matrix.epsilon)
    assert repr(mixture).startswith("<Mixture: 9 cells or 2 answers, exact epsilon 0.8")
    x = np.linspace(-1.0, 1.0, 50)
    reports = mixture.randomize(x, grids, None, KEYS, "codes", None, None, 0)
    for again in (pickle.loads(pickle.dumps(mixture)), copy.deepcopy(mixture)):
        assert np.array_equal(again.randomize(x, grids, None, KEYS, "codes", None, None, 0), reports)


def test_what_is_no_mixture_is_refused(mixture, grids):
    window = Window(CELLS, 4, 0.6)
    with pytest.raises(ValueError, match=r"^matrix: .* same probability for every input"):
        Mixture(window, Matrix(np.array([[0.5, 0.5], [0.4, 0.6]])))
    with pytest.raises(ValueError, match=r"^matrix: needs at least 2 columns"):
        Mixture(window, Matrix(np.ones((2, 1))))
    with pytest.raises(ValueError, match=r"^window: 65535 cells and 2 more"):
        Mixture(Window(65_535, 4, 0.6), coin(0.4))
    with pytest.raises(TypeError):
        Mixture(window, window)
    x = np.zeros(3)

    def call(x=x, grids=grids, letters=None, keys=KEYS, output="codes", out=None):
        return mixture.randomize(x, grids, letters, keys, output, out, None, 0)

    for kind, match, wrong in [
        (ValueError, r"^x: element 1 ", {"x": np.array([0.0, np.nan, 0.0])}),
        (TypeError, r"^x: dtype int64", {"x": np.zeros(3, np.int64)}),
        (ValueError, r"^grids\[0\]: 2 points", {"grids": grids[::-1]}),
        (ValueError, r"^grids\[1\]: 9 points", {"grids": (grids[0], grids[0])}),
        (ValueError, r"^letters: 3 letters", {"letters": np.zeros(3), "output": "values"}),
        (ValueError, r'^output: "values"', {"output": "values"}),
        (ValueError, r"^keys\[1\]: 3 bytes", {"keys": (KEYS[0], b"abc")}),
        (ValueError, r"^keys\[0\]: 3 bytes", {"keys": (b"abc", KEYS[1])}),
        (ValueError, r"^keys: two different ones", {"keys": (KEYS[0], KEYS[0])}),
        (ValueError, r"^out: ", {"out": np.zeros(4, np.uint8)}),
    ]:
        with pytest.raises(kind, match=match):
            call(**wrong)


def test_without_keys_reports_differ(mixture, grids):
    x = np.zeros(200)
    draws = [mixture.randomize(x, grids, None, (None, None), "codes", None, None, 0) for _ in range(2)]
    assert not np.array_equal(*draws)  # equal with a chance far below 2**-200
