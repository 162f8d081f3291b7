"""Functions on lists: sorting, searching, sums."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, ints


def insertion_sort(items: list) -> list:
    """A sorted copy."""
    result = list(items)
    for i in range(1, len(result)):
        item, j = result[i], i
        while j > 0 and result[j - 1] > item:
            result[j] = result[j - 1]
            j -= 1
        result[j] = item
    return result


def merge(first: list, second: list) -> list:
    """Two sorted lists as one."""
    result, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            result.append(first[i])
            i += 1
        else:
            result.append(second[j])
            j += 1
    return result + first[i:] + second[j:]


def merge_sort(items: list) -> list:
    """A sorted copy, by halves."""
    if len(items) < 2:
        return list(items)
    middle = len(items) // 2
    return merge(merge_sort(items[:middle]), merge_sort(items[middle:]))


def first_place(items: list, wanted: int) -> int:
    """Where a number stands first in a sorted list, or would have to be put."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def largest_run(items: list) -> list:
    """Start and end of the neighbours with the largest sum, the first of equals; [0, 0] of an empty list."""
    if not items:
        return [0, 0]
    best, place = items[0], [0, 1]
    total, start = 0, 0
    for i, item in enumerate(items):
        if total < 0:
            total, start = 0, i
        total += item
        if total > best:
            best, place = total, [start, i + 1]
    return place


def rotated(items: list, steps: int) -> list:
    """Moved to the right by so many places, around the end."""
    if not items:
        return []
    cut = len(items) - steps % len(items)
    return items[cut:] + items[:cut]


def distinct(items: list) -> list:
    """Each once, in the order of their first places."""
    seen, result = set(), []
    for item in items:
        if item not in seen:
            seen.add(item)
            result.append(item)
    return result


def increasing(items: list) -> list:
    """A longest subsequence that strictly increases."""
    if not items:
        return []
    lengths, before = [1] * len(items), [-1] * len(items)
    for i in range(len(items)):
        for j in range(i):
            if items[j] < items[i] and lengths[j] + 1 > lengths[i]:
                lengths[i] = lengths[j] + 1
                before[i] = j
    at = lengths.index(max(lengths))
    result = []
    while at >= 0:
        result.append(items[at])
        at = before[at]
    return result[::-1]


def partition(items: list, pivot: int) -> list:
    """[smaller, equal, larger]."""
    smaller, equal, larger = [], [], []
    for item in items:
        if item < pivot:
            smaller.append(item)
        elif item > pivot:
            larger.append(item)
        else:
            equal.append(item)
    return [smaller, equal, larger]


def windows(items: list, size: int) -> list:
    """Sums of all neighbours of that number; `ValueError` for a size below 1."""
    if size < 1:
        raise ValueError("a window has at least one")
    if size > len(items):
        return []
    total = sum(items[:size])
    sums = [total]
    for i in range(size, len(items)):
        total += items[i] - items[i - size]
        sums.append(total)
    return sums


CASES: dict[str, Draw] = {
    "insertion_sort": lambda r: [ints(r)],
    "merge_sort": lambda r: [ints(r, 10)],
    "first_place": lambda r: [sorted(ints(r, 9, 0, 9)), r.randint(-1, 10)],
    "largest_run": lambda r: [ints(r)],
    "rotated": lambda r: [ints(r, 6), r.randint(-8, 8)],
    "distinct": lambda r: [ints(r, 9, 0, 5)],
    "increasing": lambda r: [ints(r, 8, 0, 9)],
    "partition": lambda r: [ints(r, 9, 0, 6), r.randint(0, 6)],
    "windows": lambda r: [ints(r, 8), r.randint(0, 5)],
}
