"""Mechanisms with a planted fault each: what an audit must find.

They keep the parameters, the law and the guarantee of the mechanism that they derive from; only what leaves
them is wrong, as it would be in a faulty implementation.
"""

from __future__ import annotations

import bitldp
import numpy as np
from bitldp._core import Bits, Unary, Window
from bitldp.release.window import high_share

ONE = 2.0**64


def spell(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return code words as 0/1 bytes, most significant first."""
    spelt = codes[..., None].astype(np.int64) >> np.arange(bits - 1, -1, -1) & 1
    return spelt.astype(np.uint8).reshape(len(codes), -1)


def key(rng: np.random.Generator | None) -> bytes | None:
    """Return the key of a call of a channel."""
    return None if rng is None else rng.bytes(32)


class LastBitUnprotected(bitldp.FRR):
    """The loop over the bits of a code word ends one early: the last leaves as it is."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options | {"output": "codes"})
        codes = codes & ~np.array(1, codes.dtype) | self.codec.encode(x) & 1
        return spell(codes, self.bits) if options.get("output") == "bits" else codes


class LastCategoryUnprotected(bitldp.OUE):
    """The same over the bits of a one-hot vector."""

    def randomize(self, x, **options):
        bits = super().randomize(x, **options)
        bits[:, -1] = np.asarray(x) == self.categories - 1
        return bits


class SwappedOUE(bitldp.OUE):
    """p and q have changed places."""

    def randomize(self, x, *, rng=None, output="bits"):
        p, q = self.probabilities()
        return Unary(self.categories, q, p).randomize(x, key(rng), output, None, None, 0)


class SwappedMOUE(bitldp.MOUE):
    """p and q have changed places."""

    def randomize(self, x, *, rng=None, output="codes"):
        p, q = np.moveaxis(self.probabilities(), 2, 0)
        channel = Bits(q.tolist(), p.tolist(), self.features)
        return channel.randomize(x, self.codec, key(rng), output, None, None, 0)


class WindowDouble(bitldp.BRR):
    """Samples from another window than the guarantee's."""

    def window(self):
        raise AssertionError("a subclass says which")

    def randomize(self, x, *, rng=None, output="codes"):
        return self.window().randomize(x, None, None, key(rng), output, None, None, 0)


class WindowTooWide(WindowDouble):
    """The window is one cell too wide, at the same weights of a cell inside and outside."""

    def window(self):
        width = self.channel.width + 1
        return Window(self.channel.cells, width, high_share(self.channel.cells, width, self.epsilon))


class WindowTooHeavy(WindowDouble):
    """The share of a window that is one cell too wide lies on the right one: each cell is too likely."""

    def window(self):
        cells, width = self.channel.cells, self.channel.width
        return Window(cells, width, high_share(cells, width + 1, self.epsilon))


class SwappedGRR(bitldp.GRR):
    """The true category is reported with probability 1 - p."""

    def randomize(self, x, *, rng=None, output="codes"):
        channel = Window(self.categories, 1, 1.0 - self.channel.high / ONE)
        return channel.randomize(x, None, None, key(rng), output, None, None, 0)


class Stale:
    """Every call uses the same key; `rng` is ignored, as by a module that draws its key when imported."""

    def randomize(self, *data, rng=None, **options):
        return super().randomize(*data, rng=20261121, **options)


class StaleFRR(Stale, bitldp.FRR):
    pass


class StaleOUE(Stale, bitldp.OUE):
    pass


class StaleBRR(Stale, bitldp.BRR):
    pass


class StaleBitRand(Stale, bitldp.BitRand):
    pass


class ByteThresholds(bitldp.WarnerRR):
    """Random bytes are compared with p, so that p is rounded up to a multiple of 1/256."""

    def randomize(self, x, *, rng=None, output="codes"):
        rng = np.random.default_rng() if rng is None else rng
        truth = rng.integers(0, 256, np.shape(x)) < self.channel.high / ONE * 256.0
        return np.where(truth, x, 1 - np.asarray(x)).astype(np.uint8)


class CoarseThresholds(bitldp.OUE):
    """p and q are rounded to multiples of 1/32."""

    def randomize(self, x, *, rng=None, output="bits"):
        p, q = np.round(self.probabilities() * 32.0) / 32.0
        return Unary(self.categories, p, q).randomize(x, key(rng), output, None, None, 0)


class SilentAtNoRange(bitldp.BRR):
    """The noise is scaled by the range of the data: without a range, there is no noise."""

    def randomize(self, x, **options):
        if np.ptp(x) == 0:
            low, high = self.interval
            return np.rint((np.asarray(x) - low) / (high - low) * (len(self.points) - 1)).astype(np.uint8)
        return super().randomize(x, **options)


class SilentAtZero(bitldp.FRR):
    """A record of zeros, an update that changes nothing, has sensitivity 0 and leaves as it is."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options | {"output": "codes"})
        still = ~np.asarray(x).any(axis=1)
        codes[still] = self.codec.encode(np.asarray(x)[still])
        return spell(codes, self.bits) if options.get("output") == "bits" else codes


class OncePerCall(bitldp.GRR):
    """The coins are tossed once a call and serve every record of it."""

    def randomize(self, x, **options):
        x = np.asarray(x)
        offset = int(super().randomize(np.zeros(1, np.uint8), **options)[0])
        return (x + offset) % self.categories
