"""Runs beside what nobody trusts: an agent's analysis of databases, and queries on them. Standard library only."""

from __future__ import annotations

import base64
import sqlite3
from typing import Any

STEPS = 2_000_000  # of SQLite's machine, in thousands of which a query is looked at, and after which it is ended
ROWS = 1000  # of an answer
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def opened(data: str) -> sqlite3.Connection:
    """A database in memory, from the bytes of its file."""
    db = sqlite3.connect(":memory:")
    db.deserialize(base64.b64decode(data))
    return db


def reports(databases: list[str], longest: int) -> list[dict[str, Any]]:
    """What the agent's `analyse` says of each database: the text, cut to its length, or the error."""
    import program  # type: ignore[import-not-found]

    found: list[dict[str, Any]] = []
    for data in databases:
        db = opened(data)
        try:
            text = program.analyse(db)
            if not isinstance(text, str):
                raise TypeError(f"analyse gave {type(text).__name__}, not a text")
            found.append({"report": text[:longest], "cut": len(text) > longest})
        except Exception as reason:
            found.append({"report": "", "error": f"{type(reason).__name__}: {reason}"[:300]})
        finally:
            db.close()
    return found


def answers(
    databases: list[str], queries: list[list[str]], steps: int = STEPS, rows: int = ROWS
) -> list[list[dict[str, Any]]]:
    """The rows of each query on its database, or the error: queries[i] are those on databases[i].

    Queries may read, and nothing else. One that needs too long, or gives too many rows, is an error.
    """
    found = []
    for data, texts in zip(databases, queries, strict=True):
        db = opened(data)
        db.execute("PRAGMA query_only = ON")
        db.set_authorizer(lambda action, *rest: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY)
        found.append([answer(db, text, steps, rows) for text in texts])
        db.close()
    return found


def answer(db: sqlite3.Connection, text: str, steps: int, most: int) -> dict[str, Any]:
    """The rows of one query as lists, or the error."""
    left = [steps // 1000]

    def over() -> bool:
        left[0] -= 1
        return left[0] < 0

    db.set_progress_handler(over, 1000)
    try:
        rows = db.execute(text).fetchmany(most + 1)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as reason:
        return {"error": f"{type(reason).__name__}: {reason}"[:200]}
    finally:
        db.set_progress_handler(None, 0)
    if len(rows) > most:
        return {"error": f"more than {most} rows"}
    return {"rows": [[cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in rows]}
