"""Secure sums from the outside: shares, totals, intervals, guarantees, refusals, terms."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numpy as np
import pytest
from bitldp import pack, unpack
from bitldp.channels.normal import continuous_sigma
from bitldp.sums import Count, Histogram, Number, SecureSum

KEY = bytes(range(32))
GOLDEN = ["bddb3aba7673e206", "2a904a47ec73feff", "6c74ed03df3c3f60"]  # of the streams of the kinds
KINDS = {
    "count": (Count(), np.arange(40) % 4 == 0),
    "histogram": (Histogram(["tea", "coffee", "none"]), np.array(["tea", "none"] * 20)),
    "number": (Number((0.0, 10.0), 63), np.linspace(0.0, 10.0, 40)),
}


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[SecureSum, Any]:
    kind, x = KINDS[request.param]
    return SecureSum(kind, epsilon=1.0, clients=40, floor=30), x


def test_total_says_what_the_records_are(case: tuple[SecureSum, Any]) -> None:
    secure, x = case
    expected = {
        "count": [10.0],
        "histogram": [20.0, 0.0, 20.0],
        "number": [5.0],
    }[secure.kind.name]
    estimate = secure.decode(secure.add(secure.share(x, rng=5)), survivors=40)
    value, stderr = np.atleast_1d(estimate.value), np.atleast_1d(estimate.stderr)
    assert (np.abs(value - expected) < 6.0 * stderr).all()
    assert estimate.n == 40


def test_shares_are_of_the_stated_form(case: tuple[SecureSum, Any]) -> None:
    secure, x = case
    many, one = secure.share(x), secure.share(x[0])
    assert many.shape == (40, secure.kind.coordinates)
    assert one.shape == (secure.kind.coordinates,)
    assert many.dtype == one.dtype == secure.dtype
    assert int(many.max()) < secure.modulus == 1 << secure.bits
    packed = pack(many.ravel(), secure.bits)
    assert (unpack(packed, secure.bits, many.size) == many.ravel()).all()


def test_totals_add_up_in_any_order(case: tuple[SecureSum, Any]) -> None:
    secure, x = case
    shares = secure.share(x, rng=1)
    whole = secure.add(shares)
    parts = secure.add(secure.add(shares[:13]), shares[13:20], *shares[20:])
    assert (whole == parts).all()


def test_a_total_that_wrapped_below_zero_is_decoded() -> None:
    secure = SecureSum(Count(), epsilon=0.2, clients=10)
    total = np.array([secure.modulus - 3], secure.dtype)
    assert secure.decode(total, 10).value[0] == -3.0
    assert secure.wrap_bound < 1e-9


def test_streams_are_golden() -> None:
    # What a seed gives, and a key, on every platform and instruction set.
    digests = []
    for kind, x in KINDS.values():
        secure = SecureSum(kind, epsilon=1.0, clients=40, floor=30)
        fresh = secure.share(x, rng=7)
        kept = secure.share_keyed(x, key=KEY, ids=np.arange(40), context=b"may")
        text = fresh.astype("<u4").tobytes() + kept.astype("<u4").tobytes()
        digests.append(hashlib.sha256(text).hexdigest()[:16])
    assert digests == GOLDEN


def test_keyed_shares_are_repeated_by_a_retry_alone(case: tuple[SecureSum, Any]) -> None:
    secure, x = case
    ids = np.arange(40)
    shares = secure.share_keyed(x, key=KEY, ids=ids, context=b"may")
    assert (shares == secure.share_keyed(x, key=KEY, ids=ids, context=b"may", threads=1)).all()
    # of each record by itself, in any batch
    assert (shares[[7, 3]] == secure.share_keyed(x[[7, 3]], key=KEY, ids=ids[[7, 3]], context=b"may")).all()
    assert (shares != secure.share_keyed(x, key=KEY, ids=ids, context=b"june")).any()


def test_keyed_noise_of_another_record_is_another() -> None:
    secure = SecureSum(Number((0.0, 1.0), 255), epsilon=0.5, clients=2)
    ids = np.arange(200)
    one = secure.share_keyed(np.zeros(200), key=KEY, ids=ids).astype(np.int64)
    other = secure.share_keyed(np.ones(200), key=KEY, ids=ids).astype(np.int64)
    apart = (other - one) % secure.modulus
    assert np.unique(apart).size > 100


def test_intervals_cover() -> None:
    # 2,000 sums a setting, seeded; alpha of each bound below 1e-3 where coverage is that of the exact law
    for n, epsilon, kind in ((2, 1.0, Count()), (10, 1.0, Count()), (300, 0.5, Count()), (40, 2.0, Count())):
        secure = SecureSum(kind, epsilon=epsilon, clients=n)
        x = np.arange(n) % 2
        shares = secure.share(np.tile(x, 2000), rng=n)
        totals = shares.reshape(2000, n, 1).sum(axis=1, dtype=np.uint64) % secure.modulus
        assert 0.94 <= _coverage(secure, totals.astype(secure.dtype), n, float(x.sum())) <= 0.97


def test_intervals_of_means_cover() -> None:
    for n in (2, 25):
        secure = SecureSum(Number((-1.0, 1.0), 63), epsilon=1.0, clients=n)
        x = np.linspace(-0.97, 0.83, n)
        shares = secure.share(np.tile(x, 2000), rng=n)
        totals = shares.reshape(2000, n, 1).sum(axis=1, dtype=np.uint64) % secure.modulus
        assert 0.94 <= _coverage(secure, totals.astype(secure.dtype), n, float(x.mean())) <= 0.97


def _coverage(secure: SecureSum, totals: np.ndarray, n: int, truth: float) -> float:
    first = secure.decode(totals[0], n)
    low, high = (np.atleast_1d(each)[0] for each in first.confidence_interval())
    value = float(np.atleast_1d(first.value)[0])
    values = np.array([np.atleast_1d(secure.decode(total, n).value)[0] for total in totals])
    return float(((values - (value - low) <= truth) & (truth <= values + (high - value))).mean())


def test_noise_is_a_third_of_the_gaussian() -> None:
    assert SecureSum(Count(), epsilon=1.0, clients=1000).overhead <= 0.33
    number = SecureSum(Number((0.0, 1.0), 1023), epsilon=1.0, clients=1000)
    assert number.overhead <= 0.34
    assert number.stderr() == pytest.approx(number.overhead * 1023 * continuous_sigma(1.0, 1e-6), rel=1e-9)


@pytest.mark.slow
def test_a_thousand_steps_of_a_million_clients() -> None:
    secure = SecureSum(Number((0.0, 1.0), 1023), epsilon=1.0, clients=10**6)
    exact = secure.guarantee.central(method="exact")
    assert exact.exact
    assert 0.99999 < exact.epsilon <= secure.evidence.certificate.epsilon <= 1.0
    assert 10**6 * secure.law.distance < 1e-9
    assert secure.overhead <= 0.34


def test_epsilon_of_every_number_of_survivors() -> None:
    # parts of the floor, and the central epsilon of a count; by a transform in doubles, once
    expected = {
        ("polya", 1.0): {300: 2.19, 500: 1.68, 700: 1.34, 900: 1.10, 1000: 1.0, 1430: 0.956},
        ("polya", 0.1): {300: 1.15, 500: 0.606, 700: 0.305, 900: 0.146, 1000: 0.1, 1430: 0.0941},
        ("skellam", 1.0): {300: 1.62, 500: 1.34, 700: 1.17, 900: 1.04, 1000: 1.0, 1430: 0.853},
    }
    for (noise, epsilon), row in expected.items():
        secure = SecureSum(Count(), epsilon=epsilon, clients=1500, floor=1000, noise=noise)
        for survivors, each in row.items():
            assert secure.guarantee.central(survivors).epsilon == pytest.approx(each, rel=0.01)


def test_epsilon_never_exceeds_what_was_asked(case: tuple[SecureSum, Any]) -> None:
    secure, _ = case
    for method in ("exact", "certificate"):
        central = secure.guarantee.central(method=method)
        assert 0.999 < central.epsilon <= 1.0
    assert secure.guarantee.central(29).epsilon > 1.0 > secure.guarantee.central(40).epsilon
    assert secure.guarantee.local.epsilon > 4.0
    assert "none worth the name" in str(secure.guarantee)


def test_colluders_count_as_dropped() -> None:
    secure = SecureSum(Count(), epsilon=1.0, clients=100, floor=60, colluding=10)
    alone = SecureSum(Count(), epsilon=1.0, clients=100, floor=60)
    assert secure.least_survivors == 70
    assert secure.guarantee.central(80).epsilon == alone.guarantee.central(70).epsilon
    with pytest.raises(ValueError, match=r"survivors: 69 are below the floor of 70"):
        secure.decode(np.zeros(1, secure.dtype), 69)
    assert secure.trust[2].startswith("at most 10 of the clients")


def test_terms_are_all_that_both_sides_agree_on(case: tuple[SecureSum, Any]) -> None:
    secure, _ = case
    terms = secure.terms()
    assert all(isinstance(each, (int, str)) for each in terms.values())
    assert (terms["bits"], terms["clients"], terms["noise"]) == (secure.bits, secure.clients, secure.law.name)
    again = SecureSum.from_terms(terms)
    assert again == secure
    assert again.digest == secure.digest
    for name, value in {"table": "0" * 64, "bits": secure.bits + 1, "floor": 29, "version": 2}.items():
        with pytest.raises(ValueError, match="terms"):
            SecureSum.from_terms({**terms, name: value})
    with pytest.raises(ValueError, match="lack floor"):
        SecureSum.from_terms({name: each for name, each in terms.items() if name != "floor"})


def test_sums_are_pickled_by_their_parameters(case: tuple[SecureSum, Any]) -> None:
    secure, x = case
    again = pickle.loads(pickle.dumps(secure))
    assert again == secure
    assert hash(again) == hash(secure)
    assert (again.share(x, rng=3) == secure.share(x, rng=3)).all()
    assert repr(again) == repr(secure)


def test_evidence_holds_a_certificate(case: tuple[SecureSum, Any]) -> None:
    secure, _ = case
    evidence = secure.evidence
    assert evidence.table == secure.law.table.digest == secure.terms()["table"]
    assert evidence.distance < 2.0**-52
    assert not evidence.certificate.exact
    assert evidence.certificate.epsilon <= 1.0


def test_thin_signs_are_close_to_skellam() -> None:
    for n, most in ((1000, 1.01), (100_000, 1.0005)):
        signs = SecureSum(Count(), epsilon=1.0, clients=n, noise="signs")
        skellam = SecureSum(Count(), epsilon=1.0, clients=n, noise="skellam")
        assert 1.0 - 1e-6 < signs.stderr() / skellam.stderr() < most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon: must be above zero"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": 21.0}, "epsilon: must be at most 20"),
        ({"clients": 0}, "clients"),
        ({"floor": 11}, "floor: must be between 1 and 10"),
        ({"colluding": 10}, "colluding"),
        ({"noise": "gauss"}, "noise: must be one of"),
        ({"noise": "signs"}, "noise: thinned signs"),
        ({"delta": 1e-19}, "delta: 1e-19 is less than"),
        ({"epsilon": 1e-5, "kind": Number((0, 1), 65_535)}, "epsilon: so small"),
        ({"clients": 1 << 24, "kind": Number((0, 1), 1023)}, "clients: their sum does not fit 32 bits"),
    ],
)
def test_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SecureSum(**{"kind": Count(), "epsilon": 1.0, "clients": 10, **arguments})


@pytest.mark.parametrize(
    ("kind", "x"),
    [
        (Count(), [0, 1, 773]),
        (Count(), [0.25]),
        (Histogram(3), [0, 773]),
        (Histogram(["a", "b"]), ["a", "secret"]),
        (Number((0.0, 1.0), clip=False), [0.5, 773.25]),
        (Number((0.0, 1.0)), [float("nan")]),
    ],
)
def test_records_are_refused_without_a_word_of_them(kind: Any, x: Any) -> None:
    secure = SecureSum(kind, epsilon=1.0, clients=10)
    for call in (
        lambda: secure.share(x),
        lambda: secure.share_keyed(x, key=KEY, ids=np.arange(len(x))),
    ):
        with pytest.raises((ValueError, TypeError)) as refused:
            call()
        assert not any(word in str(refused.value) for word in ("773", "secret", "0.25"))
        assert refused.value.__cause__ is None


def test_totals_are_refused() -> None:
    secure = SecureSum(Histogram(3), epsilon=1.0, clients=10)
    for wrong, message in (
        (np.zeros(2, np.uint8), "shape must be"),
        (np.zeros((2, 3), np.uint8), "one is needed"),
        (np.full(3, secure.modulus), "must be from 0"),
        (np.full(3, -1), "must be from 0"),
    ):
        with pytest.raises(ValueError, match=message):
            secure.decode(wrong, 10)
    with pytest.raises(TypeError, match="must be integers"):
        secure.decode(np.zeros(3), 10)
