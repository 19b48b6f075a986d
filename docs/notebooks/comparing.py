# %% [markdown]
# # Comparing mechanisms
#
# The same data, the same exact ε, several mechanisms: closed forms first, then twenty seeds.

# %%
import bitldp
import numpy as np
from bitldp.report import plot_variance

# %% [markdown]
# ## What is best, by the numbers
# Everything in the table is computed from the integers of mechanisms that were built for it.

# %%
bitldp.recommend("mean", epsilon=1.0)

# %% [markdown]
# ## Variance against ε

# %%
made = {each.__name__: each for each in (bitldp.Duchi, bitldp.Piecewise, bitldp.Hybrid, bitldp.Laplace)}
axes = plot_variance(made, np.geomspace(0.25, 8, 11))

# %% [markdown]
# ## Twenty seeds
# The error of the mean of 2,000 numbers, beside what the closed form says.

# %%
x = np.random.default_rng(0).uniform(-1, 1, 2_000)
print(f"{'':10} {'measured':>9} {'said':>9}")
for name, make in made.items():
    mechanism = make(epsilon=2.0)
    seeds = range(20)
    errors = [mechanism.estimate_mean(mechanism.randomize(x, rng=seed)).value - x.mean() for seed in seeds]
    said = np.sqrt(mechanism.mean_variance() / x.size)
    print(f"{name:10} {np.sqrt(np.mean(np.square(errors))):9.4f} {said:9.4f}")
