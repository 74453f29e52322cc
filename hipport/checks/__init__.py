"""Hazard checks: one module a family. Knows nothing of commands or files on disk."""

from hipport.checks.context import Context
from hipport.checks.registry import check

__all__ = ["Context", "check"]
