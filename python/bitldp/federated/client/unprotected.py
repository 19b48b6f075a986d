"""What leaves a client without a mechanism because its code says so, and the warning that names it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from bitldp.federated.client.examples import Bucketed, Examples, Randomized

__all__ = ["UnprotectedMessageWarning", "warn"]


class UnprotectedMessageWarning(UserWarning):
    """Something of a client's leaves that no mechanism releases, and no budget is charged for."""


def warn(*, others: bool, keep: Sequence[str], examples: Examples, evaluated: bool) -> None:
    """Warn of what leaves as it is: other messages' replies, named metrics, numbers of examples."""
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
