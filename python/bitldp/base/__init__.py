"""What every room stands on: checks of arguments, keys, extras, files, arrays."""
