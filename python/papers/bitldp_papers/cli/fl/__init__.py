"""``bitldp fl``: the federated systems of the papers, in this process."""
