"""Front ends: a `SourceFile` becomes a `Unit` of typed facts. Knows no rules."""

from hipport.parse.tokens import Kind, Token, tokenize
from hipport.parse.unit import Unit, arguments, callee

__all__ = ["Kind", "Token", "Unit", "arguments", "callee", "tokenize"]
