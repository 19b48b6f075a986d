"""Codec, channel and letters as one thing: what releases one number or symbol."""
