"""Release a lazy polars frame: however often it is collected, it is one release."""

from __future__ import annotations

import polars as pl
from common import answers, people, release

released = release()
frame = pl.from_arrow(people()).lazy()
lazy = frame.map_batches(released.polars, schema=released.polars_schema(frame.collect_schema()))

once, again = lazy.collect(), lazy.collect(engine="streaming")
print("the same rows again:", once.sort("height", "age").equals(again.sort("height", "age")))
answers(once.to_arrow(), people())
