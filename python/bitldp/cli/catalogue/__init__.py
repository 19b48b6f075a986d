"""The mechanisms that the command line offers, read from the packages that export them."""
