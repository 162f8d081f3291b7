"""Functions on intervals, ranges and calendars of them."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, ints, spans


def merged(spans: list) -> list:
    """Overlapping or touching [start, end] as one, in order."""
    result: list = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([start, end])
    return result


def overlap(first: list, second: list) -> list:
    """What two ordered lists of disjoint intervals share."""
    result, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        start = max(first[i][0], second[j][0])
        end = min(first[i][1], second[j][1])
        if start <= end:
            result.append([start, end])
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return result


def gaps(spans: list, start: int, end: int) -> list:
    """What of [start, end] no interval covers."""
    found, at = [], start
    for low, high in sorted(spans):
        if low > at:
            found.append([at, min(low, end)])
        at = max(at, high)
        if at >= end:
            break
    if at < end:
        found.append([at, end])
    return found


def busiest(spans: list) -> int:
    """The most half-open intervals that hold at once."""
    events = []
    for start, end in spans:
        if start < end:
            events.append([start, 1])
            events.append([end, -1])
    most, now = 0, 0
    for _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def compatible(spans: list) -> int:
    """The most intervals that do not overlap; they may touch."""
    count, free = 0, None
    for start, end in sorted(spans, key=lambda span: [span[1], span[0]]):
        if free is None or start >= free:
            count += 1
            free = end
    return count


def ranges(numbers: list) -> str:
    """Whole numbers as text: 1-3,5,8-9."""
    parts: list = []
    for n in sorted(set(numbers)):
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ",".join(str(a) if a == b else str(a) + "-" + str(b) for a, b in parts)


def room_of(spans: list) -> list:
    """For each meeting, in the order of their starts, the first room that is free."""
    ends: list = []
    rooms = []
    for start, end in sorted(spans):
        for room, busy in enumerate(ends):
            if busy <= start:
                ends[room] = end
                rooms.append(room)
                break
        else:
            rooms.append(len(ends))
            ends.append(end)
    return rooms


CASES: dict[str, Draw] = {
    "merged": lambda r: [spans(r)],
    "overlap": lambda r: [merged(spans(r, 4)), merged(spans(r, 4))],
    "gaps": lambda r: [spans(r, 4), r.randint(0, 5), r.randint(12, 20)],
    "busiest": lambda r: [spans(r, 7)],
    "compatible": lambda r: [spans(r, 7)],
    "ranges": lambda r: [ints(r, 8, 0, 12)],
    "room_of": lambda r: [spans(r, 6)],
}
