"""Secure sums."""
