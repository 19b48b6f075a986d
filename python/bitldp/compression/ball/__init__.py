"""Compression of vectors that lie in a ball."""
