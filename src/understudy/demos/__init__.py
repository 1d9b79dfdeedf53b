"""Demonstrations; readers and writers, one file a format."""

from understudy.demos.demonstrations import Demonstrations

__all__ = ["Demonstrations"]
