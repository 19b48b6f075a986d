"""What `flower-supernode --trusted-entities` keeps out: apps that nobody of the owner's list has signed."""

from __future__ import annotations

import base64
import json

import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")

from bitldp.federated import flower, to_record
from bitldp.federated.gate.runtime import _empty
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import Message, RecordDict
from flwr.cli.app_cmd.review import _sign_fab  # what `flwr app review` signs with
from flwr.supercore.fab import Fab
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supernode import start_client_internal
from support.gated import NODE, RUN, run_of

APP, EVIL = b"the app with the mod", b"an app without it"
OWN, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([each]) * 32) for each in (1, 2))
TRUSTED = {"fpk_own": OWN.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()}


def signed(content: bytes, key: Ed25519PrivateKey, name: str = "fpk_own") -> dict[str, str]:
    """Return the verifications of an app as a SuperLink hands them on."""
    signature, when = _sign_fab(content, key)
    text = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    return {name: json.dumps({"signature": text, "signed_at": when}), "valid_license": "Valid"}


def started(content: bytes, verifications: dict[str, str], monkeypatch) -> bool:
    """Return whether a SuperNode would start an app; else its reply is an Error."""
    monkeypatch.setattr(start_client_internal, "get_fused_config_from_fab", lambda *_: {})
    node, run = _empty(), run_of(content)
    node.set_node_id(NODE)
    with flower.identity(RUN):
        message = Message(RecordDict({"arrays": to_record({})}), NODE, "train")
    message.metadata.__dict__["_message_id"] = message.object_id
    objects = get_all_nested_objects(message)
    start_client_internal._pull_and_store_message(
        state=node,
        object_store=node.object_store,
        node_config={},
        receive=lambda: (message, get_object_tree(message)),
        get_run=lambda _: run,
        get_fab=lambda *_: Fab(hash_str=run.fab_hash, content=content, verifications=verifications),
        pull_object=lambda _, name: objects[name].deflate(),
        confirm_message_received=lambda *_: None,
        trusted_entities=TRUSTED,
    )
    replies = node.get_messages_legacy(is_reply=True)
    assert bool(replies) is not bool(node.get_tasks())
    assert all(reply.error == start_client_internal.FAB_VERIFICATION_ERROR for reply in replies)
    return not replies


def test_the_signed_app_is_started_and_another_is_not(monkeypatch) -> None:
    assert started(APP, signed(APP, OWN), monkeypatch)
    refused = {
        "the signature is of another app": signed(APP, OWN),
        "a stranger's under the owner's name": signed(EVIL, STRANGER),
        "a stranger's": signed(EVIL, STRANGER, "fpk_stranger"),
        "none, from a SuperLink that checks": {"valid_license": "Valid"},
        "an app of `flwr run FOLDER`": {"valid_license": ""},
        "none at all": {},
    }
    for reason, verifications in refused.items():
        assert not started(EVIL, verifications, monkeypatch), reason


def test_an_app_of_a_folder_is_refused_even_if_it_is_the_signed_one(monkeypatch) -> None:
    """Flower hands signatures on for apps of its Hub alone."""
    assert not started(APP, {"valid_license": ""}, monkeypatch)
