"""The client's side of a Flower app: what leaves a client, and what it has cost."""
