"""What all systems of the papers share: settings, clients, rounds and results."""
