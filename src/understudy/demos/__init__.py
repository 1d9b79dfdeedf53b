"""Demonstrations in and out: readers and writers, one file a format."""
