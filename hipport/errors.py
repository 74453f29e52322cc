"""Errors that end a run with one line."""

from __future__ import annotations


class UsageError(Exception):
    """What was asked for cannot be done; the message is the one line that the user sees."""
