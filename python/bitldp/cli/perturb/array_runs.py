"""Runs on a ``.npy`` array: the plan of its columns, and the array that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bitldp.cli.perturb.arrays import ArrayReader, write_header
from bitldp.cli.perturb.digested import Digested
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.perturb.plan import Part, Plan, build_plan
from bitldp.cli.perturb.request import Request
from bitldp.tables.cells import Labels, Numbers

__all__ = ["array_plan", "perturb_array"]


def array_plan(request: Request, reader: ArrayReader) -> Plan:
    """Return the run of an array, whose columns are "0", "1" and so on."""
    if request.label is not None or request.keep:
        raise UsageError(
            "--label and --keep are for tables; perturb the labels of a .npy array in a file of their own"
        )
    width = 1 if len(reader.shape) == 1 else reader.shape[1]
    if width == 0:
        raise UsageError("the array has no columns")
    columns = tuple(str(j) for j in range(width))
    plan = build_plan(request, columns, width)
    if len(plan.parts) > 1:
        raise UsageError(
            f"{request.mechanism} perturbs the columns of an array one by one: give an array of one "
            "dimension, or a table"
        )
    if isinstance(plan.parts[0].codec, Numbers) and reader.dtype.kind != "f":
        raise UsageError(f"{request.mechanism} takes floats, the array holds {reader.dtype}")
    return plan


def perturb_array(
    reader: ArrayReader,
    plan: Plan,
    file: Digested,
    progress: Callable[[int, int], None],
    moved: list[int],
) -> int:
    """Stream an array through the only part of a plan; return its rows."""
    (part,) = plan.parts
    rows = reader.shape[0]
    flat = len(reader.shape) == 1
    places = [int(name) for name in part.codec.columns]
    every = flat or places == list(range(reader.shape[1]))

    def reports(batch: NDArray[Any], first: int) -> NDArray[Any]:
        chosen = batch if every else np.ascontiguousarray(batch[:, places])
        if isinstance(part.codec, Numbers):
            chosen = chosen.reshape(len(chosen), len(places))
        x = part.codec.encode(chosen, first + 1)
        moved[0] += part.outside(x)
        answers = part.randomize(x, first)
        if not isinstance(part.codec, Numbers) and part.output == "values" and answers.ndim == 1:
            ((_, values),) = part.codec.decode(answers, part.output, _arrow_type(part, batch))
            answers = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values
        return answers[:, 0] if flat and answers.shape[1:] == (1,) else answers

    example = reports(np.empty((0, *reader.shape[1:]), reader.dtype.newbyteorder("=")), 0)
    write_header(file, (rows, *example.shape[1:]), example.dtype)
    done = 0
    for batch in reader.batches(plan.rows):
        file.write(np.ascontiguousarray(reports(batch, done)).data.cast("B"))
        done += len(batch)
        progress(done, rows)
    return rows


def _arrow_type(part: Part, batch: NDArray[Any]) -> pa.DataType:
    return pa.from_numpy_dtype(batch.dtype) if isinstance(part.codec, Labels) else pa.float64()
