"""Accounting: the total privacy cost of many releases about the same records, in the local model.

All results are local, like the guarantees that they start from: they hold against anyone who sees all the
reports and knows whose they are. (For the central bound of shuffled reports, see `bitldp.amplification`.)
There are three accountants, from coarse to fine:

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
