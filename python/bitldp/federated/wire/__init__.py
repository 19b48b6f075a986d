"""Reports as messages: their form, their bytes, and the codec of updates."""
