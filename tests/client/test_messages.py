"""Reports behind a header: what a client sends names its mechanism, and the server refuses another one."""

from __future__ import annotations

import base64
import json
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.base.keys import keys
from bitldp.client import ClientDocument, DocumentError, client_reports, open_document
from bitldp.client.mechanisms import fingerprint_digest
from bitldp.client.message import Field, Header, WireError, parse, read, write
from bitldp.client.notation import canonical, digest
from bitldp.tables import Column, TablePlan
from support.client_library import ABSENT, LibraryClient, LibraryRefusedError, library_path

GRR = bitldp.GRR(["a", "b", "c"], epsilon=1.0)
SAMPLED = bitldp.Duchi(epsilon=2.0, features=5, spend="sample", k=2)
FORM = TablePlan(
    [
        Column(bitldp.Piecewise(epsilon=2.0, interval=(120.0, 220.0)), "height"),
        Column(GRR, "city", categories=["a", "b", "c"]),
    ]
)


def sealed(fields: dict[str, Any]) -> str:
    """Return the text of a document whose sum is right, whatever else is not."""
    return canonical({**fields, "sha256": digest(fields)})


def with_header(text: str, head: bytes) -> str:
    """Return a document with another header."""
    fields = json.loads(text)
    fields["header"] = base64.b64encode(head).decode()
    return sealed(fields)


def library() -> Any:
    found = library_path()
    if found is None:
        pytest.skip(ABSENT)
    return found


def given_keys(document: ClientDocument, seed: int) -> bytes:
    return b"".join(key for key in keys(seed, document.program.streams) if key is not None)


@pytest.mark.parametrize("mechanism", [GRR, SAMPLED], ids=["GRR", "sampled"])
def test_a_message_is_one_of_the_wire_format(mechanism: Any) -> None:
    document = open_document(mechanism.client_document(header=True))
    plain = open_document(mechanism.client_document())
    x: Any = "b" if mechanism is GRR else [0.1, -0.2, 0.3, 0.4, 0.5]
    message = document.randomize(x, rng=3)
    assert message.endswith(plain.randomize(x, rng=3))
    assert len(message) == document.report_bytes()
    stated = parse(message)
    assert (stated.name, stated.mechanism) == (type(mechanism).__name__, fingerprint_digest(mechanism))
    assert (stated.records, stated.coordinates) == (1, mechanism.columns)
    codes = read(message, stated)
    assert write(stated, codes).tobytes() == message
    fields = tuple(Field(*part) for part in plain.program.fields)
    own = Header(
        stated.name, stated.mechanism, bytes(16), "replace", "l2", 0.0, 0.0, 0.0, mechanism.columns, 1, fields
    )
    assert read(message, own)[-1].tolist() == codes[-1].tolist()
    with pytest.raises(ValueError, match="about one record"):
        document.randomize([x, x])


def test_a_server_reads_messages_or_reports_of_its_own_mechanism() -> None:
    document = open_document(GRR.client_document(header=True))
    messages = [document.randomize("a", rng=index) for index in range(20)]
    codes = client_reports(GRR, messages)
    assert codes.tolist() == client_reports(GRR, [each[-1:] for each in messages]).tolist()
    with pytest.raises(WireError, match="with other parameters, at index 0"):
        client_reports(bitldp.GRR(["a", "b", "c"], epsilon=2.0), messages)
    damaged = messages[4][:-1] + bytes([messages[4][-1] ^ 64])
    with pytest.raises(WireError, match="checksum does not match, at index 4"):
        client_reports(GRR, [*messages[:4], damaged])
    with pytest.raises(WireError, match="at index 1"):
        client_reports(GRR, [messages[0], messages[1][-1:]])
    with pytest.raises(ValueError, match="at index 1"):
        client_reports(GRR, [messages[0][-1:], messages[1]])


def test_a_form_behind_a_header_is_a_released_table() -> None:
    document = open_document(FORM.client_document(header=True))
    messages = [document.randomize(170.0, "a", rng=index) for index in range(30)]
    table = FORM.from_clients(messages)
    assert table.num_rows == 30
    assert table.equals(FORM.from_clients([each[-2:] for each in messages]))
    other = TablePlan([Column(bitldp.Piecewise(epsilon=1.0, interval=(120.0, 220.0)), "height")])
    with pytest.raises(WireError, match="of a TablePlan with other parameters"):
        other.from_clients(messages)
    many = TablePlan([Column(bitldp.Duchi(epsilon=1.0), f"x{index}") for index in range(9)])
    with pytest.raises(ValueError, match="at most 8 arrays of codes, and a report has 9"):
        many.client_document(header=True)


HOSTILE = {
    "nothing": lambda head: b"",
    "another magic": lambda head: b"XLDP" + head[4:],
    "another version": lambda head: head[:4] + b"\x03" + head[5:],
    "an unknown word": lambda head: head[:5] + b"\x03" + head[6:],
    "another norm": lambda head: head[:6] + b"\x01" + head[7:],
    "more arrays": lambda head: head[:7] + b"\x09" + head[8:],
    "another fingerprint": lambda head: head[:8] + bytes(16) + head[24:],
    "another clip": lambda head: head[:40] + np.float64(3.0).tobytes() + head[48:],
    "more coordinates": lambda head: head[:64] + b"\xff" + head[65:],
    "more records": lambda head: head[:72] + b"\x02" + head[73:],
    "other bits": lambda head: head[:84] + b"\x1f" + head[85:],
    "no letters": lambda head: head[:85] + b"\x00" + head[86:],
    "letters without end": lambda head: head[:85] + b"\xff" + head[86:],
    "a name that is none": lambda head: head[:86] + b"<" + head[87:],
    "a digit before the name": lambda head: head[:86] + b"7" + head[87:],
    "another length": lambda head: head[:-13] + b"\x09" + head[-12:],
    "a word for examples": lambda head: head[:-1] + b"\x02",
    "bytes behind": lambda head: head + b"\x00",
    "a byte less": lambda head: head[:-1],
    "too many bytes": lambda head: head + bytes(1024),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_header_of_something_else_is_refused(change: Any) -> None:
    text = GRR.client_document(header=True)
    document = open_document(text)
    assert open_document(with_header(text, document.header)).header == document.header
    refused = with_header(text, change(document.header))
    with pytest.raises(DocumentError, match=r"^header: "):
        open_document(refused)
    with pytest.raises(LibraryRefusedError):
        LibraryClient(refused, library())


@pytest.mark.parametrize(
    "turn", [{"round": 7}, {"examples": True}, {"version": 1}, {"layout": bytes(range(16))}]
)
def test_what_the_server_alone_knows_is_its_own(turn: dict[str, Any]) -> None:
    from dataclasses import replace

    text = GRR.client_document(header=True)
    head = replace(parse(open_document(text).randomize("a", rng=1)), **turn).encoded()
    message = open_document(with_header(text, head)).randomize("a", rng=1)
    assert message.startswith(head)
    with LibraryClient(with_header(text, head), library()) as client:
        assert client.with_key(given_keys(open_document(text), 1), b"\x00") == message


def test_the_library_sends_the_message_of_python() -> None:
    for mechanism in (GRR, SAMPLED, bitldp.OUE(9, epsilon=2.0), bitldp.OLH(30, epsilon=2.0)):
        text = mechanism.client_document(header=True)
        document, rng = open_document(text), np.random.default_rng(2)
        (record,) = document.program.records
        with LibraryClient(text, library()) as client:
            assert client.report_bytes() == document.report_bytes()
            for seed in range(20):
                x: Any = rng.normal(size=record.columns) if record.below is None else rng.integers(3)
                raw = np.asarray(x, record.dtype).tobytes()
                message = client.with_key(given_keys(document, seed), raw)
                assert message == document.randomize(x, rng=seed)
            client_reports(mechanism, [client.randomize(raw)])
            with pytest.raises(LibraryRefusedError):
                client.with_key(given_keys(document, 1), raw * 2)


def test_a_form_of_the_library_is_read_by_its_plan() -> None:
    text = FORM.client_document(header=True)
    document = open_document(text)
    raw = np.float64(171.0).tobytes() + b"\x02"
    with LibraryClient(text, library()) as client:
        message = client.with_key(given_keys(document, 4), raw)
        assert message == document.randomize(171.0, "c", rng=4)
        assert FORM.from_clients([message, client.randomize(raw)]).num_rows == 2


def test_keyed_answers_may_have_a_header() -> None:
    secret = bytes(range(1, 33))
    daily = bitldp.Memoized(GRR, secret, question="city")
    with_head = daily.client_document(header=True)
    with (
        LibraryClient(with_head, library()) as client,
        LibraryClient(daily.client_document(), library()) as plain,
    ):
        for index in range(10):
            name = np.uint64(index).tobytes()
            message = client.keyed(secret, name, b"\x01")
            assert message.endswith(plain.keyed(secret, name, b"\x01"))
            assert client_reports(GRR, [message]).shape == (1,)
