"""A ledger is one file with one lock: whatever process, link, crash or folder comes by, one budget."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bitldp.base import files as _files
from bitldp.base.files import locked
from bitldp.ledger import BudgetExceededError, Ledger, LedgerChangedError, NoLedgerError
from bitldp.privacy import Guarantee

ONE = Guarantee(1.0, 1.0, 1.0, 1.0)
SPAWN = multiprocessing.get_context("spawn")
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions, forks and signals of POSIX")


def begun(path: Path, budget: float = 20.0) -> Path:
    """Begin a ledger."""
    with Ledger.open(path, budget=budget, create=True) as ledger:
        assert ledger.entries == ()
    return path


def spent(path: Path) -> float:
    return Ledger.load(path).spent


# -- processes


def _opens(path, start, queue):
    start.wait()
    released = 0
    while True:
        try:
            with Ledger.open(path) as ledger:
                ledger.charge(ONE)
        except BudgetExceededError:
            break
        released += 1
    queue.put(released)


def _loads(path, start, queue):
    start.wait()
    released = refused = 0
    while refused < 60:
        try:
            ledger = Ledger.load(path)
            ledger.charge(ONE)
            ledger.save(path)
        except LedgerChangedError:
            refused += 1
            continue
        except BudgetExceededError:
            break
        released += 1
    queue.put(released)


def race(work, paths) -> int:
    """Return how many releases processes make that are let off together, one for each path."""
    start, queue = SPAWN.Barrier(len(paths)), SPAWN.Queue()
    workers = [SPAWN.Process(target=work, args=(path, start, queue)) for path in paths]
    for worker in workers:
        worker.start()
    released = sum(queue.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    return released


@pytest.mark.slow
def test_four_processes_release_what_one_budget_covers(tmp_path):
    path = begun(tmp_path / "ledger.json")
    assert race(_opens, [path] * 4) == 20
    assert spent(path) == 20.0
    assert len(Ledger.load(path).entries) == 20


def _removes(path, stop):
    lock = path.with_name(path.name + ".lock")
    while not stop.is_set():
        lock.unlink(missing_ok=True)


@POSIX
@pytest.mark.slow
def test_a_lock_that_is_removed_all_the_time_lets_nobody_in(tmp_path):
    path = begun(tmp_path / "ledger.json")
    stop = threading.Event()
    remover = threading.Thread(target=_removes, args=(path, stop))
    remover.start()
    try:
        assert race(_opens, [path] * 4) == 20
    finally:
        stop.set()
        remover.join()
    assert spent(path) == 20.0


@POSIX
@pytest.mark.slow
def test_a_lock_that_is_removed_while_it_is_held_lets_nobody_in(tmp_path):
    path, order = begun(tmp_path / "ledger.json"), []

    def second():
        script = (
            "from bitldp.ledger import Ledger; from bitldp.privacy import Guarantee\n"
            f"with Ledger.open({str(path)!r}) as ledger:\n"
            "    ledger.charge(Guarantee(1.0, 1.0, 1.0, 1.0)); print(len(ledger.entries))"
        )
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        order.append(int(run.stdout))

    other = threading.Thread(target=second)
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        path.with_name("ledger.json.lock").unlink()
        other.start()
        time.sleep(0.7)  # for the other to have come
        ledger.charge(ONE)  # the file is another one now
        time.sleep(0.2)
        assert not order
    other.join(30)
    assert order == [3]
    assert spent(path) == 3.0


@POSIX
def test_two_who_begin_one_ledger_without_its_lock_do_not_both(tmp_path):
    path = tmp_path / "ledger.json"
    with Ledger.open(path, budget=2.0, create=True) as ledger:
        ledger.charge(ONE)
    first = Ledger(2.0)
    with pytest.raises(LedgerChangedError, match="is there already"):
        first.save(path)
    with pytest.raises(FileExistsError), _files.replacing(path, new=True) as file:
        file.write(b"of another")
    assert spent(path) == 1.0
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_backup_that_is_put_back_is_known_by_a_state(tmp_path):
    path, backup = begun(tmp_path / "ledger.json"), tmp_path / "backup"
    shutil.copy(path, backup)
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        state = ledger.state()
    with Ledger.open(path, at_least=state) as ledger:
        ledger.charge(ONE, 3)
    with Ledger.open(path, at_least=tuple(state)) as ledger:
        assert ledger.spent == 4.0
    shutil.copy(backup, path)
    with (
        pytest.raises(LedgerChangedError, match="does not start with the 1 charges"),
        Ledger.open(path, at_least=state),
    ):
        pass
    with Ledger.open(path) as ledger:  # as many charges, other ones
        ledger.charge(ONE, note="another")
    with pytest.raises(LedgerChangedError, match="older copy"), Ledger.open(path, at_least=state):
        pass
    for wrong in (3, ("1", "x"), (1, 2), (-1, "")):
        with pytest.raises((TypeError, ValueError), match="at_least"), Ledger.open(path, at_least=wrong):
            pass


@pytest.mark.slow
def test_four_processes_that_load_and_save_do_not_overspend(tmp_path):
    path = begun(tmp_path / "ledger.json")
    released = race(_loads, [path] * 4)
    assert spent(path) == released <= 20


@pytest.mark.slow
def test_links_lead_to_one_ledger(tmp_path):
    path = begun(tmp_path / "ledger.json")
    links = []
    for number, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        links.append(tmp_path / folder / "mine.json")
        links[-1].symlink_to(path if number == 0 else Path("..") / "ledger.json")
    chain = tmp_path / "chain.json"
    chain.symlink_to(links[1])
    assert race(_opens, [path, links[0], links[1], chain]) == 20
    assert all(link.is_symlink() for link in (*links, chain))
    assert [spent(each) for each in (path, *links, chain)] == [20.0] * 4
    locks = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.lock"))
    assert locks == ["ledger.json.lock"]


def test_a_save_through_a_link_leaves_the_link(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(3.0).save(path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ledger = Ledger.load(link)
    ledger.charge(ONE)
    ledger.save(path)
    ledger.charge(ONE)
    ledger.save(link)
    assert link.is_symlink()
    assert spent(path) == spent(link) == 2.0


def test_a_link_to_nothing_yet_is_begun_where_it_leads(tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "ledger.json")
    with pytest.raises(NoLedgerError):
        Ledger.load(link)
    begun(link)
    assert link.is_symlink()
    assert spent(tmp_path / "ledger.json") == 0.0


def test_hard_links_are_refused(tmp_path):
    path, other = begun(tmp_path / "ledger.json"), tmp_path / "other.json"
    ledger = Ledger.load(path)
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(ValueError, match="has 2 names"), Ledger.open(name):
            raise AssertionError("open")
        with pytest.raises(ValueError, match="has 2 names"):
            Ledger.load(name)
    with pytest.raises(ValueError, match="has 2 names"):
        ledger.save(path)
    other.unlink()
    ledger.save(path)


# -- folders


def test_a_missing_ledger_is_not_a_new_one(tmp_path):
    path = tmp_path / "ledger.json"
    with pytest.raises(NoLedgerError, match=r"create=True\) begins one"), Ledger.open(path, budget=5.0):
        raise AssertionError("open")
    assert issubclass(NoLedgerError, FileNotFoundError)
    assert list(tmp_path.iterdir()) == []  # not even a lock
    with pytest.raises(ValueError, match="budget: must be given"), Ledger.open(path, create=True):
        raise AssertionError("open")
    with pytest.raises(FileNotFoundError), Ledger.open(tmp_path / "no" / "x.json", budget=5.0, create=True):
        raise AssertionError("open")
    assert not (tmp_path / "no").exists()
    assert not path.exists()


def test_an_emptied_folder_grants_no_budget(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    path = begun(folder / "ledger.json")
    kept = Ledger.load(path)
    kept.charge(ONE)
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        shutil.rmtree(folder)
        folder.mkdir()
        with pytest.raises(LedgerChangedError, match="is gone since it was read"):
            ledger.charge(ONE)
        assert ledger.spent == 1.0
    with pytest.raises(NoLedgerError), Ledger.open(path, budget=20.0):
        raise AssertionError("open")
    with pytest.raises(LedgerChangedError, match="is gone since it was read"):
        kept.save(path)
    assert not path.exists()


def test_a_ledger_that_vanishes_while_one_waits_for_it_is_not_begun_anew(tmp_path):
    path, found = begun(tmp_path / "ledger.json"), []

    def wait() -> None:
        try:
            with Ledger.open(path, budget=20.0):
                found.append("open")
        except NoLedgerError:
            found.append("none")

    with locked(path):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.2)
        path.unlink()
    thread.join()
    assert found == ["none"]
    assert not path.exists()


# -- files


def test_a_file_that_changed_is_not_overwritten(tmp_path):
    path = begun(tmp_path / "ledger.json")
    mine, theirs = Ledger.load(path), Ledger.load(path)
    for ledger in (mine, theirs):
        ledger.charge(ONE)
    mine.save(path)
    before = path.read_bytes()
    with pytest.raises(LedgerChangedError, match="was changed since it was read"):
        theirs.save(path)
    with pytest.raises(LedgerChangedError, match="is there already"):
        Ledger(20.0).save(path)  # a fresh budget in the place of one that is spent
    assert path.read_bytes() == before
    mine.charge(ONE)
    mine.save(path)
    assert spent(path) == 2.0


def test_a_file_that_changes_while_it_is_open_is_noticed(tmp_path):
    path = begun(tmp_path / "ledger.json")
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(LedgerChangedError, match="was changed"):
            ledger.charge(ONE)
        assert ledger.spent == 1.0


@POSIX
def test_permissions_stay(tmp_path, monkeypatch):
    path = begun(tmp_path / "ledger.json")
    sync, seen = os.fsync, []

    def spy(descriptor):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    for mode in (0o600, 0o640, 0o400):
        path.chmod(mode)
        ledger = Ledger.load(path)
        ledger.charge(ONE)
        with monkeypatch.context() as patch:
            patch.setattr(_files.os, "fsync", spy)
            ledger.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert not seen[0] & ~(mode | 0o600)  # nor could others read the temporary file
        seen.clear()
        with Ledger.open(path) as ledger:
            ledger.charge(ONE)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_budget_is_that_of_the_beginning(tmp_path):
    path = tmp_path / "ledger.json"
    with Ledger.open(path, budget=3.0, delta=0.5, create=True) as ledger:
        assert (ledger.budget, ledger.delta) == (3.0, 0.5)
    for other in ({"budget": 4.0}, {"delta": 0.0}, {"budget": 3.0, "delta": 0.25}):
        for create in (True, False):
            with pytest.raises(ValueError, match=r"was created with budget 3 and delta 0\.5, not"):
                Ledger.open(path, **other, create=create).__enter__()
    for same in ({}, {"budget": 3.0}, {"budget": 3.0, "delta": 0.5}):
        with Ledger.open(path, **same, create=True) as ledger:
            assert ledger.budget == 3.0
    for bad in ({"budget": -1.0}, {"budget": float("nan")}, {"delta": -1.0}):
        with pytest.raises(ValueError, match=r"budget|delta"):
            Ledger.open(path, **bad).__enter__()
    with pytest.raises(TypeError, match="create"):
        Ledger.open(path, create="yes").__enter__()


def test_a_charge_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    path = begun(tmp_path / "ledger.json")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        with monkeypatch.context() as patch:
            patch.setattr(_files.os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                ledger.charge(ONE)
        assert ledger.spent == spent(path) == 1.0
        ledger.charge(ONE)  # the disk has space again
    assert spent(path) == 2.0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


# -- who may charge


def test_a_closed_ledger_is_read_and_not_charged(tmp_path):
    path = begun(tmp_path / "ledger.json")
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
        ledger.save(path)
    assert ledger.spent == 1.0
    for act in (lambda: ledger.charge(ONE), lambda: ledger.save(path)):
        with pytest.raises(RuntimeError, match="was closed"):
            act()
    assert spent(path) == 1.0


def test_a_body_that_fails_keeps_its_charges(tmp_path):
    path = begun(tmp_path / "ledger.json")
    with pytest.raises(KeyError), Ledger.open(path) as ledger, ledger.charging(ONE):
        raise KeyError
    assert spent(path) == 1.0
    with Ledger.open(path) as ledger:
        assert ledger.spent == 1.0


def test_a_thread_that_waits_for_itself_is_told(tmp_path):
    path = begun(tmp_path / "ledger.json")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    with locked(path), pytest.raises(RuntimeError, match="in use by this thread"):
        locked(link).__enter__()
    with Ledger.open(path) as ledger:
        with pytest.raises(RuntimeError, match="in use by this thread"):
            Ledger.open(link).__enter__()
        other = Ledger.load(path)
        with pytest.raises(RuntimeError, match="in use by this thread"):
            other.save(path)
        ledger.charge(ONE)
    with Ledger.open(path) as ledger:
        assert ledger.spent == 1.0


def test_threads_take_turns(tmp_path):
    path = begun(tmp_path / "ledger.json")
    granted = []

    def work() -> None:
        for _ in range(10):
            try:
                with Ledger.open(path) as ledger:
                    ledger.charge(ONE)
            except BudgetExceededError:
                return
            granted.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == spent(path) == 20


@POSIX
@pytest.mark.parametrize("kind", ["memory", "open"])
def test_a_forked_child_has_no_budget_of_its_own(kind, tmp_path):
    script = """
import os, sys
from bitldp.ledger import Ledger
from bitldp.privacy import Guarantee
one = Guarantee(1.0, 1.0, 1.0, 1.0)
path, kind = sys.argv[1:]
def spend(ledger):
    ledger.charge(one)
    if os.fork() == 0:
        try:
            ledger.charge(one)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    ledger.charge(one)
    print(ledger.spent)
if kind == "memory":
    spend(Ledger(5.0))
else:
    with Ledger.open(path, budget=5.0, create=True) as ledger:
        spend(ledger)
"""
    path = tmp_path / "ledger.json"
    made = subprocess.run(
        [sys.executable, "-c", script, str(path), kind],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert made.stdout.split() == ["7", "2.0"]
    if kind == "open":
        assert spent(path) == 2.0


@pytest.mark.slow
@POSIX
def test_a_kill_at_any_moment_loses_no_charge(tmp_path):
    """What was released is in the file, and at most one charge more; the lock does not stay behind."""
    script = """
import sys
from bitldp.ledger import Ledger
from bitldp.privacy import Guarantee
one = Guarantee(1.0, 1.0, 1.0, 1.0)
while True:
    with Ledger.open(sys.argv[1]) as ledger:
        ledger.charge(one)
        print("released", flush=True)
"""
    path, released = begun(tmp_path / "ledger.json", 1e6), 0
    for turn in range(12):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * turn)
        process.send_signal(signal.SIGKILL)
        more, _ = process.communicate(timeout=60)
        released += 1 + more.count(b"released")
        assert released <= spent(path) <= released + turn + 1
    (tmp_path / ".ledger.json.0123456789ab.tmp").touch()  # what a kill within a write leaves
    with Ledger.open(path) as ledger:
        ledger.charge(ONE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_a_crash_between_load_and_save_leaves_what_was_there(tmp_path):
    path = begun(tmp_path / "ledger.json")
    script = """
import os, sys
from bitldp.ledger import Ledger
from bitldp.privacy import Guarantee
with Ledger.open(sys.argv[1]) as ledger:
    ledger.charge(Guarantee(1.0, 1.0, 1.0, 1.0))
    os._exit(3)
"""
    made = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60, check=False)
    assert made.returncode == 3
    assert spent(path) == 1.0
    json.loads(path.read_text())
    with Ledger.open(path) as ledger:  # nobody holds the lock of the dead
        ledger.charge(ONE)
    assert spent(path) == 2.0


@pytest.mark.slow
@POSIX
def test_a_lock_that_was_deleted_locks_nobody_in(tmp_path):
    """Who waited for a lock file that is gone waits for the new one."""
    path = begun(tmp_path / "ledger.json")
    lock = tmp_path / "ledger.json.lock"
    with locked(path):
        other = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from pathlib import Path; from bitldp.base.files import locked\n"
                "print('waits', flush=True)\n"
                "with locked(Path(sys.argv[1])): print(Path(sys.argv[1] + '.lock').exists(), flush=True)",
                str(path),
            ],
            stdout=subprocess.PIPE,
        )
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"waits"
        time.sleep(0.3)
        lock.unlink()
    out, _ = other.communicate(timeout=60)
    assert out.strip() == b"True"
