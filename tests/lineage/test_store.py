"""The store on real databases: several writers, locks, damage, other versions, read-only and full disks, secrets.

With EVOLVENT_TEST_POSTGRES=postgresql://... the tests of events run on PostgreSQL too.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.lineage.runs import free_name, run_names
from evolvent.lineage.store import VERSION, Store

POSTGRES = os.environ.get("EVOLVENT_TEST_POSTGRES")
Maker = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """Opens the same store each time it is called; on PostgreSQL in a schema of its own."""
    if request.param == "sqlite":
        yield lambda: Store(tmp_path / "runs")
        return
    if not POSTGRES:
        pytest.skip("EVOLVENT_TEST_POSTGRES names no database")
    import sqlalchemy as sql

    schema = f"test_{uuid.uuid4().hex[:12]}"
    admin = Store(tmp_path / "admin", POSTGRES).engine
    with admin.begin() as db:
        db.execute(sql.text(f"CREATE SCHEMA {schema}"))
    url = f"{POSTGRES}{'&' if '?' in POSTGRES else '?'}options=-csearch_path%3D{schema}"
    yield lambda: Store(tmp_path / "runs", url)
    with admin.begin() as db:
        db.execute(sql.text(f"DROP SCHEMA {schema} CASCADE"))


def test_events_come_back_in_order_and_by_kind(make: Maker) -> None:
    store = make()
    store.add("a", "created", {"spec": {"x": 1.5}})
    store.add_many("b", [("created", {}), ("step", {"t": 0, "text": "é\n\"'"})])
    store.add_many("a", [("step", {"t": t}) for t in range(3)])
    again = make()
    assert [e.data["t"] for e in again.events("a", kinds=("step",))] == [0, 1, 2]
    assert [(e.run, e.kind) for e in again.events()][:3] == [("a", "created"), ("b", "created"), ("b", "step")]
    assert again.events("b", kinds=("step",))[0].data["text"] == "é\n\"'"
    assert sorted((e.run, e.data["t"]) for e in again.latest("step")) == [("a", 2), ("b", 0)]
    after = again.events("a")[1].id
    assert [e.data["t"] for e in again.events("a", after=after)] == [1, 2]
    assert run_names(again) == ["a", "b"]


def test_a_transaction_is_whole_or_not_there(make: Maker) -> None:
    store = make()
    store.add("a", "created", {})
    with pytest.raises(TypeError):
        store.add_many("a", [("step", {"t": 0}), ("step", {"t": object()})])
    assert len(make().events("a")) == 1


def _write(folder: str, url: str | None, name: str, count: int) -> None:
    store = Store(Path(folder), url)
    for t in range(count):
        store.add_many(name, [("step", {"t": t}), ("other", {"t": t})])


def test_several_processes_write_at_once_from_the_first_moment(make: Maker, tmp_path: Path) -> None:
    """They also make the tables at once: nobody has opened the store before."""
    context = multiprocessing.get_context("spawn")
    url = None
    if (where := getattr(make, "__closure__", None)) and len(where) > 1:  # PostgreSQL: make it first, for the address
        url = make().url
    folder = str(tmp_path / "runs")
    processes = [context.Process(target=_write, args=(folder, url, f"run{i}", 40)) for i in range(3)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0, 0, 0]
    store = make()
    for i in range(3):
        assert [e.data["t"] for e in store.events(f"run{i}", kinds=("step",))] == list(range(40))


def test_names_are_taken_once(make: Maker) -> None:
    store, other = make(), make()
    names = [free_name(s, "grpo+sec", "my task.py") for s in (store, other, store)]
    assert names == ["grpo-sec-my-task-1", "grpo-sec-my-task-2", "grpo-sec-my-task-3"]
    assert free_name(store, "sec+lib/my_method.py:fast", "tasks/rows.jsonl:judge.py") == "sec-fast-rows-1"
    assert free_name(store, "my_method.py", "rg/gcd:1") == "my-method-gcd-1"


# --- what can be wrong with a SQLite file ---


def test_a_locked_database(tmp_path: Path) -> None:
    store = Store(tmp_path, patience=0.3)
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(UserError, match="another process keeps it locked; wait"):
        store.add("a", "created", {})
    holder.execute("ROLLBACK")
    store.add("a", "created", {})
    assert run_names(store) == ["a"]


def test_a_database_that_is_locked_whole(tmp_path: Path) -> None:
    Store(tmp_path).close()
    holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UserError, match="another process keeps it locked"):
        Store(tmp_path, patience=0.3)


def test_another_version(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute("UPDATE evolvent SET value = '7'")
    with pytest.raises(UserError, match=f"is of version 7, and this evolvent writes version {VERSION}"):
        Store(tmp_path)


@pytest.mark.parametrize("damage", ["text", "torn", "other tables", "a folder"])
def test_a_file_that_is_no_store(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "store.db"
    if damage == "text":
        file.write_bytes(b"this is not a database, and long enough to be read as one " * 20)
    elif damage == "torn":
        store = Store(tmp_path)
        store.add_many("a", [("step", {"text": "x" * 5000})] * 20)
        store.close()
        data = bytearray(file.read_bytes())
        data[100:20_000] = b"\xff" * 19_900
        file.write_bytes(data)
    elif damage == "other tables":
        with sqlite3.connect(file) as db:
            db.execute("CREATE TABLE evolvent (something INTEGER)")
    else:
        file.mkdir()
    with pytest.raises(UserError, match=r"the store .* cannot be used: "):
        Store(tmp_path).events()


def in_own_mounts(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a mount namespace of its own, after commands that mount things; skip where refused."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not allowed here")
    command = ["unshare", "-rm", "bash", "-ec", script, "bash", sys.executable, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


WRITE = """
import sys; from pathlib import Path
from evolvent.core.errors import UserError; from evolvent.lineage.store import Store
try:
    store = Store(Path(sys.argv[1]))
    for t in range(3000): store.add("a", "step", {"t": t, "text": "x" * 2000})
except UserError as reason:
    print("said:", reason); sys.exit(2)
"""


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    Store(tmp_path / "runs").close()
    mount = 'mount --bind "$2" "$2" && mount -o remount,ro,bind "$2" && "$1" -c "$3" "$2"'
    done = in_own_mounts(mount, str(tmp_path / "runs"), WRITE)
    assert done.returncode == 2, done.stderr
    assert "it cannot be written; check the permissions" in done.stdout
    done = in_own_mounts(mount.replace('"$3" "$2"', '"$3" "$2/new"'), str(tmp_path / "runs"), WRITE)
    assert done.returncode == 2, done.stderr
    assert "cannot make the folder" in done.stdout


def test_a_full_disk(tmp_path: Path) -> None:
    """A small file system in memory; what was committed before stays readable."""
    (tmp_path / "disk").mkdir()
    script = (
        'mount -t tmpfs -o size=1m none "$2"; "$1" -c "$3" "$2/runs" || code=$?; '
        'mkdir "$2/../copy"; cp -r "$2/runs" "$2/../copy/"; exit $code'
    )
    done = in_own_mounts(script, str(tmp_path / "disk"), WRITE)
    assert done.returncode == 2, done.stderr
    assert "the disk is full or fails; free some space" in done.stdout
    events = Store(tmp_path / "copy/runs").events("a")
    assert [e.data["t"] for e in events] == list(range(len(events)))
    assert len(events) > 10


def test_an_event_that_cannot_be_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add("a", "created", {})
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute("UPDATE events SET data = '{\"x\": 0.3***4}'")
    with pytest.raises(UserError, match="its file is damaged; move it away"):
        store.events("a")


# --- addresses and secrets ---


def test_addresses_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("postgresql://me:hunter22@127.0.0.1:9/none", "nonsense://x", "mysql://me:hunter22@h/d"):
        with pytest.raises(UserError) as told:
            Store(tmp_path, url)
        assert "hunter22" not in str(told.value)
        assert ";" in str(told.value) or "pip install" in str(told.value)


def test_secrets_that_look_like_numbers_and_names_leave_the_store_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("DUMMY_API_KEY", "00000000"), ("SORT_KEY", "evaluation"), ("OTHER_KEY", '", "x": "')):
        monkeypatch.setenv(name, value)
    store = Store(tmp_path)
    numbers = {"evaluation": 0.30000000000000004, "many": [100000000, (1e-08, None, True)], "x": ["y", "x"]}
    store.add("a", "evaluation", {**numbers, "told": "the key is 00000000"})
    found = store.events("a")[0].data
    assert found == {**numbers, "many": [100000000, [1e-08, None, True]], "told": "the key is ***"}


def test_secrets_do_not_get_into_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'sk-12345"quoted"67890')
    store = Store(tmp_path)
    data = {"note": 'error 401 for sk-12345"quoted"67890', "model": "https://me:hunter22@host/v1#m", "fine": "a:b@c"}
    store.add("a", "failed", data)
    store.close()
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"sk-12345" not in everything
    assert b"hunter22" not in everything
    assert Store(tmp_path).events("a")[0].data == {
        "note": "error 401 for ***",
        "model": "https://***@host/v1#m",
        "fine": "a:b@c",
    }


def test_texts_are_looked_at_together_and_none_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMMY_API_KEY", "12345678")
    store = Store(tmp_path / "runs")
    data = {"a": ["é12345678", ("\x0112345678", {"b": "postgres://me:hidden@host/x"})], "n": 112345678, "t": "9"}
    store.add("run", "step", data)
    (event,) = store.events("run")
    assert event.data == {"a": ["é***", ["\x01***", {"b": "postgres://***@host/x"}]], "n": 112345678, "t": "9"}


def test_a_run_that_is_forgotten_takes_no_other_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("one", "two"):
        store.add(name, "created", {"a": 1})
    store.forget("one")
    assert [e.run for e in store.events()] == ["two"]
