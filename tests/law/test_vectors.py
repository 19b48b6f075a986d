"""The reference cases 1 to 14 and 18 to 20 of vectors/vectors.json."""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp._core import FixedPoint
from bitldp.points import brr, width

ONE = 1 << 64


@pytest.fixture
def paper_frr(vectors):
    """f-RR with the paper's parameters, r=1000, l=10, epsilon=1."""
    given = vectors[1]["inputs"]
    with pytest.warns(bitldp.PrivacyClaimWarning, match=r"4311\.28"):
        return bitldp.FRR(given["r"], bits=given["l"], epsilon=given["eps_X"], calibration="paper")


def test_1_alpha(vectors, paper_frr):
    flip = paper_frr.probabilities()[0, 0, 1]
    assert flip / (1.0 - flip) == pytest.approx(vectors[1]["expected"], abs=vectors[1]["tolerance"])


def test_2_flip_probabilities(vectors, paper_frr):
    np.testing.assert_allclose(
        paper_frr.probabilities()[0, :, 1], vectors[2]["expected"], rtol=0, atol=vectors[2]["tolerance"]
    )
    assert paper_frr.channel.symmetric


def test_3_exact_epsilon(vectors, paper_frr):
    expected, rel = vectors[3]["expected"], vectors[3]["tolerance"]
    assert paper_frr.guarantee.bit == pytest.approx(expected["bit_max"], rel=rel)
    assert paper_frr.guarantee.feature == pytest.approx(expected["feature"], rel=rel)
    assert paper_frr.guarantee.record == pytest.approx(expected["record"], rel=rel)
    assert paper_frr.guarantee.claimed == 1.0
    assert not paper_frr.guarantee.holds


def test_4_exact_epsilon_at_a_second_point(vectors):
    given, expected, rel = vectors[4]["inputs"], vectors[4]["expected"], vectors[4]["tolerance"]
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.FRR(given["r"], bits=given["l"], epsilon=given["eps_X"], calibration="paper")
    assert mechanism.guarantee.feature == pytest.approx(expected["feature"], rel=rel)
    assert mechanism.guarantee.record == pytest.approx(expected["record"], rel=rel)


def test_5_calibrated(vectors):
    given, expected, tolerance = vectors[5]["inputs"], vectors[5]["expected"], vectors[5]["tolerance"]
    mechanism = bitldp.FRR(given["r"], bits=given["l"], epsilon=given["eps"])
    np.testing.assert_allclose(mechanism.probabilities()[0, :, 0], expected["p"], rtol=0, atol=tolerance)
    assert mechanism.guarantee.record == pytest.approx(expected["record_eps"], abs=tolerance)
    assert mechanism.guarantee.record <= given["eps"]


def test_6_expected_error_and_its_bound(vectors, paper_frr):
    expected, tolerance = vectors[6]["expected"], vectors[6]["tolerance"]
    assert paper_frr.error_bound() == pytest.approx(expected["bound"], abs=tolerance)
    assert paper_frr.expected_error() == pytest.approx(expected["exact_uniform_codes"], abs=tolerance)


def test_7_label_rr(vectors):
    given, expected, tolerance = vectors[7]["inputs"], vectors[7]["expected"], vectors[7]["tolerance"]
    beta = given["eps_Y"] - math.log(given["C"] - 1)
    assert beta == pytest.approx(expected["beta"], abs=tolerance)
    for mechanism in (
        bitldp.LabelRR(given["C"], epsilon=given["eps_Y"]),
        bitldp.LabelRR(given["C"], epsilon=given["eps_Y"], beta=beta),
        bitldp.GRR(given["C"], epsilon=given["eps_Y"]),
    ):
        p, q = mechanism.channel.high / ONE, mechanism.probabilities()[0, 1]
        assert p == pytest.approx(expected["p"], abs=tolerance)
        assert q == pytest.approx(expected["q_each"], abs=tolerance)
        assert mechanism.guarantee.record == pytest.approx(expected["exact_eps"], abs=tolerance)
        assert mechanism.guarantee.holds


def test_8_label_rr_far_below_its_bound(vectors):
    given = vectors[8]["inputs"]
    with pytest.warns(bitldp.PrivacyClaimWarning, match="LabelRR"):
        mechanism = bitldp.LabelRR(given["C"], epsilon=given["claimed_eps_Y"], beta=given["beta"])
    assert mechanism.guarantee.record == pytest.approx(vectors[8]["expected"], abs=vectors[8]["tolerance"])
    assert not mechanism.guarantee.holds


@pytest.mark.parametrize("number", [9, 10])
def test_9_10_encodings(vectors, number):
    given, expected = vectors[number]["inputs"], vectors[number]["expected"]
    bits = given.get("l", given["m"] + given.get("n", 0) + 1)
    codec = FixedPoint(bits, integer_bits=given["m"], sign="bitrand" if number == 9 else "ldpfl")
    codes = codec.encode(np.array(given["x"]))
    assert [format(code, f"0{bits}b") for code in codes.tolist()] == expected["bits"]
    decoded = codec.decode(codes, np.float64)
    assert decoded.tolist() == expected["decoded"]
    assert np.signbit(decoded).tolist() == np.signbit(expected["decoded"]).tolist()


def test_11_moue(vectors):
    given, expected, rel = vectors[11]["inputs"], vectors[11]["expected"], vectors[11]["tolerance"]
    mechanism = bitldp.MOUE(
        given["rl"] // 10, bits=10, epsilon=given["eps"], alpha=given["alpha"], calibration="paper"
    )
    p, q = mechanism.probabilities()[0, 0]
    assert p == pytest.approx(expected["p"], rel=rel)
    assert q == pytest.approx(expected["q"], rel=rel)
    assert mechanism.guarantee.record == pytest.approx(expected["record_eps"], rel=rel)
    assert mechanism.guarantee.holds


def test_12_moue_calibrated(vectors):
    given, expected, rel = vectors[12]["inputs"], vectors[12]["expected"], vectors[12]["tolerance"]
    mechanism = bitldp.MOUE(given["rl"] // 10, bits=10, epsilon=given["eps"], alpha=given["alpha"])
    q = mechanism.probabilities()[0, 0, 1]
    assert q == pytest.approx(expected["q"], rel=rel)
    assert math.log((1.0 - q) / (q * given["alpha"])) == pytest.approx(expected["delta"], rel=1e-7)
    assert mechanism.guarantee.record == pytest.approx(expected["record_eps"], rel=rel)
    assert mechanism.guarantee.record <= given["eps"]


def test_13_theorem_5_is_not_the_exact_epsilon(vectors):
    given, expected, rel = vectors[13]["inputs"], vectors[13]["expected"], vectors[13]["tolerance"]
    mechanism = bitldp.MOUE(
        given["rl"] // 10, bits=10, epsilon=given["eps"], alpha=given["alpha"], calibration="paper"
    )
    assert mechanism.paper_reported_epsilon() == pytest.approx(expected["corrected"], rel=rel)
    assert mechanism.guarantee.record == pytest.approx(expected["true"], rel=rel)


def test_14_uer_and_theorem_6(vectors):
    given, expected, rel = vectors[14]["inputs"], vectors[14]["expected"], vectors[14]["tolerance"]
    with pytest.warns(bitldp.PrivacyClaimWarning, match="UER"):
        mechanism = bitldp.UER(
            given["rl"] // 10, bits=10, epsilon=given["eps"], alpha=given["alpha"], calibration="paper"
        )
    law = mechanism.probabilities()[0]
    assert law[::2, 0] == pytest.approx(expected["p_even"], rel=rel)
    assert law[1::2, 0] == pytest.approx(expected["p_odd"], rel=rel)
    assert law[:, 1] == pytest.approx(expected["q"], rel=rel)
    even = np.log(law[0] / law[0, ::-1]).max(), np.log((1 - law[0]) / (1 - law[0, ::-1])).max()
    assert max(even) == pytest.approx(expected["eps_bit_even"], rel=rel)
    assert mechanism.guarantee.bit == pytest.approx(expected["eps_bit_odd"], rel=rel)
    assert mechanism.guarantee.record == pytest.approx(expected["record_eps"], rel=rel)
    assert mechanism.paper_reported_epsilon() == pytest.approx(expected["thm6_signed"], rel=rel)


def _printed_width(count: int, epsilon: float) -> int:
    """Algorithm 3 as the paper prints it."""
    h = math.exp(epsilon)
    m1 = math.floor((math.sqrt(count**2 * h + (1 - h) ** 2 / 4) - (count - h / 2 + 0.5)) / (h - 1))
    if epsilon >= 1:
        return m1
    if count % 2 == 0:
        i = math.floor(count / (math.sqrt(h) + 1) + 1)
    else:
        i = math.floor((math.sqrt(h * (count**2 - 1) + 1) - count) / (h - 1) + 1)
    return min(m1, i if i % 2 else i + 1)


def test_18_widths(vectors):
    cases, expected = vectors[18]["inputs"]["cases"], vectors[18]["expected"]
    widths = []
    for count, epsilon in cases:
        losses = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(np.float64)
        widths.append(width.paper_width(np.sort(losses, axis=1), epsilon))
        assert bitldp.BRR(count, epsilon=epsilon).m == widths[-1]
    assert widths == expected["alg2"] == expected["alg3_corrected"]
    assert [_printed_width(*case) for case in cases] == expected["alg3_printed"]


def test_19_global_error_and_the_optimum(vectors):
    given, expected, tolerance = vectors[19]["inputs"], vectors[19]["expected"], vectors[19]["tolerance"]
    count, epsilon = given["N"], given["eps"]
    grr, paper, best = (bitldp.BRR(count, epsilon=epsilon, m=m) for m in (1, "paper", "best"))
    assert (paper.m, best.m) == (7, 8)
    assert grr.expected_error() == pytest.approx(expected["Qg_m1_GRR"], abs=tolerance)
    assert paper.expected_error() == pytest.approx(expected["Qg_m7_alg2"], abs=tolerance)
    assert best.expected_error() == pytest.approx(expected["Qg_m8_best"], abs=tolerance)

    # the linear program: P[k, y] >= 0 and c[y] <= P[k, y] <= e^eps c[y], rows sum to 1
    optimize = pytest.importorskip("scipy.optimize")
    sparse = pytest.importorskip("scipy.sparse")
    cells = count * count
    losses = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    each = sparse.identity(cells)
    floor = sparse.kron(np.ones((count, 1)), sparse.identity(count))
    rows = sparse.hstack(
        [sparse.kron(sparse.identity(count), np.ones((1, count))), sparse.csr_array((count, count))]
    )
    limits = sparse.vstack([sparse.hstack([-each, floor]), sparse.hstack([each, -math.exp(epsilon) * floor])])
    found = optimize.linprog(
        np.append(losses.ravel() / count, np.zeros(count)),
        A_ub=limits,
        b_ub=np.zeros(2 * cells),
        A_eq=rows,
        b_eq=np.ones(count),
    )
    assert found.fun == pytest.approx(expected["LP_optimum"], abs=tolerance)
    assert found.fun < best.expected_error() < 1.3 * found.fun


def test_20_limit_of_the_ratio(vectors):
    expected, tolerance = vectors[20]["expected"], vectors[20]["tolerance"]
    for place, epsilon in enumerate(vectors[20]["inputs"]["eps"]):
        assert brr.limit_ratio(epsilon) == pytest.approx(expected["corrected"][place], abs=tolerance)
        assert brr.printed_limit_ratio(epsilon) == pytest.approx(
            expected["printed_wrong"][place], abs=tolerance
        )
        many = 10_000
        ratio = (
            bitldp.BRR(many, epsilon=epsilon).expected_error()
            / bitldp.BRR(many, epsilon=epsilon, m=1).expected_error()
        )
        assert ratio == pytest.approx(brr.limit_ratio(epsilon), abs=5e-4)
        assert abs(ratio - brr.printed_limit_ratio(epsilon)) > 5e-3
