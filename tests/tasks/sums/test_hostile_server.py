"""A server that cheats: this package's clients refuse all of it, Flower's SecAgg+ mod little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="the extra sums is not installed")
pytest.importorskip("flwr", reason="the extra fl is not installed")

from bitldp.sums.protocol import Stage, SummingClient, SummingServer, SumRefusedError, masks
from bitldp.sums.protocol.client import ADVERT, SEALED, Advert, session_of
from bitldp.sums.protocol.messages import (
    body_of,
    flags,
    flags_size,
    members,
    message,
    read_flags,
    read_rows,
    rows,
)
from support.hostile_sums import ATTACKS, CLIENTS, FLOOR, VICTIM, Flowers, Ours
from support.linear import linear_complexity
from support.sums import Machines

HEAD = 47
"""Bytes of a message before its body."""

FAILS = set(ATTACKS) - {"second_unmasking"}
"""Attacks that Flower's mod goes along with: the suite can find something."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_our_clients_refuse(attack: str) -> None:
    assert getattr(Ours(), attack)() is False


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.slow
def test_flowers_mod_goes_along_with(attack: str) -> None:
    assert getattr(Flowers(), attack)() is (attack in FAILS)


@pytest.mark.slow
def test_low_bits_of_masks_follow_no_linear_rule() -> None:
    """Of 42,000 fair bits the linear complexity is 21,000 to within 40, but for a chance below 2**-75."""
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

    count, seeds = 42_000, [bytes([index]) * 31 + b"s" for index in range(3)]
    theirs = sum(pseudo_rand_gen(seed + b"more", 1 << 32, [(count,)])[0] for seed in seeds)
    ours = sum(masks.stream(masks.seed_key(seed, b"session", 0), count, 16) for seed in seeds)
    assert linear_complexity((theirs & 1).astype(np.uint8)) == 19_937
    assert abs(linear_complexity((ours & 1).astype(np.uint8)) - count // 2) <= 40


@pytest.mark.parametrize("wrong", [{0, 1, 2, 3, 4}, {1, 3, 4, 5}])
def test_survivors_are_members_and_the_client_is_one(wrong: set[int]) -> None:
    """Client 0 dropped out before the masks; the list names it, or leaves out the one that is asked."""
    target = Ours()
    target.machines.run(until=3, drop=lambda stage, index: stage == Stage.SHARE and index == 0)
    assert not target.refused(1, target.said(Stage.AGREE, flags(members({1, 2, 3, 4}, CLIENTS))))
    assert target.refused(VICTIM, target.said(Stage.AGREE, flags(members(wrong, CLIENTS))))


@pytest.mark.parametrize("wrong", [{0, 1, 2, 3, 4}, {1, 3, 4, 5}])
def test_members_have_keys_and_the_client_is_one(wrong: set[int]) -> None:
    """Client 0 has no keys; the list of those who go on names it, or leaves out the one that is asked."""
    target = Ours()
    messages = target.machines.run(until=2, drop=lambda stage, index: stage == 0 and index == 0)
    size = flags_size(CLIENTS)
    body = messages[VICTIM][HEAD:]
    assert body[:size] == flags(members({1, 2, 3, 4, 5}, CLIENTS))
    others = {
        index: envelope
        for index, envelope in read_rows(body[size:], SEALED, CLIENTS).items()
        if index in wrong
    }
    assert target.refused(
        VICTIM, target.said(Stage.MASK, flags(members(wrong, CLIENTS)) + rows(others.items()))
    )


def test_a_client_that_was_sent_fewer_keys_is_in_a_session_of_its_own() -> None:
    """The victim alone is not told of client 5; the shares that others sealed for all six do not fit."""
    target = Ours()
    clients, messages = target.machines.clients, target.machines.run(until=1)
    keys = read_rows(messages[VICTIM][HEAD:], ADVERT, CLIENTS)
    fewer = rows((index, key) for index, key in keys.items() if index != 5)
    messages[VICTIM] = target.said(Stage.SHARE, fewer)
    sent = {index: clients[index].answer(data)[HEAD:] for index, data in messages.items()}
    boxes = {index: read_rows(sent[index], SEALED, CLIENTS) for index in (0, 1, 3, 4)}
    envelopes = rows((index, each[VICTIM]) for index, each in boxes.items())
    body = flags(members({0, 1, VICTIM, 3, 4}, CLIENTS)) + envelopes
    agreement = target.machines.agreement
    for session in (session_of(agreement, 1, fewer), session_of(agreement, 1, rows(keys.items()))):
        data = message(Stage.MASK, reply=False, bound=session, number=1, body=body)
        state = clients[VICTIM].state
        assert target.refused(VICTIM, data)
        clients[VICTIM] = SummingClient(agreement, target.machines.keys[VICTIM], state=state)


def test_a_quorum_has_signed_the_same_members() -> None:
    """All are told the same survivors, and the victim alone that client 0 had dropped before the masks."""
    target = Ours()
    clients, messages = target.machines.clients, target.machines.run(until=2)
    size, rest = flags_size(CLIENTS), members({1, 2, 3, 4, 5}, CLIENTS)
    envelopes = read_rows(messages[VICTIM][HEAD + size :], SEALED, CLIENTS)
    del envelopes[0]
    messages[VICTIM] = target.said(Stage.MASK, flags(rest) + rows(envelopes.items()))
    said = target.said(Stage.AGREE, flags(rest))
    signed = {}
    for index, data in messages.items():
        clients[index].answer(data, lambda: np.zeros(3, int))
        if index:
            signed[index] = clients[index].answer(said)[HEAD:]
    del signed[VICTIM]
    quorum = target.said(Stage.REVEAL, rows(signed.items()))
    assert target.refused(VICTIM, quorum)
    assert not target.refused(1, quorum)


def test_keys_that_stand_twice_are_refused() -> None:
    """Client 0 works with the server, and gives the keys of client 1 for its own, well signed."""
    target = Ours()
    machines = target.machines
    keys = read_rows(machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    assert target.refused(5, target.said(Stage.SHARE, rows((i, k) for i, k in keys.items() if i != 5)))
    for name in ("seal", "mask"):
        target = Ours()
        machines = target.machines
        keys = read_rows(machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
        copied = replace(Advert.of(keys[0]), signature=b"", **{name: getattr(Advert.of(keys[1]), name)})
        keys[0] = bytes(copied) + machines.keys[0].sign(copied.text(machines.agreement, 1, 0))
        assert target.refused(VICTIM, target.said(Stage.SHARE, rows(keys.items())))


def test_a_round_begins_with_as_many_keys_as_must_survive() -> None:
    """All six must; five have keys, which the shares of secrets would do with."""
    target = Ours()
    target.machines = machines = Machines(CLIENTS, CLIENTS)
    keys = read_rows(machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    assert machines.agreement.needed == 4
    assert target.refused(VICTIM, target.said(Stage.SHARE, rows((i, k) for i, k in keys.items() if i != 5)))


def test_keys_of_an_older_round_are_refused() -> None:
    """The client's own keys are fresh; those of all others are what they signed in the round before."""
    target = Ours()
    older = read_rows(target.machines.run(1, until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    newer = read_rows(target.machines.run(2, until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    body = rows({**older, VICTIM: newer[VICTIM]}.items())
    data = message(Stage.SHARE, reply=False, bound=target.machines.agreement.digest, number=2, body=body)
    assert target.refused(VICTIM, data)


def test_keys_for_another_agreement_are_refused() -> None:
    """The same clients agree on a lower floor as well; in the same round they sign keys for both sums."""
    target, other = Ours(), Ours()
    other.machines = Machines(CLIENTS, FLOOR - 1)
    theirs = read_rows(other.machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    mine = read_rows(target.machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    assert target.refused(VICTIM, target.said(Stage.SHARE, rows({**theirs, VICTIM: mine[VICTIM]}.items())))


def test_a_client_signs_one_list_and_masks_one_share_a_round() -> None:
    """Asked again in the same session: for a share under the same masks, and for a shorter list."""
    target = Ours()
    data = target.machines.run(until=2)[VICTIM]
    assert not target.refused(VICTIM, data)
    assert target.refused(VICTIM, data)
    target = Ours()
    target.machines.run(until=3)
    every, fewer = ({*range(CLIENTS)}, {*range(CLIENTS)} - {5})
    assert not target.refused(VICTIM, target.said(Stage.AGREE, flags(members(every, CLIENTS))))
    assert target.refused(VICTIM, target.said(Stage.AGREE, flags(members(fewer, CLIENTS))))


def test_lists_have_one_spelling() -> None:
    """Rows that stand twice or descend, and bits beyond the last client."""
    some = rows([(0, b"ab"), (1, b"cd")])
    assert read_rows(some, 2, 2) == {0: b"ab", 1: b"cd"}
    for wrong in (some[6:] + some[:6], some[:6] * 2, some[:6] + rows([(2, b"cd")])):
        with pytest.raises(SumRefusedError, match="indices must ascend, and be of the list"):
            read_rows(wrong, 2, 2)
    with pytest.raises(SumRefusedError, match="clients that do not exist"):
        read_flags(bytes([0b1000001]), CLIENTS)


def test_a_message_has_one_head() -> None:
    """Another stage, direction, session or round than what is due is refused, each by its reason."""
    made = {"stage": Stage.AGREE, "reply": True, "bound": b"s" * 32, "number": 7}
    data = message(**made, body=b"what is signed")
    assert body_of(data, **made) == b"what is signed"
    for name, value, reason in (
        ("stage", Stage.REVEAL, "stage"),
        ("reply", False, "form"),
        ("bound", b"t" * 32, "agreement"),
        ("number", 8, "round"),
    ):
        with pytest.raises(SumRefusedError) as refused:
            body_of(data, **{**made, name: value})
        assert refused.value.reason == reason


def test_an_invitation_holds_a_number_and_nothing_else() -> None:
    target = Ours()
    (data,) = set(SummingServer(target.machines.agreement, 5).invite(range(CLIENTS)).values())
    assert target.refused(VICTIM, data + b"x")
    assert not target.refused(3, data)


def test_members_are_enough_and_each_has_sent_its_shares() -> None:
    for who in ({1, VICTIM, 3}, {1, VICTIM, 3, 4}):
        target = Ours()
        body = target.machines.run(until=2)[VICTIM][HEAD:]
        size = flags_size(CLIENTS)
        envelopes = read_rows(body[size:], SEALED, CLIENTS)
        sent = {index: envelope for index, envelope in envelopes.items() if index in who and index != 4}
        listed = flags(members(who, CLIENTS))
        assert target.refused(VICTIM, target.said(Stage.MASK, listed + rows(sent.items())))


def test_no_survivor_of_a_sparse_graph_has_too_few_neighbours() -> None:
    target = Ours()
    target.machines = machines = Machines(18, 10, degree=11)
    machines.run(until=3)
    choices = machines.server._view.choices
    others = [index for index in range(18) if index != VICTIM and choices[VICTIM][index]]
    for gone, refused in ((3, False), (5, True)):
        state = machines.clients[VICTIM].state
        active = members({*range(18)} - set(others[:gone]), 18)
        lacking = any(int((choices[each] & active).sum()) < 8 for each in np.flatnonzero(active))
        assert lacking >= refused
        assert target.refused(VICTIM, target.said(Stage.AGREE, flags(active))) == lacking
        machines.clients[VICTIM] = SummingClient(machines.agreement, machines.keys[VICTIM], state=state)


@pytest.mark.slow
def test_a_message_of_every_other_stage_is_refused() -> None:
    """Each stage's own message, sent when another is due."""
    kept = []
    for until in range(5):
        target = Ours()
        kept.append(target.machines.run(until=until)[VICTIM])
    for due in range(5):
        for stage, data in enumerate(kept):
            if stage not in (due, Stage.ADVERTISE):
                target = Ours()
                target.machines.run(until=due)
                assert target.refused(VICTIM, data), (due, stage)


@pytest.mark.parametrize("stage", [Stage.SHARE, Stage.MASK, Stage.AGREE, Stage.REVEAL])
def test_a_message_with_one_changed_byte_is_refused(stage: Stage) -> None:
    """But for the list of survivors, of which the server decides, and for which a quorum must sign."""
    target = Ours()
    machines = target.machines
    data = machines.run(until=stage)[VICTIM]
    state = machines.clients[VICTIM].state
    end = HEAD if stage == Stage.AGREE else len(data)
    changed = [
        data[:where] + bytes([data[where] ^ 0x10]) + data[where + 1 :]
        for where in {*range(0, end, 1 + len(data) // 40), end - 1}
    ]
    for each in (*changed, data[:20], data[:HEAD], data[:-1], data + b"\0", b""):
        machines.clients[VICTIM] = SummingClient(machines.agreement, machines.keys[VICTIM], state=state)
        assert target.refused(VICTIM, each)


def test_clients_that_were_refused_leave_the_others_a_sum() -> None:
    target = Ours()
    values = target.machines.values()
    messages = target.machines.run(until=2)
    assert target.refused(VICTIM, messages[VICTIM][:-1])
    server = target.machines.server
    for stage in range(2, 5):
        replies = target.machines.answers(stage, messages, values, drop=lambda _, index: index == VICTIM)
        messages = server.proceed(replies)
    target.machines.assert_right()
    assert set(server.opened.members) == set(range(CLIENTS)) - {VICTIM}


def test_a_client_whose_neighbours_have_no_keys_shares_nothing() -> None:
    """Of a sparse graph: one fewer of those that it chose have keys than its secrets need."""
    for lost, refused in ((0, False), (1, True)):
        target = Ours()
        target.machines = machines = Machines(18, 10, degree=11)
        keys = read_rows(machines.run(until=1)[VICTIM][HEAD:], ADVERT, 18)
        mine = np.flatnonzero(machines.server._view.choices[VICTIM])
        gone = set(mine[: len(mine) - machines.agreement.needed + lost])
        assert 18 - len(gone) >= machines.agreement.starters
        data = target.said(
            Stage.SHARE, rows((index, key) for index, key in keys.items() if index not in gone)
        )
        assert target.refused(VICTIM, data) == refused


@pytest.mark.parametrize("name", ["seal", "mask"])
def test_keys_that_everybody_knows_the_secret_of_are_refused(name: str) -> None:
    """Client 0 works with the server, and signs a key of small order."""
    target = Ours()
    clients, agreement = target.machines.clients, target.machines.agreement
    keys = read_rows(target.machines.run(until=1)[VICTIM][HEAD:], ADVERT, CLIENTS)
    weak = replace(Advert.of(keys[0]), signature=b"", **{name: bytes(32)})
    keys[0] = bytes(weak) + target.machines.keys[0].sign(weak.text(agreement, 1, 0))
    said = target.said(Stage.SHARE, rows(keys.items()))
    if name == "seal":
        assert target.refused(VICTIM, said)
        return
    session = session_of(agreement, 1, rows(keys.items()))
    own = masks.pair_key(clients[0]._round.seal, Advert.of(keys[VICTIM]).seal, session, b"share", 0, VICTIM)
    sent = {
        index: read_rows(clients[index].answer(said)[HEAD:], SEALED, CLIENTS) for index in range(1, CLIENTS)
    }
    envelopes = {index: each[VICTIM] for index, each in sent.items() if index != VICTIM}
    envelopes[0] = masks.sealed(own, bytes(66))
    body = flags(members(range(CLIENTS), CLIENTS)) + rows(envelopes.items())
    assert target.refused(VICTIM, message(Stage.MASK, reply=False, bound=session, number=1, body=body))
