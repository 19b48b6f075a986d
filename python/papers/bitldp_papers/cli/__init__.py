"""Commands that join the ``bitldp`` program: fl, paper, attack."""
