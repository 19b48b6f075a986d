# %% [markdown]
# # A federated run
#
# BitRand's system on the digits that scikit-learn brings, in this process: first at the setting that a quick look takes,
# then with the paper's own parameters, to see what they claim and what they cost.

# %%
import logging
import tempfile

from bitldp.papers import get

logging.getLogger("flwr").setLevel(logging.ERROR)
system = get("bitrand")

# %%
with tempfile.TemporaryDirectory() as folder:
    run = system.run(system.configure(preset="quick", out=folder), seeded=True)
print(f"{run.metric} {run.score:.3f} after {run.rounds} rounds")
print(f"claimed ε {run.privacy.claimed:g}, exact {run.privacy.record:.6g}: {run.privacy.covers}")
