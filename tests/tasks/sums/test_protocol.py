"""The machines of a secure sum: right sums whoever drops out, and nothing sent that depends on a record."""

from __future__ import annotations

import itertools
import math
import pickle
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="the extra sums is not installed")

from bitldp.sums.protocol import (
    Agreement,
    Stage,
    SumFailedError,
    SummingClient,
    SummingServer,
    SumRefusedError,
    graph,
    masks,
    shamir,
)
from bitldp.sums.protocol.client import Advert, commitment, session_of, survivors_text
from support.sums import Machines, PlainSum, public, signing_keys


@pytest.mark.parametrize("bits", [1, 8, 13, 32])
def test_the_sum_is_right_for_every_modulus(bits: int) -> None:
    machines = Machines(total=PlainSum(6, 4, bits=bits, coordinates=17))
    machines.run()
    machines.assert_right()
    assert machines.server.opened.members == tuple(range(6))


@pytest.mark.parametrize("stage", range(5))
def test_the_sum_is_right_whoever_drops_out_in_a_stage(stage: int) -> None:
    gone = (1, 4)
    machines = Machines(8, 5)
    machines.run(drop=lambda at, index: at == stage and index in gone)
    machines.assert_right()
    left = set(range(8)) - set(gone if stage <= Stage.MASK else ())
    assert set(machines.server.opened.members) == left


def test_one_more_dropout_than_the_agreement_allows_opens_nothing() -> None:
    for stage, least in ((Stage.ADVERTISE, 6), (Stage.SHARE, 5), (Stage.MASK, 5)):
        machines = Machines(8, 5)
        problem = f"stage {stage.name.lower()}: {least - 1} clients answered, {least} are needed"
        with pytest.raises(SumFailedError, match=problem):
            machines.run(drop=lambda at, index, stage=stage, least=least: at == stage and index < 9 - least)
        assert machines.server.opened is None


@pytest.mark.slow
def test_a_hundred_clients_of_a_hundred_thousand_numbers_take_seconds() -> None:
    """10 % drop out in each stage. One quiet core takes 4 s; the bytes are of who stays longest."""
    count, gone = 100_000, np.random.default_rng(3).permutation(100)
    left = np.cumsum([0, 10, 9, 8, 7, 7])
    drop = {int(index): stage for stage in range(5) for index in gone[left[stage] : left[stage + 1]]}
    machines = Machines(total=PlainSum(100, 50, bits=18, coordinates=count))
    values = machines.values()
    begun = time.process_time()
    machines.run(values=values, drop=lambda stage, index: drop.get(index, 5) <= stage)
    assert time.process_time() - begun < 60.0
    machines.assert_right(values)
    assert machines.server.opened.survivors == 73
    assert machines.server.answered["reveal"] == 59
    assert max(machines.carried.values()) <= 2.2 * count * 18 / 8


def test_rounds_follow_one_another_with_fresh_keys() -> None:
    machines = Machines()
    for number in (3, 4, 9):
        machines.run(number)
        machines.assert_right()
    adverts = [reply for stage, index, reply in machines.sent if stage == 0 and index == 2]
    assert len({reply[51:] for reply in adverts}) == 3


def test_a_sparse_graph_sums_as_well() -> None:
    machines = Machines(18, 12, degree=11)
    assert 0.0 < machines.agreement.failure <= 2.0**-40
    machines.run(drop=lambda stage, index: (stage, index) in ((1, 3), (2, 11), (4, 2)))
    machines.assert_right()
    assert machines.server.opened.survivors == 16
    sealed = [len(reply) for stage, _, reply in machines.sent if stage == Stage.SHARE]
    assert max(sealed) == 47 + 11 * 86


class Repeated:
    """Entropy that is the same for every run: never outside a test."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, count: int) -> bytes:
        return self.rng.bytes(count)


def captured(values: np.ndarray) -> dict[tuple[int, int], bytes]:
    """Return all that the clients send, by stage and index, all randomness as in every other call."""
    machines = Machines()
    machines.clients = {
        index: SummingClient(machines.agreement, key, entropy=Repeated(index))
        for index, key in enumerate(machines.keys)
    }
    server, sent = SummingServer(machines.agreement, 1), {}
    messages = server.invite(list(machines.clients))
    for stage in range(5):
        replies = {
            index: machines.clients[index].answer(data, lambda index=index: values[index])
            for index, data in messages.items()
            if (stage, index) != (2, 5)
        }
        sent |= {(stage, index): reply for index, reply in replies.items()}
        messages = server.proceed(replies)
    return sent


def test_nothing_that_a_client_sends_depends_on_its_record_but_the_masked_share() -> None:
    values = Machines().values()
    other = values.copy()
    other[2] = [65535, 0, 4711]
    first, second = captured(values), captured(other)
    assert first.keys() == second.keys()
    assert {where for where in first if first[where] != second[where]} == {(Stage.MASK, 2)}
    one, two = (masks.unpacked(each[Stage.MASK, 2][47:], 3, 16) for each in (first, second))
    np.testing.assert_array_equal((two - one) & 0xFFFF, (other[2] - values[2]).astype(np.uint16))


def test_a_masked_share_is_uniform_whatever_the_share() -> None:
    """10,000 words of 8 bits, fresh, for each of six; alpha 1e-12: chi-square of 255 degrees below 450."""
    machines = Machines(total=PlainSum(6, 4, bits=8, coordinates=10_000))
    machines.run(values=np.zeros((6, 10_000), np.uint64), until=3)
    for stage, _, reply in machines.sent:
        if stage == Stage.MASK:
            counts = np.bincount(np.frombuffer(reply[47:], np.uint8), minlength=256)
            assert float(((counts - 39.0625) ** 2).sum() / 39.0625) < 450.0


def test_a_machine_shows_no_secret_and_keeps_none_after_its_round() -> None:
    machines = Machines()
    machines.run(until=3)  # of the masks that it shares with others it needs the keys no more
    assert all(b'"mask": ""' in client.state for client in machines.clients.values())
    assert all(b'"seal": ""' in client.state for client in machines.clients.values())
    machines = Machines()
    machines.run()
    for client in machines.clients.values():
        assert repr(client) == f"SummingClient(index={client.index}, round=1, stage=4)"
        assert b'"seed": ""' in client.state
        assert b'"shares": {}' in client.state
    with pytest.raises(ValueError, match="state: is not the state of a client"):
        SummingClient(machines.agreement, machines.keys[0], state=b'{"number": 1, "seed": "5ec2e7"}')


def test_what_is_signed_or_hashed_names_all_that_it_is_bound_to() -> None:
    one, other = agreement(), agreement(floor=8)
    advert = Advert(*(bytes([each]) * 32 for each in range(4)))
    changed = [replace(advert, **{name: b"x" * 32}) for name in ("nonce", "seal", "mask", "commitment")]
    keys = [advert.text(one, 1, 0), advert.text(other, 1, 0), advert.text(one, 2, 0), advert.text(one, 1, 1)]
    assert len({*keys, *(each.text(one, 1, 0) for each in changed)}) == 8
    sessions = [session_of(one, 1, b"k"), session_of(other, 1, b"k"), session_of(one, 2, b"k")]
    assert len({*sessions, session_of(one, 1, b"l")}) == 4
    some, more = np.arange(10) < 7, np.arange(10) < 8
    lists = [survivors_text(b"s", *pair) for pair in ((more, some), (more, more), (some, some))]
    assert len({*lists, survivors_text(b"t", more, some)}) == 4
    seeds = [commitment(b"s", 1, b"seed"), commitment(b"t", 1, b"seed"), commitment(b"s", 2, b"seed")]
    assert len({*seeds, commitment(b"s", 1, b"more")}) == 4


def test_shares_of_a_liar_are_noticed_and_open_nothing() -> None:
    machines = Machines()
    values = machines.values()
    messages = machines.run(until=4)
    machines.clients[0]._round.shares = {index: bytes(66) for index in machines.clients[0]._round.shares}
    replies = machines.answers(4, messages, values, drop=lambda stage, index: index == 1)
    with pytest.raises(SumFailedError, match="client 1: the shares of its mask"):
        machines.server.proceed(replies)


# -- the agreement


def agreement(**options) -> Agreement:
    total = PlainSum(10, options.pop("floor", 7), colluding=options.pop("colluding", 0))
    return Agreement(total, public(signing_keys(10)), **options)


def test_an_agreement_pins_its_terms() -> None:
    digests = {
        agreement().digest,
        agreement(floor=8).digest,
        agreement(colluding=1).digest,
        agreement(threshold=8).digest,
        Agreement(PlainSum(10, 7, bits=17), public(signing_keys(10))).digest,
        Agreement(PlainSum(10, 7, coordinates=4), public(signing_keys(10))).digest,
        Agreement(PlainSum(10, 7), public(signing_keys(10))[::-1]).digest,
        Agreement(PlainSum(10, 7), public(signing_keys(11))[1:]).digest,
    }
    assert len(digests) == 8
    assert agreement() == agreement()
    assert agreement().digest == pickle.loads(pickle.dumps(agreement())).digest


def test_an_agreement_pins_its_graph() -> None:
    keys = public(signing_keys(18))
    one, other = (Agreement(PlainSum(18, 10), keys, degree=d, threshold=10) for d in (11, 12))
    assert one.digest != other.digest


def test_a_quorum_survives_however_low_the_floor() -> None:
    """Else two parts of the clients might sign two lists."""
    assert agreement(floor=1).least == agreement(floor=1).quorum == 6
    assert agreement(floor=1, threshold=8).least == 8  # and so many hold the shares of each secret
    sparse = Agreement(PlainSum(18, 1), public(signing_keys(18)), degree=11)
    assert sparse.needed < sparse.quorum == sparse.least == 10


def test_the_threshold_is_above_half_of_clients_and_colluders() -> None:
    assert [agreement(colluding=c).threshold for c in range(4)] == [6, 6, 7, 7]
    for threshold in (1, 5):
        with pytest.raises(ValueError, match="threshold: must be at least 6 for 10 clients of which 0"):
            agreement(threshold=threshold)
    assert agreement(colluding=2).least == 9
    with pytest.raises(ValueError, match="need 11 of 10"):
        agreement(colluding=4)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (public(signing_keys(9)), "keys: 9 are not the 10 clients of the sum"),
        (public(signing_keys(9)) * 2, "keys: each client needs its own key"),
        ([b"short"] * 10, "keys: number 0 must be 32 bytes"),
        (b"one", "keys: must be a sequence"),
    ],
)
def test_a_list_of_keys_that_does_not_fit_is_refused(keys, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        Agreement(PlainSum(10, 7), keys)


def test_a_key_that_is_not_in_the_list_cannot_take_part() -> None:
    with pytest.raises(ValueError, match="key: its public key is not in the list"):
        SummingClient(agreement(), signing_keys(11)[10])


def test_trust_is_a_list_of_four_sentences() -> None:
    lines = agreement(colluding=1).trust
    assert len(lines) == 4
    assert "At least 7 of the surviving clients add their noise; at most 1 of 10" in lines[0]
    assert "a server that lies can be all other clients" in lines[1]
    assert "the sum of 8 clients or more, or nothing." in lines[2]


# -- the graph


def test_the_complete_graph_cannot_be_cut_and_a_lower_threshold_can() -> None:
    for clients, colluding in itertools.product((5, 10, 40), (0, 1, 3)):
        least = (clients + colluding) // 2 + 1
        assert graph.failure_chance(clients, colluding, clients - 1, least) == 0.0
        low = (clients - colluding) // 2 - 1 + colluding
        assert graph.failure_chance(clients, colluding, clients - 1, low) == 1.0


def test_the_chance_of_a_cut_is_the_sum_of_its_terms() -> None:
    clients, colluding, degree, threshold = 12, 2, 6, 4
    total = Fraction(0)
    for part in range(1, 6):
        marked = part - 1 + colluding
        tail = sum(
            Fraction(math.comb(marked, hits) * math.comb(11 - marked, degree - hits), math.comb(11, degree))
            for hits in range(threshold, degree + 1)
        )
        total += math.comb(10, part) * tail**part
    found = graph.failure_chance(clients, colluding, degree, threshold)
    assert min(total, 1) <= found <= min(total, 1) * Fraction(1 + 1e-6)
    assert 0.0 < graph.failure_chance(40, 2, 20, 15) < graph.failure_chance(40, 2, 20, 14) < 1e-6


@pytest.mark.statistical
def test_parts_that_a_server_could_cut_off_are_as_rare_as_stated() -> None:
    """Of 1,000 graphs of 8 clients a share of at most 0.0353 has such a part; five sd are 0.03."""
    clients, degree, threshold = 8, 2, 2
    rng = np.random.default_rng(5)
    choice = np.array(
        [
            [graph.chosen(rng.bytes(32), index, clients, degree) for index in range(clients)]
            for _ in range(1000)
        ]
    )
    parts = [part for size in range(1, 5) for part in itertools.combinations(range(clients), size)]
    closed = [(choice[:, part][:, :, part].sum(axis=2) >= threshold).all(axis=1) for part in parts]
    share = float(np.any(closed, axis=0).mean())
    assert 0.01 < share < graph.failure_chance(clients, 0, degree, threshold) + 0.03


def test_a_part_without_edges_to_the_others_is_one_that_is_counted() -> None:
    """Of graphs of 5 clients that choose 2 each, less one client: a cut needs a closed part."""
    pairs = {each: [*itertools.combinations([*({*range(5)} - {each})], 2)] for each in range(5)}
    for chosen in itertools.islice(itertools.product(*pairs.values()), 0, None, 97):
        choice = np.zeros((5, 5), bool)
        for index, pair in enumerate(chosen):
            choice[index, list(pair)] = True
        for gone in (None, 0, 1, 2, 3, 4):
            active = [each for each in range(5) if each != gone]
            for size in range(1, len(active) // 2 + 1):
                for part in itertools.combinations(active, size):
                    rest = [each for each in active if each not in part]
                    edges = choice[np.ix_(part, rest)].any() or choice[np.ix_(rest, part)].any()
                    kept = choice[np.ix_(active, active)].sum(axis=1).min() >= 1
                    closed = choice[np.ix_(part, part)].sum(axis=1).min() >= 1
                    assert edges or not kept or closed


def test_a_degree_with_which_no_threshold_is_enough_is_refused() -> None:
    with pytest.raises(ValueError, match="degree: with 3 neighbours no threshold"):
        agreement(colluding=2, degree=3)


def test_neighbours_are_chosen_uniformly_and_never_oneself() -> None:
    """4,000 nonces, alpha 1e-6: each of 9 others is chosen 4,000 * 4/9 times, to within five sd."""
    counts = sum(graph.chosen(index.to_bytes(32, "big"), 3, 10, 4).astype(int) for index in range(4000))
    assert counts[3] == 0
    assert counts.sum() == 16_000
    others = np.delete(counts, 3)
    assert np.abs(others - 4000 * 4 / 9).max() < 5.0 * math.sqrt(4000 * 4 / 9 * 5 / 9)


# -- secret sharing and masks


def test_shares_of_the_threshold_give_the_secret_back_and_fewer_fit_every_secret() -> None:
    secret = bytes(range(32))
    points = [3, 4, 9, 20, 65536]
    shares = dict(zip(points, shamir.split(secret, points, 3, Repeated(1)), strict=True))
    for some in itertools.combinations(points, 3):
        assert shamir.join({point: shares[point] for point in some}) == secret
    two = {point: shares[point] for point in points[:2]}
    for other in (bytes(32), b"\xff" * 32):  # a third share, for any other secret
        value = {0: int.from_bytes(other, "big")} | {p: int.from_bytes(s, "big") for p, s in two.items()}
        at_nine = sum(
            y * math.prod((9 - x) * pow(each - x, -1, shamir.PRIME) for x in value if x != each)
            for each, y in value.items()
        )
        third = (at_nine % shamir.PRIME).to_bytes(33, "big")
        assert shamir.join(two | {9: third}) == other


def test_the_field_is_a_prime_one() -> None:
    odd, twos = shamir.PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53):  # Miller and Rabin
        powers = [pow(base, odd << step, shamir.PRIME) for step in range(twos)]
        assert powers[0] == 1 or shamir.PRIME - 1 in powers


@pytest.mark.parametrize(
    ("points", "threshold"), [([1, 1], 1), ([0, 1], 1), ([1, 2], 3), ([1, 2], 0), ([shamir.PRIME], 1)]
)
def test_shares_that_cannot_be_are_refused(points, threshold: int) -> None:
    with pytest.raises(ValueError, match=r"points|threshold"):
        shamir.split(bytes(32), points, threshold, Repeated(1))


def test_bytes_that_are_no_shares_are_refused() -> None:
    for share in (b"short", b"\xff" * 33):
        with pytest.raises(ValueError, match="not of this field"):
            shamir.join({1: share})
    with pytest.raises(ValueError, match="do not belong together"):
        shamir.join({1: (shamir.PRIME - 1).to_bytes(33, "big")})


@pytest.mark.parametrize("bits", [1, 7, 8, 16, 18, 32])
def test_words_are_packed_without_gaps(bits: int) -> None:
    words = masks.stream(bytes(32), 101, bits)
    data = masks.packed(words, bits)
    assert len(data) == masks.packed_size(101, bits) == (101 * bits + 7) // 8
    np.testing.assert_array_equal(masks.unpacked(data, 101, bits), words & words.dtype.type((1 << bits) - 1))
    with pytest.raises(ValueError, match="bytes are needed"):
        masks.unpacked(data + b"\0", 101, bits)
    if (101 * bits) % 8:
        with pytest.raises(ValueError, match="bits after the last"):
            masks.unpacked(data[:-1] + bytes([data[-1] ^ 0xFF]), 101, bits)


def test_the_stream_is_chacha20_of_the_whole_key() -> None:
    """RFC 8439, Appendix A.1, test vectors 1 and 3 (keys of zeros and of a one at the end)."""
    zeros = masks.stream(bytes(32), 64, 8).tobytes()
    assert zeros[:16].hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    seen = {masks.stream((1 << bit).to_bytes(32, "little"), 8, 64).tobytes() for bit in range(256)}
    assert len(seen) == 256


def test_machines_refuse_words_that_are_no_share() -> None:
    for wrong in (np.full(3, 1 << 16), np.array([-1, 5, 5]), np.zeros(4, int), np.zeros(3)):
        machines = Machines()
        messages = machines.run(until=2)
        with pytest.raises((TypeError, ValueError), match="share: must be"):
            machines.clients[0].answer(messages[0], lambda wrong=wrong: wrong)
        with pytest.raises(SumRefusedError):
            machines.clients[0].answer(messages[0], lambda: np.zeros(3, int))
