"""Warning about values that leave a client without a mechanism, because its code says so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from bitldp.federated.client.examples import Bucketed, Examples, Randomized

__all__ = ["UnprotectedMessageWarning", "warn"]


class UnprotectedMessageWarning(UserWarning):
    """Warning that a private value leaves a client without a mechanism or a charge."""


def warn(*, others: bool, keep: Sequence[str], examples: Examples, evaluated: bool) -> None:
    """Warn of unprotected replies, metrics and numbers of examples."""
    leaves = []
    if others:
        kinds = "queries" if evaluated else "evaluations and queries"
        leaves.append(
            f"whatever the app replies to {kinds} (others='pass'): a server that chooses the model or the "
            "question can read records off it"
        )
    if keep:
        leaves.append(f"the metrics {', '.join(map(repr, keep))} of every training message (keep)")
    if examples == "exact":
        leaves.append("the number of examples (examples='exact')")
    elif isinstance(examples, Bucketed) and not isinstance(examples, Randomized):
        leaves.append("the bucket of the number of examples (examples=Bucketed)")
    if leaves:
        text = f"without any mechanism, and uncharged, there leaves a client: {'; '.join(leaves)}"
        warnings.warn(text, UnprotectedMessageWarning, stacklevel=3)
