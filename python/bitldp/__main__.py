"""``python -m bitldp`` is the ``bitldp`` command."""

from bitldp.cli import main

main()
