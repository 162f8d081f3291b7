"""The verdict of a claim over a grid of a simulator's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evolvent.bench.statistics import combine
from evolvent.core.claim import Claim
from evolvent.core.grid import GridClaim

HOLDS, FAILS = "holds", "does-not-hold"


def over_grid(one: GridClaim, verdict: Callable[[Claim], Mapping[str, Any]]) -> dict[str, Any]:
    """One verdict of all points, whose components say at which `point` they are, and what is `expected` there.

    It holds if the claim holds at all points of `where` and at none of `nowhere`; it fails if it fails at one of
    `where` or holds at one of `nowhere`.
    """
    found = [(point, HOLDS, dict(verdict(one.at(point)))) for point in one.where]
    found += [(point, FAILS, dict(verdict(one.at(point)))) for point in one.nowhere]
    verdicts = [data["verdict"] for _, expected, data in found if expected == HOLDS]
    verdicts += [FAILS for _, expected, data in found if expected == FAILS and data["verdict"] == HOLDS]
    return {
        **max((data for _, _, data in found), key=lambda data: len(data["seeds"])),
        "text": one.text,
        "verdict": combine(verdicts),
        "components": [
            {**part, "point": dict(point), "expected": expected}
            for point, expected, data in found
            for part in data["components"]
        ],
    }


def label(part: Mapping[str, Any]) -> str:
    """What a component measures, and at which point of a grid."""
    point = " ".join(f"{key}={value}" for key, value in part.get("point", {}).items())
    must = ", where it must fail" if part.get("expected") == FAILS else ""
    return f"{part['metric']} {part['direction']}" + (f" ({point}{must})" if point else "")
