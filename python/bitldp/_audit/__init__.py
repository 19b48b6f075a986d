"""The audit, part by part: `bitldp.audit` is its face."""
