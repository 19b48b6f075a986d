"""Bases of the named mechanisms: parameters, a guarantee, a law, and estimates."""
