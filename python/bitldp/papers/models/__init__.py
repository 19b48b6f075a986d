"""The models that the systems of the papers train."""
