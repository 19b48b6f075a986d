"""The command `bitldp demo`: the whole package on real data in a minute."""
