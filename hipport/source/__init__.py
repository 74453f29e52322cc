"""Bytes, places in them, and edits to them. Knows nothing of CUDA."""

from hipport.source.edits import Change, Edit, EditSet, Safety
from hipport.source.file import SourceFile
from hipport.source.span import Span

__all__ = ["Change", "Edit", "EditSet", "Safety", "SourceFile", "Span"]
