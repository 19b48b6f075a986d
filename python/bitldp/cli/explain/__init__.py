"""The command `bitldp explain`: the privacy of a mechanism, before it is used."""
