"""Other libraries on the same tasks: frequencies, the mean of numbers, the mean of clipped updates."""
