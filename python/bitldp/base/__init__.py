"""Common ground of all rooms: checks of arguments, keys, extras, files and arrays."""
