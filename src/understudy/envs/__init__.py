"""Environments as finite MDPs, one kind a file; `catalog` finds them by name."""
