"""FedSel: clients that accumulate unsent updates, and send one perturbed coordinate a round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.ledger.budget import BudgetExceededError
from bitldp.mechanism.numeric import Numeric
from bitldp.numeric import Piecewise
from bitldp.privacy import Calibration, Guarantee, added, composed, share
from bitldp.selection.mechanisms import EXP, PE, PS
from bitldp.selection.two_stage import SelectedReports, TwoStage, floats

__all__ = ["FedSel", "budget_of", "selection_of", "split_budget"]


class FedSel:
    """Federated clients with private selection: accumulated gradients, momentum, reset and a budget.

    Parameters
    ----------
    features : int
        Coordinates d of a gradient.
    epsilon : float
        Privacy budget of a client over all its rounds, above zero.
    rounds : int
        Releases of a client, E (the paper's epochs: a client takes part once in each).
    clients : int
        How many clients are held.
    select : {"PS", "EXP", "PE"}
        The selection.
    k : int, optional
        How many coordinates count as large, for "PS" and "PE". None: a tenth of them, at least 1.
    release : type
        Mechanism of the value, built as ``release(epsilon=...)`` for one number of [-1, 1]: `Piecewise`,
        `Duchi`, `Hybrid`, `ThreeOutputs`, ...
    mu : float, optional
        Share of a round's budget for the selection, in [0, 1). None: `split_budget` determines it, which
        needs `batch`.
    batch : int, optional
        Clients of a round, for `split_budget`.
    threshold : float
        Threshold of `split_budget`.
    momentum : float
        The factor eta, zero or more.
    calibration : {"exact", "paper"}
        Of "PE".
    dtype : dtype
        float64 or float32: of the residuals, which take ``clients * features`` of them.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A round of one client (Algorithm 1, LocalUpdate), with its residual r and its new gradient g:

        r' = r + g;  j = select(r', eps_1);  send j and, at eps_2, r'_j + eta r_j in [-1, 1];  r'_j = 0.

    With eps' = epsilon/rounds, eps_1 = mu eps' and eps_2 = eps' - eps_1. Neighbours are any two sequences of
    gradients of a client. Each round is eps'-private whatever the residual is, and the rounds add up
    (`guarantee`). If `PE` selects no coordinate, nothing is reset. The server takes the mean of the sparse
    updates, ``stages.aggregate(reports)``; it is not an unbiased estimate of the mean gradient.

    The residuals are private: they do not appear in the repr, and a FedSel cannot be pickled. Use `state` and
    `restore` for a client's own disk. Use an object from one thread at a time.

    Source: Liu, Cao, Yoshikawa and Chen, "FedSel", DASFAA 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.selection import FedSel
    >>> fedsel = FedSel(50, epsilon=8.0, rounds=2, clients=1000, mu=0.1)
    >>> reports = fedsel.release(np.full((1000, 50), 0.1), rng=1)
    >>> fedsel.stages.aggregate(reports).value.shape, round(fedsel.guarantee.record, 9)
    ((50,), 8.0)
    """

    def __init__(
        self,
        features: int,
        *,
        epsilon: float,
        rounds: int,
        clients: int = 1,
        select: Literal["PS", "EXP", "PE"] = "PS",
        k: int | None = None,
        release: type[Numeric] = Piecewise,
        mu: float | None = None,
        batch: int | None = None,
        threshold: float = 0.2,
        momentum: float = 0.0,
        calibration: Calibration = "exact",
        dtype: DTypeLike = np.float64,
    ) -> None:
        features = checks.integer("features", features, 2)
        epsilon = checks.positive("epsilon", epsilon)
        self._rounds = checks.integer("rounds", rounds, 1)
        clients = checks.count("clients", clients, 1)
        self._momentum = checks.budget("momentum", momentum)
        if not (isinstance(release, type) and issubclass(release, Numeric)):
            raise TypeError("release: must be a class of numeric mechanisms, such as Piecewise")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise TypeError(f"dtype: must be float32 or float64, not {np.dtype(dtype)}")
        first, second = budget_of(share(epsilon, self._rounds), features, mu, batch, threshold)
        selection = selection_of(select, features, k, first, calibration)
        self._stages = TwoStage(selection, release(epsilon=second))
        total = composed(self._stages.guarantee.record, self._rounds)
        self._guarantee = Guarantee.judge(epsilon, (total, total, total), given=self._stages.guarantee.given)
        self._residual: NDArray[Any] = np.zeros((clients, features), dtype)
        self._released: NDArray[np.int64] = np.zeros(clients, np.int64)

    @property
    def stages(self) -> TwoStage:
        """The mechanism of one round, which the server needs: it decodes and aggregates reports."""
        return self._stages

    @property
    def guarantee(self) -> Guarantee:
        """Claimed and exact epsilon of a client over all its rounds; ``stages.guarantee`` is that of one."""
        return self._guarantee

    @property
    def report_bits(self) -> int:
        """Bits of one packed report."""
        return self._stages.report_bits

    @property
    def rounds(self) -> int:
        """Releases that each client may make."""
        return self._rounds

    @property
    def momentum(self) -> float:
        """The factor eta."""
        return self._momentum

    @property
    def released(self) -> NDArray[np.int64]:
        """How many releases each client has made, shape (clients,); a copy."""
        return self._released.copy()

    def release(
        self,
        gradients: ArrayLike,
        *,
        clients: ArrayLike | None = None,
        rng: RandomSource = None,
        output: Literal["codes", "packed"] = "codes",
        threads: int | None = None,
    ) -> SelectedReports:
        """Make one round of the given clients: accumulate, select, perturb, reset.

        Parameters
        ----------
        gradients : array_like of float32 or float64, shape (n, features)
            One gradient a client, finite.
        clients : array_like of int, shape (n,), optional
            Which clients take part, each once. None: all of them, in order.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: use another one each round.
        output : {"codes", "packed"}
            Arrays of numbers, or packed bytes.
        threads : int, optional
            Number of threads; the result does not depend on it.

        Returns
        -------
        SelectedReports
            One report a client, in the order of `clients`, safe to release.

        Raises
        ------
        BudgetExceededError
            If a client has made all its releases; the message names the first one.
        ValueError, TypeError
            A gradient that is not finite, or not in sum with the residual (an index is given, not the value),
            wrong shape or dtype, a client twice. In all these cases nothing is released and no state changes.
        """
        checks.choice("output", output, ("codes", "packed"))
        rows = self._rows(clients)
        dimensions = self._residual.shape[1]
        steps = floats("gradients", gradients, dimensions)
        if len(steps) != len(rows):
            raise ValueError(f"gradients: shape must be ({len(rows)}, {dimensions}), got {steps.shape}")
        spent = self._released[rows] >= self._rounds
        if spent.any():
            first = int(rows[int(np.argmax(spent))])
            raise BudgetExceededError(f"client {first} has made all of its {self._rounds} releases")
        before = self._residual[rows]
        with np.errstate(over="ignore", invalid="ignore"):  # looked at next
            after = before + steps.astype(before.dtype)
            moved = after + before.dtype.type(self._momentum) * before
        floats("gradients", after + moved, dimensions)
        reports = self._stages.randomize(after, moved, rng=rng, threads=threads)
        positions = reports.indices.astype(np.intp)
        sent = positions < dimensions
        after[np.flatnonzero(sent), positions[sent]] = 0.0
        self._residual[rows] = after
        self._released[rows] += 1
        return self._stages.pack(reports) if output == "packed" else reports

    def fresh(self, clients: int = 1) -> FedSel:
        """Return new clients of the same mechanism, which is not built again.

        Parameters
        ----------
        clients : int
            How many.

        Returns
        -------
        FedSel
            Its clients have released nothing yet.

        Raises
        ------
        ValueError, TypeError
            If `clients` is no number of clients.
        """
        clients = checks.count("clients", clients, 1)
        other = object.__new__(type(self))
        other._rounds, other._momentum = self._rounds, self._momentum
        other._stages, other._guarantee = self._stages, self._guarantee
        other._residual = np.zeros((clients, self._residual.shape[1]), self._residual.dtype)
        other._released = np.zeros(clients, np.int64)
        return other

    def _rows(self, clients: ArrayLike | None) -> NDArray[np.intp]:
        if clients is None:
            return np.arange(len(self._released))
        rows = checks.codes("clients", clients, len(self._released)).astype(np.intp)
        if rows.ndim != 1:
            raise ValueError(f"clients: shape must be (n,), got {rows.shape}")
        if len(np.unique(rows)) != len(rows):
            raise ValueError("clients: every client takes part once at most")
        return rows

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the clients' memory, copied: private, for their own disks only.

        Returns
        -------
        dict
            "residual", shape (clients, features), and "released", shape (clients,).
        """
        return {"residual": self._residual.copy(), "released": self._released.copy()}

    def restore(self, state: Mapping[str, ArrayLike]) -> None:
        """Restore a `state`.

        Raises
        ------
        ValueError, TypeError
            If it does not fit these clients; nothing changes then.
        """
        residual = floats("state['residual']", state["residual"], self._residual.shape[1])
        released = checks.codes("state['released']", state["released"], self._rounds + 1)
        if residual.shape != self._residual.shape or released.shape != self._released.shape:
            raise ValueError(f"state: is not that of {len(self._released)} clients")
        self._residual = residual.astype(self._residual.dtype)
        self._released = released.astype(np.int64)

    def __repr__(self) -> str:
        """Return the public parameters; residuals are private."""
        clients, dimensions = self._residual.shape
        return (
            f"<FedSel: {clients} clients, {dimensions} coordinates, {self._rounds} rounds, {self._stages!r}>"
        )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(
            "FedSel: holds private residuals and is not pickled; state() is for a client's own disk"
        )


_SHARE_OF_TOP = 0.1  # of all coordinates, the paper's default of k


def split_budget(features: int, *, epsilon: float, batch: int, threshold: float = 0.2) -> tuple[float, float]:
    """Split the budget of a round without a hyper-parameter: first to the value, then to the selection.

    Parameters
    ----------
    features : int
        Coordinates d, 2 or more.
    epsilon : float
        Budget of one round, above zero.
    batch : int
        Clients m of a round, 1 or more.
    threshold : float
        The largest part of `epsilon` that the selection may have, theta, in [0, 1).

    Returns
    -------
    (float, float)
        eps_1 of the selection and eps_2 of the value. The value gets sqrt(d ln d/m) first. Of the rest, the
        selection gets up to theta epsilon, and the value the remainder. With few clients, eps_1 is 0, and the
        coordinate is drawn uniformly.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    Source: FedSel, Section 5.3, which gives the order sqrt(d log d/m), taken with the factor 1 here, and
    found theta = 0.2 by experiment.
    """
    epsilon = checks.positive("epsilon", epsilon)
    features = checks.integer("features", features, 2)
    batch = checks.integer("batch", batch, 1)
    threshold = checks.real("threshold", threshold)
    if not 0.0 <= threshold < 1.0:
        raise ValueError(f"threshold: must be in [0, 1), got {threshold}")
    first = math.sqrt(features * math.log(features) / batch)
    return _parts(epsilon, max(0.0, min(epsilon - first, threshold * epsilon)))


def _parts(epsilon: float, selection: float) -> tuple[float, float]:
    """Return a part and the rest of a budget, which together keep it exactly."""
    rest = epsilon - selection
    while added(selection, rest) > epsilon:
        rest = math.nextafter(rest, 0.0)
    return selection, rest


def budget_of(
    epsilon: float, features: int, mu: float | None, batch: int | None, threshold: float
) -> tuple[float, float]:
    """Return the budgets of selection and value of one round."""
    if mu is None:
        if batch is None:
            raise ValueError("mu: give it, or give batch, the clients of a round, to derive it")
        return split_budget(features, epsilon=epsilon, batch=batch, threshold=threshold)
    mu = checks.real("mu", mu)
    if not 0.0 <= mu < 1.0:
        raise ValueError(f"mu: must be in [0, 1), got {mu}")
    return _parts(epsilon, mu * epsilon)


def selection_of(
    select: str, features: int, k: int | None, epsilon: float, calibration: Calibration
) -> EXP | PE | PS:
    """Return the selection that a word names."""
    checks.choice("select", select, ("PS", "EXP", "PE"))
    checks.choice("calibration", calibration, ("exact", "paper"))
    if select != "PE" and calibration == "paper":
        raise ValueError("calibration: 'paper' is for select='PE'; the claims of the others hold")
    if select == "EXP":
        if k is not None:
            raise ValueError("k: is for 'PS' and 'PE'; 'EXP' has no top k")
        return EXP(features, epsilon=epsilon)
    top = max(1, round(_SHARE_OF_TOP * features)) if k is None else k
    if select == "PS":
        return PS(features, k=top, epsilon=epsilon)
    return PE(features, k=top, epsilon=epsilon, calibration=calibration)
