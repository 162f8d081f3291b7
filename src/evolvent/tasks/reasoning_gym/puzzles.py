"""Checks for the data sets in which several answers are right: the answer is tried on the puzzle.

Every check takes an item (metadata with `question` and `answer`) and the whole answer, and wants nothing
around it. An illegal move makes the answer wrong; reasoning-gym passes over most of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from reasoning_gym.algorithmic.cryptarithm import verify_cryptarithm_solution
from reasoning_gym.algorithmic.jugs import verify_solution
from reasoning_gym.factory import create_dataset
from reasoning_gym.games.rush_hour import Board

from evolvent.core.untrusted import read_json
from evolvent.tasks.reasoning_gym.compact import MOVES, STEPS, WORDINGS
from evolvent.tasks.reasoning_gym.expression import NotAFormula, arithmetic

Item = Mapping[str, Any]
MOST_MOVES = 2000


@cache
def _dataset(name: str) -> Any:
    """A data set, for its verifier; the word ladder's knows the words of the configured lengths only."""
    settings = {"min_word_length": 3, "max_word_length": 5} if name == "word_ladder" else {}
    return create_dataset(name, seed=0, size=1, **settings)


def _full_marks(name: str, item: Item, answer: str) -> bool:
    """The data set's own verdict, which may be asked where the form of the answer was checked before."""
    return _dataset(name).score_answer(answer, {"metadata": dict(item), **item}) >= 1 - 1e-9


def _integers(answer: str) -> list[list[int]] | None:
    """Rows of integers, separated by spaces."""
    rows = [line.split() for line in answer.splitlines() if line.strip()]
    if not all(re.fullmatch(r"\d{1,9}", cell) for row in rows for cell in row):
        return None
    return [[int(cell) for cell in row] for row in rows]


def _fills(puzzle: list[list[int]], grid: list[list[int]] | None) -> bool:
    """Whether a grid has the puzzle's shape and its given cells (0 is an empty cell)."""
    return (
        grid is not None
        and [len(row) for row in grid] == [len(row) for row in puzzle]
        and all(g in (0, x) for given, row in zip(puzzle, grid, strict=True) for g, x in zip(given, row, strict=True))
    )


def _latin(grid: list[list[int]], height: int, width: int) -> bool:
    """Every row, column and `height` x `width` box holds 1 to n."""
    n = len(grid)
    boxes = [
        [grid[r + i][c + j] for i in range(height) for j in range(width)]
        for r in range(0, n, height)
        for c in range(0, n, width)
    ]
    return all(sorted(part) == list(range(1, n + 1)) for part in [*grid, *zip(*grid, strict=True), *boxes])


def sudoku(item: Item, answer: str) -> bool:
    """A filled square of boxes, 4x4 or 9x9."""
    grid = _integers(answer)
    box = 2 if len(item["puzzle"]) == 4 else 3
    return grid is not None and _fills(item["puzzle"], grid) and _latin(grid, box, box)


def futoshiki(item: Item, answer: str) -> bool:
    """A latin square with the inequalities; the signs in the answer may stand or be left out."""
    rows = [line for line in answer.splitlines() if line.strip(" ∧∨")]
    grid = _integers("\n".join(re.sub(r"[<>]", " ", line) for line in rows))
    if grid is None or not _fills(item["puzzle"], grid) or not _latin(grid, 1, len(grid)):
        return False
    return all((grid[a][b] < grid[c][d]) == (sign == "<") for a, b, c, d, sign in item["constraints"])


def kakurasu(item: Item, answer: str) -> bool:
    """Zeros and ones with the weighted sums."""
    grid = _integers(answer)
    if grid is None or not _fills(item["puzzle"], grid) or not {x for row in grid for x in row} <= {0, 1}:
        return False
    rows = [sum(j * x for j, x in enumerate(row, 1)) for row in grid]
    columns = [sum(i * x for i, x in enumerate(column, 1)) for column in zip(*grid, strict=True)]
    return rows == item["row_sums"] and columns == item["col_sums"]


def survo(item: Item, answer: str) -> bool:
    """The given numbers in the empty cells, with the sums at the ends of rows and columns."""
    grid, puzzle = _integers(answer), item["puzzle"]
    if grid is None or not _fills(puzzle, grid):
        return False
    cells = [(r, c) for r, row in enumerate(puzzle) for c, cell in enumerate(row) if cell == 0]
    if sorted(grid[r][c] for r, c in cells) != sorted(item["candidate_numbers"]):
        return False
    return all(sum(line[:-1]) == line[-1] for line in [*grid, *map(list, zip(*grid, strict=True))])


def queens(item: Item, answer: str) -> bool:
    """One of the boards that complete the given one."""
    return "\n".join(" ".join(line.split()) for line in answer.splitlines()) in item["valid_answers"]


def _makes(numbers: list[int], target: int, answer: str) -> bool:
    try:
        value, used = arithmetic(answer)
    except NotAFormula:
        return False
    return value == target and sorted(used) == sorted(numbers)


def cryptarithm(item: Item, answer: str) -> bool:
    """A digit for each letter, `A=1,B=2`."""
    pairs = re.fullmatch(r"[A-Z]\s*=\s*\d(\s*,\s*[A-Z]\s*=\s*\d){0,25}", answer)
    found = re.findall(r"([A-Z])\s*=\s*(\d)", answer)
    if not pairs or len({letter for letter, _ in found}) != len(found):
        return False
    mapping = {letter: int(digit) for letter, digit in found}
    words, result = item["words_letters"], item["result_letters"]
    return verify_cryptarithm_solution(mapping, words, result, item["allow_leading_zero"])[0]


def colouring(item: Item, answer: str) -> bool:
    """A JSON map from every vertex to one of the colours, no edge between equal ones."""
    puzzle = item["puzzle"]
    try:
        found = read_json(answer)
    except ValueError:
        return False
    if not isinstance(found, dict) or set(found) != {str(v) for v in puzzle["vertices"]}:
        return False
    if not all(type(c) is int and c in puzzle["color_options"] for c in found.values()):
        return False
    return all(found[str(u)] != found[str(v)] for u, v in puzzle["edges"])


def _moves(answer: str) -> list[str] | None:
    """A JSON list of strings."""
    try:
        found = read_json(answer)
    except ValueError:
        return None
    fits = isinstance(found, list) and len(found) <= MOST_MOVES and all(isinstance(x, str) for x in found)
    return found if fits else None


def jugs(item: Item, answer: str) -> bool:
    """Moves after which a jug holds the target."""
    moves = _moves(answer)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(item["puzzle"]["jug_capacities"])]
    legal = re.compile(rf"(fill|empty) [{letters}]|pour ([{letters}])->(?!\2)[{letters}]")
    if not moves or not all(legal.fullmatch(move) for move in moves):
        return False
    return bool(verify_solution(item["puzzle"], moves)[0])


def knights(item: Item, answer: str) -> bool:
    """Legal moves in turn that swap the two colours; `No` where that is impossible."""
    if not item["is_possible"] or answer.lower() == "no":
        return not item["is_possible"] and answer.lower() == "no"
    moves = _moves(answer)
    if not moves:
        return False
    pieces, turn = dict(item["pieces"]), item["start_turn"]
    for move in moves:
        parts = move.split(",")
        if len(parts) != 3:
            return False
        colour, start, end = parts
        legal = colour == turn and pieces.get(start) == colour and end in item["board"][start] and not pieces.get(end)
        if not legal:
            return False
        pieces[start], pieces[end] = None, colour
        turn = "B" if turn == "w" else "w"
    other = {"w": "B", "B": "w", None: None}
    return pieces == {place: other[piece] for place, piece in item["pieces"].items()}


def hanoi(item: Item, answer: str) -> bool:
    """Legal moves that bring the whole tower to the target, as few as they may be or not."""
    pegs: dict[int, list[int]] = {peg: [] for peg in range(1, item["num_pegs"] + 1)}
    tower = list(range(item["num_disks"], 0, -1))
    pegs[item["start_peg"]] = list(tower)
    moves = [line.strip() for line in answer.splitlines() if line.strip()]
    for move in moves:
        match = re.fullmatch(r"Move disk (\d{1,3}) from Peg (\d{1,3}) to Peg (\d{1,3})", move)
        if not match or len(moves) > MOST_MOVES:
            return False
        disk, start, end = map(int, match.groups())
        if start not in pegs or end not in pegs or not pegs[start] or pegs[start][-1] != disk:
            return False
        if pegs[end] and pegs[end][-1] < disk:
            return False
        pegs[end].append(pegs[start].pop())
    return pegs[item["target_peg"]] == tower


def rush_hour(item: Item, answer: str) -> bool:
    """Moves `A+1 B-2`, each of them free all the way, that bring the red car to the exit."""
    moves = answer.split()
    if len(moves) > MOST_MOVES or not all(re.fullmatch(r"[A-Z][+-][1-5]", move) for move in moves):
        return False
    board = Board(item["board_config"])
    for move in moves:
        car = ord(move[0]) - ord("A")
        if car >= len(board._pieces):
            return False
        piece, steps = board._pieces[car], int(move[1:])
        before = piece.position
        board.move(move[0], steps)
        if piece.fixed or piece.position != before + steps * piece.stride:
            return False
    return bool(board.solved)


def rubik(item: Item, answer: str) -> bool:
    """Moves in Singmaster notation that solve the cube."""
    moves = answer.split()
    if len(moves) > MOST_MOVES or not all(re.fullmatch(r"[1-3]?[UDLRFB]w?'?", move) for move in moves):
        return False
    return _full_marks("rubiks_cube", item, answer)


def sokoban(item: Item, answer: str) -> bool:
    """A walk that puts every box on a goal and never bumps into anything."""
    if not re.fullmatch(rf"[UDLR]{{1,{MOST_MOVES}}}", answer):
        return False
    rows = [row.split() for row in item["gamestr"].splitlines() if row.strip()]
    cells = {(r, c): cell for r, row in enumerate(rows) for c, cell in enumerate(row)}
    free = {place for place, cell in cells.items() if cell != "+"}
    goals = {place for place, cell in cells.items() if cell in "X$%"}
    crates = {place for place, cell in cells.items() if cell in "@$"}
    player = next(place for place, cell in cells.items() if cell in "*%")
    for step in answer:
        down, right = MOVES[step]
        player = (player[0] + down, player[1] + right)
        if player in crates:
            beyond = (player[0] + down, player[1] + right)
            if beyond not in free or beyond in crates:
                return False
            crates = crates - {player} | {beyond}
        if player not in free:
            return False
    return crates <= goals


def lock(item: Item, answer: str) -> bool:
    """A shortest sequence of buttons that reaches the target."""
    return bool(re.fullmatch(r"[ABC](\s*(→|->)\s*[ABC]){0,60}", answer)) and _full_marks("quantum_lock", item, answer)


def ladder(item: Item, answer: str) -> bool:
    """Known words from start to end, one letter changed at a time."""
    words = bool(re.fullmatch(r"[A-Za-z]{1,12}(,\s*[A-Za-z]{1,12}){1,200}", answer))
    return words and _full_marks("word_ladder", item, answer)


def liars(item: Item, answer: str) -> bool:
    """Who is which, one clause a person: `Ann is a knight, and Bob is a knave`."""
    clauses = [
        re.split(r",?\s+and\s+|,\s*", text.strip().removesuffix(".").casefold()) for text in (answer, item["answer"])
    ]
    found, wanted = ([re.fullmatch(r"(\S+) is (?:an? )?(\S+)", c) for c in part] for part in clauses)
    return None not in found and sorted(m.groups() for m in found if m) == sorted(m.groups() for m in wanted if m)


def path(item: Item, answer: str) -> bool:
    """A shortest way, `right down`, or `infeasible`."""
    steps = answer.split()
    if steps == ["infeasible"]:
        return not item["solution"]
    judge = WORDINGS["shortest_path"].judge
    assert judge is not None
    return bool(steps) and all(step in STEPS for step in steps) and judge(item, "".join(STEPS[step] for step in steps))


def boxes(item: Item, answer: str) -> bool:
    """A list of steps, each a map from agents to what they do, after which every box is on its target."""
    try:
        plan = read_json(answer)
    except ValueError:
        return False
    if not isinstance(plan, list) or len(plan) > MOST_MOVES or not all(isinstance(step, dict) for step in plan):
        return False
    state = {place: list(things) for place, things in item["initial_state"].items()}
    for step in plan:
        before = {place: list(things) for place, things in state.items()}
        for agent, action in step.items():
            if not _act(before, state, agent, action):
                return False
    return not any(thing.startswith("box_") for things in state.values() for thing in things)


def _act(before: dict[str, list[str]], state: dict[str, list[str]], agent: str, action: Any) -> bool:
    """Carry out one agent's action on `state`; False if it is not open to the agent at the start of the
    step."""
    place = re.fullmatch(r"Agent\[(\d+\.5), ?(\d+\.5)\]", agent)
    move = re.fullmatch(r"move\(box_(\w+), ?(?:target_(\w+)|square\[(\d+\.5), ?(\d+\.5)\])\)", str(action))
    if not place or not move:
        return False
    here, box = f"{place[1]}_{place[2]}", f"box_{move[1]}"
    if box not in before.get(here, []) or box not in state[here]:
        return False
    if move[2]:
        target = f"target_{move[2]}"
        if move[2] != move[1] or target not in state[here]:
            return False
        state[here].remove(target)
    else:
        there = f"{move[3]}_{move[4]}"
        distance = abs(float(place[1]) - float(move[3])) + abs(float(place[2]) - float(move[4]))
        if there not in state or distance != 1:
            return False
        state[there].append(box)
    state[here].remove(box)
    return True


CHECKS: dict[str, Callable[[Item, str], bool]] = {
    "boxnet": boxes,
    "countdown": lambda item, answer: _makes(item["numbers"], item["target"], answer),
    "cryptarithm": cryptarithm,
    "futoshiki": futoshiki,
    "graph_color": colouring,
    "jugs": jugs,
    "kakurasu": kakurasu,
    "knight_swap": knights,
    "knights_knaves": liars,
    "mini_sudoku": sudoku,
    "n_queens": queens,
    "palindrome_generation": lambda item, answer: answer == answer[::-1] and sorted(answer) == sorted(item["letters"]),
    "puzzle24": lambda item, answer: _makes(item["numbers"], 24, answer),
    "quantum_lock": lock,
    "rubiks_cube": rubik,
    "rush_hour": rush_hour,
    "shortest_path": path,
    "sokoban": sokoban,
    "sudoku": sudoku,
    "survo": survo,
    "tower_of_hanoi": hanoi,
    "word_ladder": ladder,
}
