"""Types of reports for type checkers: one array, or a form that depends on a parameter.

When run, both classes are `Mechanism`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base.keys import RandomSource
from bitldp.mechanism.base import Mechanism, Output
from bitldp.release.keyed import Ids

Single: TypeAlias = bool | int | float | str | bytes | np.generic
"""One value: one number, one category or one label."""

if TYPE_CHECKING:
    from typing_extensions import Unpack  # checkers know it; nobody else imports it

    class Draw(TypedDict, total=False):
        """Options of `Mechanism.randomize` that do not change the type of its reports."""

        rng: RandomSource
        out: NDArray[Any] | None
        threads: int | None
        first_chunk: int

    class OneArray(Mechanism):
        """Base of the mechanisms whose reports are one array, never a pair."""

        @overload  # type: ignore[override]
        def randomize(
            self, x: Single, *, output: Output = "codes", **options: Unpack[Draw]
        ) -> Any: ...  # a scalar; an array of bits, or packed
        @overload
        def randomize(
            self, x: ArrayLike, *, output: Output = "codes", **options: Unpack[Draw]
        ) -> NDArray[Any]: ...
        def randomize(self, x: Any, **options: Any) -> Any:
            """Randomize records; see `Mechanism.randomize`."""

        def randomize_keyed(
            self,
            x: ArrayLike,
            *,
            key: bytes,
            ids: Ids,
            context: bytes = b"",
            column: int = 0,
            output: str | None = None,
            threads: int | None = None,
            duplicates: bool = False,
        ) -> NDArray[Any]:
            """Randomize records with keyed randomness; see `Mechanism.randomize_keyed`."""

    class ArrayOrPair(Mechanism):
        """Base of the mechanisms whose reports are an array, or a pair where coordinates are sampled."""

        @overload  # type: ignore[override]
        def randomize(
            self, x: ArrayLike, *, output: Literal["values"], **options: Unpack[Draw]
        ) -> NDArray[Any]: ...
        @overload
        def randomize(
            self, x: ArrayLike, *, output: Output = "codes", **options: Unpack[Draw]
        ) -> Any: ...  # an array, or `SampledReports`: a matter of `spend`, which no type tells
        def randomize(self, x: Any, **options: Any) -> Any:
            """Randomize records; see `Mechanism.randomize`."""

else:
    OneArray = ArrayOrPair = Mechanism
