"""What is known of the mechanisms of each family: importing this module registers it with `setting`."""

from bitldp.audit.known import candidates, compression, noise, selection, vector

__all__ = ["candidates", "compression", "noise", "selection", "vector"]
