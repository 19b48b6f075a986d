"""The size of a report, and its variance over all inputs: against `randomize` and `variance`."""

from __future__ import annotations

import bitldp
import numpy as np
import pytest
from support.cases import CASES

# A label is released beside the packed words of its features, not packed itself.
PACKED = [case for case in CASES if "packed" in case.outputs and case.name != "BitRand"]


@pytest.mark.parametrize("case", PACKED, ids=lambda case: case.name)
def test_the_size_of_a_report_is_that_of_its_packed_form(case):
    mechanism = case.make()
    # Eight records fill whole bytes, whatever their bits.
    reports = mechanism.randomize(*case.inputs(np.random.default_rng(1), 8), rng=1, output="packed")
    assert reports.nbytes == mechanism.report_bits


@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
@pytest.mark.parametrize(
    "mechanism",
    [
        lambda: bitldp.FRR(3, bits=8, integer_bits=0, epsilon=4.0),
        lambda: bitldp.MOUE(2, bits=9, integer_bits=3, epsilon=9.0),
        lambda: bitldp.MOUE(2, bits=7, integer_bits=3, epsilon=9.0, alpha=0.2, calibration="paper"),
        lambda: bitldp.UER(3, bits=9, integer_bits=3, epsilon=9.0, calibration="paper"),
    ],
)
def test_the_worst_and_the_mean_over_all_code_words(mechanism):
    mechanism = mechanism()
    words = np.arange(1 << mechanism.bits)[:, None].repeat(mechanism.features, axis=1)
    variances = mechanism.variance(mechanism.decode(words, dtype=np.float64))
    negative_zero = mechanism.variance(np.full((1, mechanism.features), -mechanism.codec.step / 2))
    zero = mechanism.variance(np.zeros((1, mechanism.features)))
    # "-0" decodes to a number that is encoded as 0.
    mean = (variances.sum(axis=0) - zero + negative_zero) / len(words)
    assert mechanism.mean_variance() == pytest.approx(mean.mean(), rel=1e-12)
    assert mechanism.worst_variance() == pytest.approx(max(variances.max(), negative_zero.max()), rel=1e-12)


def test_long_words_are_refused_where_all_would_have_to_be_tried():
    # A one is reported more surely than a zero: the variance may be largest anywhere.
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.UER(1, bits=24, integer_bits=3, epsilon=90.0, alpha=0.01, calibration="paper")
    with pytest.raises(ValueError, match="up to 21 bits only"):
        mechanism.worst_variance()
    assert mechanism.mean_variance() > 0.0
    assert bitldp.FRR(1, bits=32, integer_bits=3, epsilon=90.0).worst_variance() > 0.0


@pytest.mark.parametrize("mechanism", [bitldp.GRR(7, epsilon=1.0), bitldp.OUE(7, epsilon=1.0)])
def test_the_worst_and_the_mean_over_categories(mechanism):
    variances = mechanism.variance(np.arange(7))
    assert mechanism.worst_variance() == pytest.approx(variances.max(), rel=1e-14)
    assert mechanism.mean_variance() == pytest.approx(variances.mean(), rel=1e-14)


def test_no_variance_without_an_unbiased_decode():
    for mechanism in (bitldp.GRR(7, epsilon=0.0), bitldp.BRR(40, epsilon=1.0), bitldp.FRR(1, epsilon=0.0)):
        for method in (mechanism.worst_variance, mechanism.mean_variance):
            with pytest.raises(ValueError, match="no unbiased decode exists"):
                method()
