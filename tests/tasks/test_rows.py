"""Finite tasks: reading files, splits that never move, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.tasks.base import SPLITS, distinct
from evolvent.tasks.rows import Row, RowTask, load_rows, read_rows


def rows(count: int, **columns: Callable[[int], object]) -> list[Row]:
    """Rows `i=` with the answer i, and more columns."""
    extra = columns.items()
    return [Row(f"row {i}", {"prompt": f"{i}=", "answer": str(i), **{k: f(i) for k, f in extra}}) for i in range(count)]


def keys(task: RowTask) -> dict[str, set[str]]:
    return {split: {p.key for p in task.listed(split)} for split in SPLITS}


@given(count=st.integers(10, 60), seed=st.integers(0, 10**6))
def test_splits_are_disjoint_complete_and_do_not_depend_on_the_order(count: int, seed: int) -> None:
    made = rows(count)
    shuffled = random.Random(seed).sample(made, count)
    first, second = keys(RowTask("t", "t", made)), keys(RowTask("t", "t", shuffled))
    assert first == second
    assert sum(map(len, first.values())) == len(set.union(*first.values())) == count
    assert all(first.values())
    assert len(first["test"]) == max(1, round(0.2 * count))
    assert len(first["gate"]) == max(1, round(0.1 * count))


def test_every_category_is_in_every_split() -> None:
    task = RowTask("t", "t", rows(20, category=lambda i: "easy" if i < 16 else "hard"))
    assert task.categories == ("easy", "hard")
    for split in SPLITS:
        assert {p.category for p in task.listed(split)} == {"easy", "hard"}
        for category in task.categories:
            assert task.draw(split, stream(0), category).category == category


def test_categories_can_be_chosen() -> None:
    made = rows(20, category=lambda i: "easy" if i < 10 else "hard")
    task = RowTask("t", "t", made, ("hard",))
    whole = RowTask("t", "t", made)
    assert task.categories == ("hard",)
    for split in SPLITS:
        assert keys(task)[split] == {p.key for p in whole.listed(split) if p.category == "hard"}
    with pytest.raises(UserError, match="did you mean hard"):
        RowTask("t", "t", made, ("hrd",))


def test_a_column_split_decides_and_the_gate_is_taken_from_training_if_there_is_none() -> None:
    task = RowTask("t", "t", rows(20, split=lambda i: "train" if i < 16 else "test"))
    assert {p.data["answer"] for p in task.listed("test")} == {"16", "17", "18", "19"}
    assert len(task.listed("gate")) == 2
    assert len(task.listed("train")) == 14
    named = RowTask("t", "t", rows(6, split=lambda i: ("train", "validation", "test")[i // 2]))
    assert [p.data["answer"] for p in named.listed("gate")] == ["2", "3"]
    assert "split" not in named.listed("gate")[0].data


def test_the_split_is_no_part_of_the_key() -> None:
    plain = {p.data["answer"]: p.key for s in SPLITS for p in RowTask("t", "t", rows(12)).listed(s)}
    marked = RowTask("t", "t", rows(12, split=lambda i: SPLITS[i % 3]))
    assert plain == {p.data["answer"]: p.key for s in SPLITS for p in marked.listed(s)}


def test_distinct_finds_every_problem_of_a_finite_task() -> None:
    task = RowTask("t", "t", rows(40, category=lambda i: str(i % 2)))
    found = distinct(task, "train", 1000)
    assert {p.key for p in found} == keys(task)["train"]
    assert [p.category for p in found[:6]] == ["0", "1", "0", "1", "0", "1"]
    assert [p.key for p in distinct(task, "train", 5)] == [p.key for p in found[:5]]


def test_draw_is_uniform_over_the_rows_of_a_split() -> None:
    task = RowTask("t", "t", rows(10))
    rng = stream(3)
    drawn = [task.draw("train", rng).key for _ in range(700)]
    counts = [drawn.count(key) for key in keys(task)["train"]]
    assert len(counts) == 7
    assert min(counts) > 60


@pytest.mark.parametrize(
    ("answer", "completion", "outcome"),
    [
        ("12", "12", 1),
        ("12", " 12\n", 1),
        ("12", "well\n12", 1),
        ("12", "<answer>12</answer> or so", 1),
        (12, "12", 1),
        ("12", "12 or 13", 0),
        ("12", "12\n13", 0),
        ("12", "012", 0),
        ("12", "", 0),
        ("two\nlines", "<answer>two\nlines</answer>", 1),
    ],
)
def test_an_answer_is_matched_letter_for_letter(answer: object, completion: str, outcome: float) -> None:
    made = [*rows(11), Row("row 11", {"prompt": "x", "answer": answer})]
    task = RowTask("t", "t", made)
    problem = next(p for s in SPLITS for p in task.listed(s) if p.data["prompt"] == "x")
    assert task.score(problem, completion).outcome == outcome
    gold = task.gold(problem)
    assert gold is not None
    assert task.score(problem, gold[0].text).outcome == 1


def test_prompts_are_text_or_messages() -> None:
    made = rows(12)
    made[3] = Row("row 3", {"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]})
    made[4] = Row("row 4", {"question": "q"})
    prompts = {p.prompt for s in SPLITS for p in RowTask("t", "t", made).listed(s)}
    assert (("system", "s"), ("user", "u")) in prompts
    assert (("user", "q"),) in prompts


def broken(change: Callable[[list[Row]], object], count: int = 20) -> list[Row]:
    made = rows(count)
    change(made)
    return made


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([], "has no problems"),
        (rows(9), "has 9 rows, too few.*at least 10.*column `split`"),
        (broken(lambda m: m.append(Row("row 20", m[4].data))), "row 4 and row 20 are the same problem; remove"),
        (
            broken(lambda m: m.extend(Row(f"row {20 + i}", m[i].data) for i in range(3))),
            "row 0 and row 20 are the same problem; 3 rows in all",
        ),
        (
            broken(lambda m: m.append(Row("row 20", {**m[4].data, "answer": "x"}))),
            "row 4 and row 20 show the model the same prompt .they differ in answer.",
        ),
        (
            [
                *rows(20, split=lambda i: SPLITS[i % 3]),
                Row("row 20", {"prompt": "1=", "answer": "1", "split": "test"}),
            ],
            "row 1 .gate. and row 20 .test. are the same problem, a leak",
        ),
        (rows(20, split=lambda i: "trian"), "split 'trian'; did you mean train"),
        (rows(20, split=lambda i: "train" if i < 19 else None), "row 19 has no `split` while others have"),
        (rows(20, split=lambda i: "train"), "has no row for test"),
        (rows(20, split=lambda i: "test"), "has no row for train and gate"),
        (rows(20, category=lambda i: "a" if i else "b"), "category `b` has too few rows .1."),
        (rows(20, category=lambda i: "a" if i else None), "row 0 has no `category` while others have"),
        (broken(lambda m: m[2].data.pop("prompt")), r"row 2 has no `prompt`.*columns: answer"),
        (broken(lambda m: m[2].data.update(prompt="")), "the prompt of row 2 should be text"),
        (
            broken(lambda m: m[2].data.update(prompt=[{"role": "me", "content": "x"}])),
            "row 2 should be text, or a list",
        ),
        (broken(lambda m: m[2].data.update(answer={1, 2})), "column `answer` of row 2 is a set"),
        (broken(lambda m: m[2].data.update(prompt="\ud800")), "column `prompt` of row 2 holds half a character"),
    ],
)
def test_rows_that_are_refused(made: list[Row], said: str) -> None:
    with pytest.raises(UserError, match=said):
        RowTask("t", "file.x", made)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_same_rows_from_three_formats_are_the_same_task(tmp_path: Path) -> None:
    data = [r.data for r in rows(15)]
    jsonl = write(tmp_path / "a.jsonl", "\n".join(json.dumps(d) for d in data) + "\n\n")
    csv = write(tmp_path / "a.csv", "prompt,answer\n" + "".join(f'"{d["prompt"]}",{d["answer"]}\n' for d in data))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(data), tmp_path / "a.parquet")
    tasks = [load_rows(path) for path in (jsonl, csv, tmp_path / "a.parquet")]
    assert keys(tasks[0]) == keys(tasks[1]) == keys(tasks[2])
    assert tasks[0].name == "a"


def test_a_line_of_text_is_a_prompt(tmp_path: Path) -> None:
    (row,) = read_rows(write(tmp_path / "a.jsonl", '"say hello"\n'))
    assert row == Row("line 1", {"prompt": "say hello"})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"prompt": "x"}\n\n{"prompt": \n', "a.jsonl line 3 is not JSON"),
        ("a.jsonl", '{"prompt": "x", "answer": ' + "1" * 5000 + "}", "a.jsonl line 1 is not JSON.*5000 digits"),
        ("a.jsonl", "[1, 2]\n", "a.jsonl line 1 is a list"),
        ("a.jsonl", '{"prompt": "1"}\n' * 12, "line 1 has no `answer`.*a.jsonl:my_reward.py"),
        ("a.jsonl", '{"prompt": "1", "answer": null}\n', "the answer of line 1"),
        ("a.jsonl", "", 'a.jsonl has no problems; at least 10 rows are needed, each a line, as in {"prompt"'),
        ("a.csv", "prompt,answer\n", "a.csv has no problems; at least 10 rows .* after a first line prompt,answer"),
        ("a.csv", "", "line 1 should name every column"),
        ("a.csv", "prompt,answer\n1,2\n1,2,3\n", "line 3 has not 2 fields"),
        ("a.csv", "prompt,answer\n1,2\n1\n", "line 3 has not 2 fields"),
        ("a.csv", 'prompt,answer\n1,2\n1,"2\n', "is not CSV"),
        ("a.parquet", "no parquet at all", "a.parquet is not a Parquet file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_rows(write(tmp_path / name, text))


def test_a_file_that_is_no_text_and_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"prompt": "\xff"}')
    with pytest.raises(UserError, match=r"a\.jsonl is not UTF-8 text"):
        load_rows(tmp_path / "a.jsonl")
    with pytest.raises(UserError, match=r"there is no file .*b\.jsonl; did you mean a.jsonl"):
        load_rows(tmp_path / "b.jsonl")
    with pytest.raises(
        UserError, match=r"zzzzzzzzzzzz\.jsonl; its folder has a\.jsonl: check the path, or give a \.py file"
    ):
        load_rows(tmp_path / "zzzzzzzzzzzz.jsonl")
    with pytest.raises(
        UserError, match=r"zzzzzzzzzzzz\.csv; its folder has no \.csv file: check .* rows in \.jsonl, \.csv"
    ):
        load_rows(tmp_path / "zzzzzzzzzzzz.csv")
    with pytest.raises(UserError, match=r"there is no file .*b\.csv, nor a folder .*no; check the path"):
        load_rows(tmp_path / "no" / "b.csv")
