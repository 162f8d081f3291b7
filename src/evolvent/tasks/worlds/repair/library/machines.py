"""Functions that keep a state: caches, counters, accounts, machines."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, ints


def cache_hits(keys: list, size: int) -> list:
    """For each key whether it is in a cache that forgets what was used the longest ago."""
    kept: list = []
    hits = []
    for key in keys:
        hits.append(key in kept)
        if key in kept:
            kept.remove(key)
        elif len(kept) >= size:
            kept.pop(0)
        kept.append(key)
    return hits


def balance(moves: list, limit: int) -> list:
    """Balances after deposits and withdrawals; one that would go below -limit is refused."""
    now, found = 0, []
    for move in moves:
        if now + move >= -limit:
            now += move
        found.append(now)
    return found


def allowed(times: list, count: int, span: int) -> list:
    """Which requests, at ascending times, a limit lets pass: at most `count` within any `span` of time."""
    passed: list = []
    verdicts = []
    for time in times:
        recent = [t for t in passed if t > time - span]
        verdict = len(recent) < count
        if verdict:
            passed.append(time)
        verdicts.append(verdict)
    return verdicts


def robot(commands: str) -> list:
    """Where a robot ends that begins at [0, 0] and looks north: F forward, L and R turn; [x, y, direction]."""
    x, y, direction = 0, 0, 0
    for command in commands:
        if command == "L":
            direction = (direction - 1) % 4
        elif command == "R":
            direction = (direction + 1) % 4
        elif direction == 0:
            y += 1
        elif direction == 1:
            x += 1
        elif direction == 2:
            y -= 1
        else:
            x -= 1
    return [x, y, "NESW"[direction]]


def change(amount: int, coins: list) -> int:
    """The fewest coins that make an amount; -1 if none do."""
    fewest = [0] + [-1] * amount
    for total in range(1, amount + 1):
        for coin in coins:
            if coin <= total and fewest[total - coin] >= 0:
                count = fewest[total - coin] + 1
                if fewest[total] < 0 or count < fewest[total]:
                    fewest[total] = count
    return fewest[amount]


def knapsack(weights: list, values: list, room: int) -> int:
    """The highest value that fits, each thing at most once."""
    best = [0] * (room + 1)
    for weight, value in zip(weights, values):  # noqa: B905
        for left in range(room, weight - 1, -1):
            best[left] = max(best[left], best[left - weight] + value)
    return best[room]


def turns(names: list, step: int) -> list:
    """The order in which a counting-out rhyme of `step` beats sends people away."""
    left, gone, at = list(names), [], 0
    while left:
        at = (at + step - 1) % len(left)
        gone.append(left.pop(at))
    return gone


def undo_all(actions: list) -> str:
    """Text after letters are typed, `<` deletes the last one, `^` undoes the action before."""
    text, before = "", []  # type: ignore[var-annotated]
    for action in actions:
        if action == "^":
            if before:
                text = before.pop()
            continue
        before.append(text)
        if action == "<":
            text = text[:-1]
        else:
            text += action
    return text


CASES: dict[str, Draw] = {
    "cache_hits": lambda r: [ints(r, 12, 0, 4), r.randint(1, 3)],
    "balance": lambda r: [ints(r, 8), r.randint(0, 6)],
    "allowed": lambda r: [sorted(ints(r, 9, 0, 15)), r.randint(1, 3), r.randint(1, 6)],
    "robot": lambda r: ["".join(r.choice("FFLR") for _ in range(r.randint(0, 9)))],
    "change": lambda r: [r.randint(0, 20), sorted(r.sample(range(2, 9), r.randint(1, 3)))],
    "knapsack": lambda r: [[r.randint(1, 6) for _ in range(4)], [r.randint(1, 9) for _ in range(4)], r.randint(0, 12)],
    "turns": lambda r: [list(range(r.randint(0, 7))), r.randint(1, 5)],
    "undo_all": lambda r: [[r.choice("abc<^") for _ in range(r.randint(0, 9))]],
}
