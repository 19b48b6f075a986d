"""Choice of the replies that can be averaged, so that one client's garbage does not end a run."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message

__all__ = ["alike"]

log = logging.getLogger("bitldp.federated")


def alike(replies: Iterable[Message], sent: ArrayRecord) -> tuple[list[Message], dict[str, int]]:
    """Return the replies of the most frequent form, in order, and the counts of kept and dropped ones.

    Dropped are replies whose arrays or metrics are not those (names, shapes, dtypes) of most, or not finite.
    Where two kinds are equally many, arrays like those that were sent to the clients win. Error replies are
    counted, and dropped too: Flower would log their text.
    """
    failed = 0
    forms: list[tuple[Message, Any]] = []
    for reply in replies:
        if reply.has_error():
            failed += 1
            log.info("client %d sent no update: error %d", reply.metadata.src_node_id, reply.error.code)
            continue
        forms.append((reply, _form(reply)))
    votes = Counter(form for _, form in forms if form is not None)
    like = _layout(sent)
    common = max(votes, key=lambda form: (votes[form], form[0] == like, form), default=None)
    kept = [reply for reply, form in forms if form is not None and form == common]
    rejected = len(forms) - len(kept)
    if rejected:
        log.warning("%d updates are not like the others, or not finite, and were left out", rejected)
    return kept, {"reports": len(kept), "failed": failed, "rejected": rejected}


def _form(reply: Message) -> Any:
    """Return names, shapes and dtypes of what a reply holds; None if it cannot be averaged."""
    arrays, metrics = list(reply.content.array_records.values()), list(reply.content.metric_records.values())
    if len(arrays) != 1 or len(metrics) != 1:
        return None
    weight: Any = metrics[0].get("num-examples")
    if isinstance(weight, (list, bool)) or weight is None or not 0.0 < weight < math.inf:
        return None
    layout = _layout(arrays[0])
    return None if layout is None else (layout, tuple(sorted(metrics[0])))


def _layout(record: ArrayRecord) -> Any:
    """Return names, shapes and dtypes; None for arrays that cannot be read, or are not finite."""
    found = []
    for name, array in record.items():
        try:
            plain = array.numpy()
        except Exception:  # of any kind: these bytes are a stranger's
            return None
        if plain.dtype.kind not in "fiub" or not np.isfinite(plain).all():
            return None
        found.append((name, plain.shape, plain.dtype.str))
    return tuple(found)
