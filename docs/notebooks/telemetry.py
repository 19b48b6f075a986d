# %% [markdown]
# # A telemetry survey
#
# 200,000 users, three questions, ε 1 for each answer of a user. Truth stands beside every estimate.

# %%
import bitldp
import numpy as np

rng = np.random.default_rng(0)
users = 200_000

# %% [markdown]
# ## Which browser? Shares of categories

# %%
browsers = ["fire", "chrome", "safari", "other"]
answers = rng.choice(4, users, p=[0.1, 0.6, 0.25, 0.05])
question = bitldp.recommend("frequency", epsilon=1.0, categories=4).mechanism
shares = question.estimate_frequencies(question.randomize(answers, rng=1))
truth = np.bincount(answers) / users
for i, name in enumerate(browsers):
    print(f"{name:8} {shares.value[i]:.4f} ± {shares.stderr[i]:.4f}   truth {truth[i]:.4f}")

# %% [markdown]
# ## How long was the session? A mean and a median

# %%
minutes = rng.gamma(2.0, 15.0, users).clip(0, 120)
mean = bitldp.Piecewise(epsilon=1.0, interval=(0.0, 120.0))
estimate = mean.estimate_mean(mean.randomize(minutes, rng=2))
print(f"mean   {estimate.value[0]:.2f} ± {estimate.stderr[0]:.2f}   truth {minutes.mean():.2f}")

wave = bitldp.SquareWave(epsilon=1.0, interval=(0.0, 120.0), cells=128)
reports = wave.randomize(minutes, rng=3)
median = float(np.ravel(wave.estimate_quantile(reports, 0.5).value)[0])
print(f"median {median:.2f}           truth {np.median(minutes):.2f}")

# %% [markdown]
# ## The same question every day
# Fresh coins each day would add up; memoized reports are the same for the same value.

# %%
daily = bitldp.Memoized(question, bytes(range(32)))
ids = np.arange(10)
print((daily.randomize(answers[:10], ids=ids) == daily.randomize(answers[:10], ids=ids)).all())
