"""The command line, part by part: `app` has the commands."""
