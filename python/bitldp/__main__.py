"""``python -m bitldp`` is the ``bitldp`` command."""

from .cli import main

main()
