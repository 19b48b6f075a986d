"""Federated logistic regression on handwritten digits, with private updates."""
