# %% [markdown]
# # Tables on an engine
#
# A plan, a key, and polars: however often the engine evaluates, a record is released once.

# %%
import bitldp
import numpy as np
import polars as pl
from bitldp.tables import Column, ReleaseKey, TablePlan

rng = np.random.default_rng(0)
n = 20_000
people = pl.DataFrame(
    {
        "id": np.arange(n),
        "height": rng.normal(172, 9, n).clip(140, 210),
        "city": rng.choice(["Paris", "Rome", "Oslo"], n, p=[0.5, 0.3, 0.2]),
        "survey": rng.integers(1, 3, n),
    }
)

# %%
plan = TablePlan(
    [
        Column(bitldp.Piecewise(epsilon=1.0, interval=(140, 210)), "height"),
        Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
    ],
    keep=["survey"],
)
print(plan.guarantee)

# %%
release = plan.release(ReleaseKey.generate(), record="id", snapshot="2026-11")
lazy = people.lazy().map_batches(release.polars, schema=release.polars_schema(people.schema))
first, again = lazy.collect(), lazy.collect()
print(first.equals(again))
first.head()

# %% [markdown]
# ## Answers, with the truth beside them

# %%
answers = plan.aggregate().update(first.to_arrow()).estimate()
pl.from_arrow(answers).select("column", "category", "estimate", "stderr")

# %%
print(people["height"].mean(), people["city"].value_counts(normalize=True).sort("city"))
