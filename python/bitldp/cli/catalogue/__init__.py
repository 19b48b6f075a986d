"""The mechanisms that the command line offers, and the options that each takes."""
