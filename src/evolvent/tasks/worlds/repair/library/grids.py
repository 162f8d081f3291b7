"""Functions on matrices and boards."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, grid


def product(first: list, second: list) -> list:
    """The product of two matrices; `ValueError` if they do not fit."""
    if len(first[0]) != len(second):
        raise ValueError("these do not fit")
    result = []
    for row in first:
        line = []
        for column in range(len(second[0])):
            line.append(sum(row[k] * second[k][column] for k in range(len(row))))
        result.append(line)
    return result


def turned(rows: list, times: int) -> list:
    """A matrix turned clockwise by quarters."""
    result = [list(row) for row in rows]
    for _ in range(times % 4):
        result = [[result[i][j] for i in range(len(result) - 1, -1, -1)] for j in range(len(result[0]))]
    return result


def spiral(rows: list) -> list:
    """All numbers, clockwise from the upper left corner inwards."""
    top, bottom, left, right = 0, len(rows) - 1, 0, len(rows[0]) - 1
    result = []
    while top <= bottom and left <= right:
        for j in range(left, right + 1):
            result.append(rows[top][j])
        for i in range(top + 1, bottom + 1):
            result.append(rows[i][right])
        if top < bottom:
            for j in range(right - 1, left - 1, -1):
                result.append(rows[bottom][j])
        if left < right:
            for i in range(bottom - 1, top, -1):
                result.append(rows[i][left])
        top, bottom, left, right = top + 1, bottom - 1, left + 1, right - 1
    return result


def determinant(rows: list) -> int:
    """Of a square matrix, by the first row."""
    if len(rows) == 1:
        return rows[0][0]
    total, sign = 0, 1
    for column in range(len(rows)):
        minor = [row[:column] + row[column + 1 :] for row in rows[1:]]
        total += sign * rows[0][column] * determinant(minor)
        sign = -sign
    return total


def neighbours(board: list, row: int, column: int) -> int:
    """Living cells around a cell."""
    count = 0
    for i in range(row - 1, row + 2):
        for j in range(column - 1, column + 2):
            if 0 <= i < len(board) and 0 <= j < len(board[0]) and (i != row or j != column):
                count += board[i][j]
    return count


def next_board(board: list) -> list:
    """The next generation of the game of life; nothing lives outside."""
    result = []
    for i in range(len(board)):
        line = []
        for j in range(len(board[0])):
            around = neighbours(board, i, j)
            line.append(1 if around == 3 or (around == 2 and board[i][j] == 1) else 0)
        result.append(line)
    return result


def islands(board: list) -> int:
    """Groups of ones that touch at their sides."""
    left = {(i, j) for i, row in enumerate(board) for j, cell in enumerate(row) if cell == 1}
    count = 0
    while left:
        count += 1
        waiting = [left.pop()]
        while waiting:
            i, j = waiting.pop()
            for place in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                if place in left:
                    left.remove(place)
                    waiting.append(place)
    return count


def cheapest_path(board: list) -> int:
    """The smallest sum from the upper left to the lower right, by steps right and down."""
    best: list = []
    for i, row in enumerate(board):
        line: list = []
        for j, cost in enumerate(row):
            if i == 0 and j == 0:
                line.append(cost)
            elif i == 0:
                line.append(line[j - 1] + cost)
            elif j == 0:
                line.append(best[j] + cost)
            else:
                line.append(min(line[j - 1], best[j]) + cost)
        best = line
    return best[-1]


CASES: dict[str, Draw] = {
    "product": lambda r: [grid(r, r.randint(1, 3), r.randint(2, 3)), grid(r, r.choice([2, 3]), r.randint(1, 3))],
    "turned": lambda r: [grid(r, r.randint(1, 4), r.randint(1, 4)), r.randint(-3, 5)],
    "spiral": lambda r: [grid(r, r.randint(1, 5), r.randint(1, 5))],
    "determinant": lambda r: [grid(r, n := r.randint(1, 4), n, -4, 4)],
    "next_board": lambda r: [grid(r, r.randint(2, 4), r.randint(2, 4), 0, 1)],
    "islands": lambda r: [grid(r, r.randint(1, 4), r.randint(1, 5), 0, 1)],
    "cheapest_path": lambda r: [grid(r, r.randint(1, 5), r.randint(1, 5))],
}
