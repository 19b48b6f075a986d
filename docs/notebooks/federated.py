# %% [markdown]
# # A federated run
#
# BitRand's system on a bundled data set, in this process, in its short form: its accuracy beside its true ε.

# %%
import logging
import tempfile

from bitldp_papers import get

logging.getLogger("flwr").setLevel(logging.ERROR)
system = get("bitrand")

# %%
with tempfile.TemporaryDirectory() as folder:
    run = system.run(system.configure(preset="quick", out=folder), seeded=True)
print(f"{run.metric} {run.score:.3f} after {run.rounds} rounds")
print(f"claimed ε {run.privacy.claimed:g}, exact {run.privacy.record:.6g}: {run.privacy.covers}")
