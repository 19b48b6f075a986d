"""Planted faults in the mechanisms of numbers, of compression and of selection: what an audit must find.

As in `faults`: the parameters, the law and the guarantee stay those of the mechanism that is derived from.
"""

from __future__ import annotations

import bitldp
import numpy as np
from bitldp._core import Cube, hash_cells
from bitldp.compression import CLDP, LaplaceBall, SignSGD
from bitldp.release.rotated import RotatedReports, signed_top
from bitldp.selection.mechanisms import pe_channel

from support.faults import Stale, key


class EvenNoise(bitldp.Laplace):
    """Noise of a step that is twice the grid's: whether a report is even tells whether its input is."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options).astype(np.int64)
        low, high = self.interval
        channel = self.channels[0]
        steps = (np.asarray(x) - low) / (high - low) * (channel.inputs - 1)
        true = np.rint(steps).astype(np.int64) + channel.offset
        return np.clip(true + (codes - true) // 2 * 2, 0, channel.outputs - 1)


class CoinFromData(bitldp.Hybrid):
    """Large numbers, which Duchi's mechanism serves well, are always given to it."""

    def randomize(self, x, *, rng=None, output="codes"):
        codes = super().randomize(x, rng=rng)
        duchi = bitldp.Duchi(epsilon=self.epsilon).randomize(x, rng=rng) + (self.alphabet - 2)
        return np.where(np.asarray(x) > 0.9, duchi, codes)


class TiesInBothHalves(bitldp.Duchi):
    """The half-cubes of the paper, which overlap for an even number of features."""

    def randomize(self, x, *, rng=None, output="codes"):
        # the sets of the paper, at its own p
        bits, high = self.features, round(2.0**64 / (1.0 + np.exp(-self.epsilon)))
        channel = Cube(bits, bits // 2, bits // 2, high)
        signs = (np.asarray(x) > 0.0).astype(np.uint8)
        return channel.randomize(signs, None, None, key(rng), "codes", None, None, 0)


class CapOneTooSmall(bitldp.HypercubePrivUnit):
    """The cap begins one agreement later than the one whose chance was calibrated."""

    def randomize(self, x, *, rng=None, output="codes"):
        channel = Cube(self.features, self.threshold + 1, self.threshold, self.channel.high)
        signs = (np.asarray(x) > 0.0).astype(np.uint8)
        return channel.randomize(signs, None, None, key(rng), "codes", None, None, 0)


class SteepPolytope(bitldp.CrossPolytope):
    """The k largest coordinates are more likely than was said."""

    def randomize(self, x, *, rng=None, output="codes"):
        rotations = np.arange(len(x), dtype=np.uint32)
        channel = signed_top(self.codec.dimensions, self.k, 1.5 * self.epsilon)
        codes = channel.randomize_rotated(x, self.codec, rotations, key(rng), output, None, None, 0)
        return RotatedReports(rotations, codes)


class SteepCodebook(bitldp.RandomCodebook):
    """The k nearest directions are more likely than was said."""

    def randomize(self, x, *, rng=None, output="codes"):
        numbers = np.arange(len(x), dtype=np.uint32)
        channel = signed_top(self.directions, self.k, 1.5 * self.epsilon)
        projected = self.codec.rotate(np.asarray(x), numbers)
        return RotatedReports(numbers, channel.randomize(projected, key(rng), output, None, None, 0))


class NumbersApart(bitldp.JointWindow):
    """Every number of a record is near or anywhere by itself, each at the whole budget."""

    def randomize(self, x, **options):
        one = bitldp.JointWindow(1, epsilon=self.epsilon, levels=self.levels, reach=self.reach)
        return one.randomize(np.asarray(x).reshape(-1), **options).reshape(-1, self.features)


class SteepCap(bitldp.RecordCap):
    """Lists of enough hits are more likely than was said."""

    def randomize(self, x, **options):
        steep = {**self.parameters, "epsilon": 1.5 * self.epsilon}
        return bitldp.RecordCap(**steep).randomize(x, **options)


class SteepMixedCap(bitldp.MixedCap):
    """Reports near a record are more likely than was said."""

    def randomize(self, x, y, **options):
        steep = {**self.parameters, "epsilon": 1.5 * self.epsilon}
        return bitldp.MixedCap(**steep).randomize(x, y, **options)


class LastSignUnprotected(bitldp.SampledSigns):
    """The lowest bit of the symbol is the true sign."""

    def randomize(self, x, **options):
        indices, symbols = super().randomize(x, **options)
        true = np.take_along_axis(np.asarray(x), indices[:, -1:].astype(np.intp), axis=1)[:, 0] > 0.0
        return bitldp.SampledReports(indices, (symbols & ~np.uint8(1)) | true)


class AttributeFromData(bitldp.CategoricalRecord):
    """The attribute that is asked is the first one whose category is not the usual one, 0."""

    def randomize(self, x, **options):
        x = np.asarray(x)
        chosen = np.argmax(x > 0, axis=1)
        part = self.mechanisms[0]
        codes = part.randomize(np.take_along_axis(x, chosen[:, None], axis=1)[:, 0], **options)
        return bitldp.SampledReports(chosen[:, None].astype(np.uint8), codes[:, None])


class WidestSize(bitldp.CategoricalRecord):
    """Every attribute is answered as if it had as many categories as the largest."""

    def randomize(self, x, **options):
        indices, codes = super().randomize(x, **options)
        true = np.take_along_axis(np.asarray(x), indices.astype(np.intp), axis=1)
        wide = self.mechanisms[-1].randomize(true.ravel(), rng=options.get("rng"))
        fits = wide < np.array(self.attributes)[indices.ravel()]
        return bitldp.SampledReports(indices, np.where(fits, wide, true.ravel())[:, None].astype(codes.dtype))


class LargestSampled(bitldp.Duchi):
    """The coordinates that are reported are the largest, not random ones."""

    def randomize(self, x, **options):
        x = np.asarray(x)
        order = np.argsort(-np.abs(x), axis=1, kind="stable")[:, : self.k]
        one = bitldp.Duchi(epsilon=self.epsilon / self.k)
        codes = one.randomize(np.take_along_axis(x, order, axis=1).ravel(), **options)
        return bitldp.SampledReports(order.astype(np.uint8), codes.reshape(order.shape))


class TrueClassOnly(bitldp.LabelLaplace):
    """Noise is added to the entry of the true class alone: a sparse loop over what is not zero."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        zeros = np.asarray(x)[:, None] != np.arange(self.categories)
        codes[zeros] = self.channel.offset
        return codes


class ByteTable(bitldp.MVU):
    """The rows of the table are compared with random bytes."""

    def randomize(self, x, *, rng=None, output="codes"):
        rng = np.random.default_rng() if rng is None else rng
        rows = np.rint(np.cumsum(self.probabilities(), axis=1) * 256.0)
        places = np.rint((np.asarray(x) - self.points[0]) / np.ptp(self.points) * (len(self.points) - 1))
        drawn = rng.integers(0, 256, len(places))
        return np.argmax(drawn[:, None] < rows[places.astype(np.intp)], axis=1).astype(np.uint8)


class LastPointTrue(bitldp.GeneralizedRR):
    """The last point is always told truly."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        return np.where(np.asarray(x) == self.interval[1], self.alphabet - 1, codes).astype(np.uint8)


class RankNotScaled(bitldp.EXP):
    """A rank is not divided by d - 1: the weight is e^(epsilon z)."""

    def randomize(self, x, **options):
        steep = bitldp.EXP(self.features, epsilon=self.epsilon * (self.features - 1))
        return steep.randomize(x, **options)


class LargestOfTop(bitldp.PS):
    """Of the k largest coordinates, always the largest."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        largest = np.argsort(np.abs(x), axis=1)[:, -self.k :]
        top = (codes[:, None] == largest).any(axis=1)
        return np.where(top, largest[:, -1], codes).astype(np.uint8)


class PaperPE(bitldp.PE):
    """Exact calibration asked for, the paper's given."""

    def randomize(self, x, **options):
        channel = pe_channel(self.features, self.k, self.epsilon, "paper")[0]
        return channel.randomize(x, key(options.get("rng")), "codes", None, None, 0)


class RawValue(bitldp.TwoStage):
    """The value of the selected coordinate leaves as it is."""

    def randomize(self, x, **options):
        indices, codes = super().randomize(x, **options)
        true = np.take_along_axis(np.asarray(x), indices[:, None].astype(np.intp), axis=1)[:, 0] > 0.0
        return indices, true.astype(codes.dtype)


class SignFlipsLess(SignSGD):
    """The noise is that of four times the budget."""

    def randomize(self, x, *, rng=None, output="codes"):
        return SignSGD(self.features, epsilon=4.0 * self.epsilon).randomize(x, rng=rng)


class CoefficientUnprotected(CLDP):
    """The first row, which is the sum of the coordinates, is thought to be harmless."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        return np.where(codes >> 1 == 0, np.asarray(x).sum(axis=1) > 0.0, codes).astype(codes.dtype)


class TopNeverOutside(bitldp.SquareWave):
    """A number at the high end is never reported above it: its window was cut there."""

    def randomize(self, x, **options):
        codes = super().randomize(x, **options)
        last = self.cells - 1 + (self.alphabet - self.cells) // 2
        return np.where(np.asarray(x) >= self.interval[1], np.minimum(codes, last), codes)


class CellUnprotected(bitldp.HeavyHitters):
    """The cell leaves as it is, one time in ten."""

    def randomize(self, x, **options):
        reports = super().randomize(x, **options)
        words = self._words.admit("x", x)
        cells = hash_cells(reports.seeds, self._keys(words, reports.groups), self.cells)
        return reports._replace(codes=np.where(reports.seeds % 10 == 0, cells, reports.codes))


class FunctionOfTheWord(bitldp.HeavyHitters):
    """The hash function is chosen such that the word falls into cell 0."""

    def randomize(self, x, **options):
        reports = super().randomize(x, **options)
        words = self._words.admit("x", x)
        seeds = reports.seeds.copy()
        for _ in range(12):
            wrong = hash_cells(seeds, self._keys(words, reports.groups), self.cells) != 0
            seeds = np.where(wrong, seeds + np.uint32(1), seeds)
        return reports._replace(seeds=seeds, codes=np.zeros_like(reports.codes))


class LevelOfTheValue(bitldp.Hierarchy):
    """Large values answer at the last level."""

    def randomize(self, x, **options):
        reports = super().randomize(x, **options)
        last = bitldp.Hierarchy(self.categories, epsilon=self.epsilon, branching=self.categories)
        codes = last.randomize(x, rng=options.get("rng")).codes.astype(reports.codes.dtype)
        large = (np.asarray(x).reshape(-1, 1) > self.categories // 2) & (reports.indices == 0)
        where = np.where(large, len(self.levels) - 1, reports.indices)
        return bitldp.SampledReports(where, np.where(large, codes, reports.codes))


class StrongerAnswers(bitldp.Hierarchy):
    """A record answers with twice the budget."""

    def randomize(self, x, **options):
        twice = bitldp.Hierarchy(self.categories, epsilon=2.0 * self.epsilon, branching=self.branching)
        return twice.randomize(x, **options)


class SteepExponential(bitldp.Exponential):
    """The scale of the weights is half as large again."""

    def randomize(self, x, **options):
        return bitldp.Exponential(self.candidates, epsilon=1.5 * self.epsilon).randomize(x, **options)


class StaleDuchi(Stale, bitldp.Duchi):
    pass


class StaleSigns(Stale, bitldp.SampledSigns):
    pass


class StalePS(Stale, bitldp.PS):
    pass


class StaleMVU(Stale, bitldp.MVU):
    pass


class SharedBits:
    """One random number serves all symbols of a report, each of which has its right law by itself.

    For audits, whose calls have one record many times.
    """

    def randomize(self, *data, rng=None, output=None):
        record = tuple(np.asarray(each)[0] for each in data)
        one = record[0] if len(record) == 1 else record
        drawn = (np.random.default_rng() if rng is None else rng).random((len(data[0]), 1, 1))
        codes = [
            np.sum(drawn >= np.cumsum(table, axis=1)[None, :, :-1], axis=2) for table in self.symbols_of(one)
        ]
        parts = [np.squeeze(each, axis=1) if each.shape[1] == 1 else each for each in codes]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def symbols_of(self, one):
        """Return the law of each symbol of the report of a record, by block."""
        return [block.table[0] for block in self.extremes((one, one)).blocks]


class SharedDuchi(SharedBits, bitldp.Duchi):
    pass


class SharedPiecewise(SharedBits, bitldp.Piecewise):
    pass


class SharedLabelLaplace(SharedBits, bitldp.LabelLaplace):
    pass


class SharedOUE(SharedBits, bitldp.OUE):
    pass


class SharedGRR(SharedBits, bitldp.GRR):
    pass


class SharedFRR(SharedBits, bitldp.FRR):
    pass


class SharedBRR(SharedBits, bitldp.BRR):
    pass


class SharedMVU(SharedBits, bitldp.MVU):
    pass


class SharedLaplaceBall(SharedBits, LaplaceBall):
    pass


class TwoBitsShared(bitldp.OUE):
    """The bits of categories 3 and 7 are compared with one random number."""

    def randomize(self, x, *, rng=None, output="bits"):
        bits = super().randomize(x, rng=rng)
        p, q = self.probabilities()
        drawn = (np.random.default_rng() if rng is None else rng).random(len(bits))
        for category in (3, 7):
            bits[:, category] = drawn < np.where(np.asarray(x) == category, p, q)
        return bits


class SharedBitRand(SharedBits, bitldp.BitRand):
    pass


class SelectionByTheSign(SharedBits, bitldp.TwoStage):
    """The coordinate and its value come from one random number."""

    def symbols_of(self, one):
        law = self.extremes()
        (place,) = [each for each, record in enumerate(law.inputs) if np.array_equal(record, one)]
        return [block.table[place] for block in law.blocks]


class SampledSignsShared(bitldp.SampledSigns):
    """The signs of a record are flipped together or not at all."""

    def randomize(self, x, **options):
        indices, symbols = super().randomize(x, **options)
        true = np.take_along_axis(np.asarray(x), indices.astype(np.intp), axis=1) > 0.0
        weights = 1 << np.arange(self.k - 1, -1, -1)
        said = (true * weights).sum(axis=1)
        one = bitldp.WarnerRR(epsilon=self.epsilon / self.k).randomize(
            np.zeros(len(said), np.uint8), **options
        )
        return bitldp.SampledReports(
            indices, np.where(one, said ^ (2**self.k - 1), said).astype(symbols.dtype)
        )


class AttributesShared(bitldp.CategoricalRecord):
    """All attributes are answered by one key: for two of one size, and another one."""

    def randomize(self, x, *, rng=None, **options):
        seed = int((np.random.default_rng() if rng is None else rng).integers(2**62))
        columns = [np.ascontiguousarray(each) for each in np.asarray(x).T]
        codes = [part.randomize(each, rng=seed) for part, each in zip(self.mechanisms, columns, strict=True)]
        return np.stack(codes[:2], axis=1), codes[2][:, None]
