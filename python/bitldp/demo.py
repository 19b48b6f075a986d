"""The demonstration that `bitldp demo` prints, as functions."""

from bitldp.cli.demo.demo import EPILOGUES, METHODS, Method, Outcome, run

__all__ = ["EPILOGUES", "METHODS", "Method", "Outcome", "run"]
