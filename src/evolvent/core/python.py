"""Texts that may be Python, read without being run."""

from __future__ import annotations

import ast


def fault(text: str) -> str:
    """Why a text is no Python; empty if it is."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        return str(reason) or type(reason).__name__
    return ""


def parses(text: str) -> bool:
    """Whether a text is Python."""
    return not fault(text)
