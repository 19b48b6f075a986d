"""Models that the systems of the papers train."""
