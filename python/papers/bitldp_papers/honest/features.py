"""Public features: functions of one record alone, and of a pool of public records."""

from __future__ import annotations

import numpy as np
from bitldp.base import checks
from numpy.typing import NDArray

__all__ = ["FEATURES", "Graph", "diffused", "edges", "featured", "pixels", "unit"]

FEATURES = ("edges", "pixels", "given")

_SIDE = 8  # of pooled pixels
_DIRECTIONS = 4
_BLOCK = 1 << 12  # images at once
_TINY = 1e-9
_FIRST = 20060701  # of the vector that eigenvectors are looked for from

Array = NDArray[np.float32]


def unit(x: Array) -> Array:
    """Return rows scaled to length 1; rows of zeros stay."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.maximum(lengths, _TINY), np.float32)


def pixels(images: Array) -> Array:
    """Return square roots of pixels pooled to 8 x 8, less their mean, of length 1.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 64) or (n, side * side) where that is less
    """
    side = images.shape[1]
    pool = _areas(min(_SIDE, side), side)
    pooled = np.sqrt(np.maximum(pool @ images @ pool.T, 0.0)).reshape(len(images), -1)
    return unit(pooled - pooled.mean(axis=1, keepdims=True))


def edges(images: Array) -> Array:
    """Return square roots of how much of an edge runs in each of four directions, by cell, of length 1.

    Slopes of neighbouring pixels are dealt to the two nearest directions, and summed over windows that
    overlap by half; each direction has its mean taken off. Source: histograms of oriented gradients (Dalal
    and Triggs, CVPR 2005), in place of the scattering features of Tramer and Boneh, "Differentially private
    learning needs better features", ICLR 2021.

    Parameters
    ----------
    images : ndarray of float32, shape (n, side, side)
        Pixels in [0, 1].

    Returns
    -------
    ndarray of float32, shape (n, 4 * cells**2)
        Cells are a fourth of the side, at least 4.
    """
    side = images.shape[1]
    cells = max(4, side // 4)
    window = _windows(cells, side)
    sums = np.empty((len(images), _DIRECTIONS, cells, cells), np.float32)
    for start in range(0, len(images), _BLOCK):
        part = images[start : start + _BLOCK]
        across, down = np.zeros_like(part), np.zeros_like(part)
        across[:, :, 1:-1] = part[:, :, 2:] - part[:, :, :-2]
        down[:, 1:-1] = part[:, 2:] - part[:, :-2]
        turn = np.mod(np.arctan2(down, across) / np.float32(np.pi) * _DIRECTIONS, _DIRECTIONS)
        steep = np.hypot(across, down)
        for direction in range(_DIRECTIONS):
            apart = np.abs(turn - direction)
            weights = np.maximum(0.0, 1.0 - np.minimum(apart, _DIRECTIONS - apart))
            sums[start : start + _BLOCK, direction] = window @ (steep * weights) @ window.T
    rooted = np.sqrt(np.maximum(sums, 0.0)).reshape(len(images), _DIRECTIONS, -1)
    return unit((rooted - rooted.mean(axis=2, keepdims=True)).reshape(len(images), -1))


def _areas(count: int, side: int) -> Array:
    """Return the shares of pixels in `count` parts of equal length, shape (count, side)."""
    ends = np.linspace(0.0, side, count + 1)
    columns = np.arange(side)
    shares = np.minimum(columns + 1, ends[1:, None]) - np.maximum(columns, ends[:-1, None])
    return np.asarray(np.maximum(shares, 0.0) * count / side, np.float32)


def _windows(count: int, side: int) -> Array:
    """Return triangular windows, each as wide as two parts, shape (count, side)."""
    centres = (np.arange(count) + 0.5) * side / count
    apart = np.abs(np.arange(side) + 0.5 - centres[:, None]) * count / side
    return np.asarray(np.maximum(0.0, 1.0 - apart), np.float32)


def featured(x: Array, kind: str, name: str) -> Array:
    """Return one of the kinds of features of records that are scaled to [-1, 1].

    Parameters
    ----------
    x : ndarray of float32, shape (n, width)
    kind : str
        One of `FEATURES`.
    name : str
        Of the data set, for the error.

    Returns
    -------
    ndarray of float32, shape (n, features)
        Rows of length 1.

    Raises
    ------
    ValueError
        For features of images of records that are not square images.
    """
    if kind == "given":
        return unit(x)
    side = round(x.shape[1] ** 0.5)
    if side * side != x.shape[1]:
        raise ValueError(
            f"features: {kind!r} is of square images, and {name} has {x.shape[1]} numbers a record; 'given' "
            "takes them as they are"
        )
    return (edges if kind == "edges" else pixels)(((x + 1.0) / 2.0).reshape(-1, side, side))


class Graph:
    """Coordinates of a record on the neighbours' graph of a pool of public records without labels.

    Each record of the pool is joined to its nearest others; the slowest modes of the walk along these edges
    are its coordinates. Any other record has the mean of those of its nearest in the pool. Records
    of one kind lie close together there even where they are far apart as they are: kinds are told apart by
    gaps between them that no label is needed to see.

    Parameters
    ----------
    pool : ndarray of float32, shape (n, features)
        Public records, as many as everybody may hold: clients and server need all of them.
    coordinates : int
        How many there are, at most n - 2.
    neighbours : int
        To how many nearest records each of the pool is joined, 2 or more, below n. Any other record has the
        mean of half as many.

    Attributes
    ----------
    decay : ndarray of float64, shape (coordinates,)
        Share of a mode that one step of the walk leaves, from the slowest on.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    With A the symmetric matrix of edges and D its degrees, the modes are the eigenvectors of D^-1 A, those of
    the normalised Laplacian over sqrt(D), each of mean square 1 over the pool. After t steps a mode is
    decay^t of itself (`diffused`): R. R. Coifman and S. Lafon, "Diffusion maps", Applied and Computational
    Harmonic Analysis 21, 2006. Neighbours come from scikit-learn, eigenvectors from SciPy (ARPACK).
    """

    def __init__(self, pool: Array, *, coordinates: int = 100, neighbours: int = 10) -> None:
        from scipy.sparse.csgraph import laplacian
        from scipy.sparse.linalg import LinearOperator, eigsh
        from sklearn.neighbors import NearestNeighbors

        count = len(pool)
        neighbours = checks.integer("neighbours", neighbours, 2)
        if count <= neighbours + 1:
            raise ValueError(f"pool: {count} records are too few; {neighbours + 2} or more are needed")
        size = checks.integer("coordinates", coordinates, 1, count - 2)
        self._nearest = NearestNeighbors(n_neighbors=neighbours).fit(pool)
        self._asked = neighbours // 2
        joined = self._nearest.kneighbors_graph(mode="connectivity")
        shifted, root = laplacian(joined.maximum(joined.T), normed=True, return_diag=True)
        still = root / np.linalg.norm(root)  # the mode of 1 that says nothing, of any number of parts

        def walk(vector: NDArray[np.float64]) -> NDArray[np.float64]:
            flat = vector.ravel()
            return np.asarray(flat - shifted @ flat - still * (still @ flat), np.float64)

        first = np.random.default_rng(_FIRST).normal(size=count)
        values, vectors = eigsh(LinearOperator((count, count), matvec=walk), k=size, which="LA", v0=first)
        order = np.argsort(-values)
        modes = vectors[:, order] / root[:, None]
        self._modes: NDArray[np.float32] = (modes / np.sqrt(np.mean(np.square(modes), axis=0))).astype(
            np.float32
        )
        self.decay: NDArray[np.float64] = np.clip(values[order], 0.0, 1.0)

    def __call__(self, x: Array) -> Array:
        """Return the coordinates of records, shape (n, coordinates)."""
        result = np.empty((len(x), self._modes.shape[1]), np.float32)
        for start in range(0, len(x), _BLOCK):
            nearest = self._nearest.kneighbors(x[start : start + _BLOCK], self._asked, return_distance=False)
            result[start : start + _BLOCK] = self._modes[nearest].mean(axis=1)
        return result


def diffused(coordinates: Array, decay: NDArray[np.float64], steps: float) -> Array:
    """Return coordinates after so many steps of the walk, of length 1: the more, the fewer modes are left."""
    return unit(coordinates * (decay**steps).astype(np.float32))
