"""Clients in other languages: a mechanism as data, which another program reads, checks and runs.

`Mechanism.client_document` writes a document of the schema docs/reference/client.schema.json. `open_document`
reads and checks it, as every client does.
"""

from __future__ import annotations

from bitldp.client.document import ClientDocument, KeyedAnswers, ModelUpdate, Promise
from bitldp.client.mechanisms import client_reports
from bitldp.client.notation import DocumentError, NoDocumentError
from bitldp.client.opening import open_document
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import ClientRecord

__all__ = [
    "ClientDocument",
    "ClientProgram",
    "ClientRecord",
    "DocumentError",
    "KeyedAnswers",
    "ModelUpdate",
    "NoDocumentError",
    "Promise",
    "PublicDraw",
    "client_reports",
    "open_document",
]
