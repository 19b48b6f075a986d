"""Common parts of the systems: settings, clients, rounds and results."""
