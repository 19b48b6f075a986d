"""Accounting: what many releases about the same records cost together, in local differential privacy.

Everything here is local, like the guarantees it starts from: it holds against whoever sees all the reports
and knows whose they are. (`bitldp.amplification` has the central bound of shuffled reports, which is another
thing.) Three accountants, from coarse to fine:

- ``"basic"``: epsilons and deltas add up;
- ``"renyi"``: Rényi divergences of the integer laws add up, and are then converted to (epsilon, delta);
- ``"pld"``: privacy-loss distributions of the integer laws are convolved; those of noise that is no worse
  than normal noise compose exactly, by the root of the sum of the squares of mu.

The last two convert with the library ``dp_accounting`` (extra ``design``).
"""

from __future__ import annotations

from bitldp.accounting.compose import Account, account, concentration, from_renyi
from bitldp.accounting.divergence import ORDERS, renyi
from bitldp.accounting.losses import pld

__all__ = ["ORDERS", "Account", "account", "concentration", "from_renyi", "pld", "renyi"]
