"""Sums over two servers that do not collude: each report carries a proof that its record is in range.

    survey = TwoServerSum(Histogram(5), epsilon=1.0, task="survey of 2026-11")
    first, second = survey.report(3)                  # the client: a half for each server
    server = survey.server(0, key)                    # one of the servers, with the key that both share
    message = server.receive(first)                   # to the other server, whose own comes back
    server.verify(other)                              # counts the report, or refuses it
    survey.collect(server.total(), total_of_the_other)  # the estimate, with intervals

Nothing is masked between clients, so there are no rounds, and a client that drops out harms nothing. The
proof is Prio3 of the IETF's VDAF draft, by the crate `prio`.
"""

from __future__ import annotations

from bitldp_prio.two_servers import SumServer, TwoServerSum

__all__ = ["SumServer", "TwoServerSum"]
