"""Sweeps: many runs as data, on this machine or on a cluster."""
