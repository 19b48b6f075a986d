"""Records of several attributes, whose reports are those of mechanisms of their own."""
