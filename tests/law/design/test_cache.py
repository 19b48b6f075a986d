"""Designs on disk: what is loaded is checked like new, and what fails is solved again and said so."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest
from bitldp.design import _cache, mvu
from bitldp.design.result import ONE

KEY = _cache.Key((2, 1), 1.25, None, "worst")
OTHER = _cache.Key((2, 1), 2.5, None, "worst")


@pytest.fixture
def solved(monkeypatch):
    """Count the solves; each gives the closed form, which the search would find as well."""
    count = []

    def solve(shape, budget, metric, criterion):
        count.append(budget)
        base = mvu._one_bit(shape, budget)
        return _cache.judged(shape, budget, metric, criterion, base.weights, base.letters)

    monkeypatch.setattr(mvu, "_solve", solve)
    return count


@pytest.fixture
def folder(monkeypatch, tmp_path):
    place = tmp_path / "new" / "cache"
    monkeypatch.setenv("BITLDP_CACHE", str(place))
    mvu._load_or_solve.cache_clear()
    yield place
    mvu._load_or_solve.cache_clear()


def load(key=KEY):
    """Ask as a new process would: with nothing in memory."""
    mvu._load_or_solve.cache_clear()
    return mvu.load_or_solve(*key.shape, key.budget, metric=key.metric, objective=key.criterion)


def signed(content):
    content = {name: value for name, value in content.items() if name != "sha256"}
    return {**content, "sha256": _cache._digest(content)}


def test_a_design_is_solved_once(folder, solved, caplog):
    first = load()
    assert [path.name for path in folder.iterdir()] == [KEY.name()]  # no temporary file is left
    assert load() == first
    assert solved == [1.25]
    load(OTHER)
    assert solved == [1.25, 2.5]
    assert not caplog.records
    text = json.loads((folder / KEY.name()).read_text())
    assert text["solver"] == _cache.SOLVER
    assert all(isinstance(weight, str) for row in text["weights"] for weight in row)


def raised(path: Path) -> None:
    """Rewrite a file with a law that is valid, unbiased and less private, and a right checksum."""
    content = json.loads(path.read_text())
    loud = mvu._one_bit((2, 1), 4.0)
    content["letters"] = [letter.hex() for letter in loud.letters]
    content["weights"] = [[f"{weight:x}" for weight in row] for row in loud.weights]
    path.write_text(json.dumps(signed(content)))


def biased(path: Path) -> None:
    content = json.loads(path.read_text())
    content["letters"][1] = (2 * float.fromhex(content["letters"][1])).hex()
    path.write_text(json.dumps(signed(content)))


def unbalanced(path: Path) -> None:
    content = json.loads(path.read_text())
    content["weights"][0][0] = f"{int(content['weights'][0][0], 16) + 1:x}"
    path.write_text(json.dumps(signed(content)))


def certain(path: Path) -> None:
    content = json.loads(path.read_text())
    content["letters"] = [(0.0).hex(), (1.0).hex()]
    content["weights"] = [[f"{ONE - i * ONE // 3:x}", f"{i * ONE // 3:x}"] for i in range(4)]
    path.write_text(json.dumps(signed(content)))


def wider(path: Path) -> None:
    content = json.loads(path.read_text())
    content["weights"] = content["weights"] * 2
    path.write_text(json.dumps(signed(content)))


def of_another_version(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(signed({**content, "solver": 0})))


def with_a_wrong_checksum(path: Path) -> None:
    content = json.loads(path.read_text())
    content["sha256"] = content["sha256"][::-1]
    path.write_text(json.dumps(content))


def with_other_types(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(signed({**content, "weights": [[1, 2]] * 4})))


def with_endless_letters(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(signed({**content, "letters": ["inf", "nan"]})))


def without_letters(path: Path) -> None:
    content = json.loads(path.read_text())
    del content["letters"]
    path.write_text(json.dumps(signed(content)))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def binary(path: Path) -> None:
    path.write_bytes(b"\x80\x04\x95\xff")


def foreign(path: Path) -> None:
    path.write_text('{"weights": 1}')


def a_list(path: Path) -> None:
    path.write_text("[" * 5 + "]" * 5)


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        raised,
        biased,
        unbalanced,
        certain,
        wider,
        of_another_version,
        with_a_wrong_checksum,
        with_other_types,
        with_endless_letters,
        without_letters,
        truncated,
        empty,
        binary,
        foreign,
        a_list,
        deep,
        a_folder,
    ],
    ids=lambda damage: damage.__name__,
)
def test_a_file_that_fails_is_logged_and_solved_again(folder, solved, caplog, damage):
    first = load()
    damage(folder / KEY.name())
    with caplog.at_level(logging.WARNING):
        assert load() == first
    assert solved == [1.25, 1.25]
    assert "solved again" in caplog.records[0].getMessage()
    if damage is not a_folder:  # which cannot be replaced, but does no other harm
        caplog.clear()
        assert load() == first
        assert solved == [1.25, 1.25]  # it was rebuilt
        assert not caplog.records


def test_the_file_of_another_design_is_refused(folder, solved, caplog):
    load(OTHER)
    (folder / OTHER.name()).rename(folder / KEY.name())
    design = load()
    assert design.budget == 1.25
    assert design.epsilon <= 1.25
    assert "something else" in caplog.text


def test_a_folder_that_cannot_be_written_does_not_fail_the_solve(monkeypatch, tmp_path, solved, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("BITLDP_CACHE", str(blocked / "cache"))
    assert load().epsilon <= 1.25
    assert "not cached" in caplog.text
    load()
    assert solved == [1.25, 1.25]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLDP_CACHE", "")
    assert _cache.folder() is None
    monkeypatch.delenv("BITLDP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cache.folder() == tmp_path / "bitldp"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert _cache.folder() == tmp_path / ".cache" / "bitldp"
    monkeypatch.setattr("sys.platform", "darwin")
    assert _cache.folder() == tmp_path / "Library" / "Caches" / "bitldp"


def test_without_a_cache_nothing_is_written(monkeypatch, solved):
    monkeypatch.setenv("BITLDP_CACHE", "")
    load()
    load()
    assert solved == [1.25, 1.25]


def test_writers_at_the_same_time_leave_one_whole_file(folder, solved):
    design = load()
    threads = [threading.Thread(target=_cache.store, args=(KEY, design)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in folder.iterdir()] == [KEY.name()]
    assert _cache.load(KEY) == design


def test_keys_that_differ_have_other_files():
    keys = [
        KEY,
        OTHER,
        KEY._replace(shape=(1, 2)),
        KEY._replace(criterion="mean"),
        KEY._replace(metric=1.0),
        KEY._replace(metric=2.0),
        KEY._replace(metric=((0.0, 1.0), (1.0, 0.0))),
        KEY._replace(budget=1.2500000000000002),
    ]
    assert len({key.name() for key in keys}) == len(keys)


def test_a_shipped_design_that_is_damaged_is_solved_again(monkeypatch, folder, solved, caplog):
    key = _cache.Key((3, 3), 1.0, None, "mean")
    records = dict(_cache._shipped())
    name = _cache._digest(key.fields())
    record = dict(records[name])
    record["weights"] = record["weights"][::-1]
    monkeypatch.setattr(_cache, "_shipped", lambda: {**records, name: signed(record)})
    assert _cache.shipped(key) is None
    assert "refused" in caplog.text
    assert _cache.shipped(key._replace(budget=1.01)) is None  # there is none
