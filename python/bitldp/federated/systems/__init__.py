"""The five federated systems of the papers, each a Flower app, run in one process or over the network."""
