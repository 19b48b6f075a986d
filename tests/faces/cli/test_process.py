"""The ``bitldp`` program as a process: interrupts, memory, the terminal, and missing libraries."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

FRR = ("--mechanism", "frr", "--epsilon", "4")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")
MEMORY = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak is read from Linux's /proc"
)


def run(
    *arguments: object, code: str = "from bitldp.cli import main; main()"
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def sparse_array(path: Path, rows: int, columns: int) -> Path:
    """Write an array of zeros that takes no room on disk."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + rows * columns * 4)
    return path


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name
)
def test_an_interrupted_run_leaves_no_half_file(tmp_path: Path, number: signal.Signals) -> None:
    source = sparse_array(tmp_path / "x.npy", 40_000_000, 16)  # 2.4 GB: a run of seconds
    target = tmp_path / "out.npy"
    target.write_text("an older output")
    command = [sys.executable, "-m", "bitldp", "perturb", str(source), "-o", str(target), *FRR, "--force"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size > 1 << 20 for path in tmp_path.glob(".out.npy.*.tmp")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert target.read_text() == "an older output"
    assert not list(tmp_path.glob("*.privacy.json"))
    leftover = list(tmp_path.glob(".*"))
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        assert leftover  # nothing can clean up after SIGKILL, and nothing has taken the name of the output
        np.save(source, np.zeros((3, 2)))
        again = run("perturb", source, "-o", target, *FRR, "--force")
        assert again.returncode == 0, again.stderr
        assert list(tmp_path.glob(".*")) == []  # cleaned by the next run
    else:
        assert process.returncode == 128 + number
        assert errors.splitlines()[-1] == "error: interrupted; no output was written"
        assert leftover == []


MEASURED = """
import sys
from bitldp.cli import main
try:
    main()
finally:
    # Not ru_maxrss: Linux counts the parent's memory into it.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print("KiB", peak.split()[1], file=sys.stderr)
"""


def peak(source: Path, target: Path, *options: str) -> float:
    """Return the peak memory of a run in MiB."""
    done = run("perturb", source, "-o", target, *FRR, *options, "--quiet", "--threads", 1, code=MEASURED)
    assert done.returncode == 0, done.stderr
    target.unlink()
    return int(done.stderr.split("KiB ")[1]) / 1024


@pytest.mark.slow
@MEMORY
@pytest.mark.parametrize("form", ["npy", "csv", "parquet", "feather"])
def test_memory_does_not_grow_with_rows(tmp_path: Path, form: str) -> None:
    # The larger file has at least 57 MB more; readers and the allocator may still settle by less than 40.
    peaks = []
    for name, rows in (("small", 2_400_000), ("large", 6_000_000)):
        source, columns = tmp_path / f"{name}.{form}", ("--columns", "a,b,c,d,e,f,g,h")
        if form == "npy":
            sparse_array(source, rows, 8)
            columns = ()
        elif form == "csv":
            line = ",".join(f"0.{i}2345678901234" for i in range(8)) + "\n"
            with source.open("w") as file:
                file.write("a,b,c,d,e,f,g,h\n")
                for _ in range(rows // 4_000):
                    file.write(line * 1_000)
        else:
            rng = np.random.default_rng(1)
            table = pa.table({name: rng.random(rows // 4) for name in "abcdefgh"})
            if form == "parquet":
                pa.parquet.write_table(table, source, row_group_size=rows)  # one row group
            else:
                pa.feather.write_feather(
                    table, source, compression="uncompressed", chunksize=rows
                )  # one batch
        peaks.append(peak(source, tmp_path / f"out.{form}", *columns, "--force"))
        (tmp_path / f"out.{form}.privacy.json").unlink()
        source.unlink()
    assert peaks[1] - peaks[0] < 40, peaks


@pytest.mark.slow
@POSIX
def test_progress_only_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    np.save(tmp_path / "x.npy", np.zeros((500_000, 4), np.float32))
    arguments = ("perturb", tmp_path / "x.npy", "-o", tmp_path / "out.npy", *FRR, "--force")
    piped = run(*arguments)
    assert piped.stdout.startswith(str(tmp_path / "out.npy"))
    assert [line.split(":")[0] for line in piped.stderr.splitlines()] == ["note"] * 3  # no ledger was named
    assert run(*arguments, "--quiet").stderr == ""

    shown = []
    for quiet in ((), ("--quiet",)):
        primary, secondary = pty.openpty()
        command = [sys.executable, "-m", "bitldp", *map(str, arguments), *quiet]
        environment = os.environ | {"TERM": "xterm"}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=secondary, env=environment)
        os.close(secondary)
        text = b""
        try:
            while chunk := os.read(primary, 65536):
                text += chunk
        except OSError:  # Linux's answer once the other end is closed
            pass
        os.close(primary)
        assert process.wait(timeout=60) == 0
        shown.append(text)
    assert b"perturbing" in shown[0]
    assert shown[1] == b""


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {names!r} else found(name, package)
sys.meta_path.insert(0, Absent())
{then}
"""


@pytest.mark.slow
def test_missing_extras() -> None:
    main = "from bitldp.cli import main; main()"
    for names in (("pyarrow",), ("typer", "rich", "pyarrow")):
        done = run("explain", code=WITHOUT.format(names=names, then=main))
        assert done.returncode == 1
        needs = ", ".join(name for name in ("typer", "rich", "pyarrow") if name in names)
        assert done.stderr == f'error: the command line needs {needs}: pip install "bitldp[cli]"\n'
    for names in (("statsmodels",), ("matplotlib",)) if importlib.util.find_spec("flwr") else ():
        done = run("demo", code=WITHOUT.format(names=names, then=main))
        assert done.returncode == 1
        assert done.stderr == f'error: the demo needs {names[0]}: pip install "bitldp[demo]"\n'
    everything = ("typer", "rich", "pyarrow", "sklearn", "matplotlib", "scipy")
    done = run(code=WITHOUT.format(names=everything, then="import bitldp, bitldp_papers.data, bitldp.report"))
    assert done.returncode == 0, done.stderr


def test_module_and_version() -> None:
    command = [sys.executable, "-m", "bitldp", "--version"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == f"bitldp {bitldp.__version__}\n"
    )


@pytest.mark.slow
def test_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\nsecret\n")
    arguments = ("perturb", tmp_path / "x.csv", "-o", tmp_path / "o.csv", *FRR)
    assert run().returncode == 2
    assert run("--help").returncode == 0
    assert run("perturbe").returncode == 2
    assert run("perturb", tmp_path / "x.csv").returncode == 2
    assert run(*arguments, "--epsilon", "four").returncode == 2
    assert run(*arguments).returncode == 2
    failed = run(*arguments, "--columns", "x")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1] == "error: row 2, column 'x': not a number"


@pytest.mark.slow
def test_refused_runs_end_in_order(tmp_path: Path) -> None:
    # Arrow still reads the large file ahead when the run has failed; nothing of that may abort the process.
    source = tmp_path / "x.csv"
    source.write_text("x,y\n1,2\nsecret,3\n" + "1.5,2\n" * 800_000)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("x,y\n1,2\nsecret\n" + "1.5,2\n" * 800_000)
    code = "from bitldp.cli import main; main()"
    processes = []
    for number, path in enumerate((source, ragged) * 4):
        arguments = ("perturb", path, "-o", tmp_path / f"o{number}.csv", *FRR, "--columns", "x")
        command = [sys.executable, "-c", code, *map(str, arguments)]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    answers = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    for errors, returned in answers:
        assert returned == 1, errors
        assert "secret" not in errors
        assert errors.splitlines()[-1].startswith("error: ")


CUT = """
import os, sys
from bitldp.cli.perturb import perturb, table_files
from bitldp.tables.codec import ColumnCodec
perturb.BATCH_BYTES, table_files.HELD = 1 << 16, 0
randomize = ColumnCodec.randomize
def cut(self, x, *, first, **options):
    if first:
        os.truncate(sys.argv[2], 4096)
    return randomize(self, x, first=first, **options)
ColumnCodec.randomize = cut
from bitldp.cli import main
main()
"""


# Cuts the file when a batch of rows was opened: in the middle of whatever reads it then.
CUT_AT_ONCE = CUT.replace("os.truncate(sys.argv[2], 4096)", "pass").replace(
    "from bitldp.cli import main",
    """
from bitldp.cli.perturb import arrow_parts
load = arrow_parts._Memory.read
def shortened(self, start, end):
    if start > 1 << 20:
        os.truncate(sys.argv[2], start + 100)
    load(self, start, end)
arrow_parts._Memory.read = shortened
from bitldp.cli import main""",
)


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(("form", "code"), [("npy", CUT), ("arrow", CUT), ("arrow", CUT_AT_ONCE)])
def test_a_file_that_is_cut_short_ends_no_process(tmp_path: Path, form: str, code: str) -> None:
    # A map of it would: SIGBUS, where a page is touched that the file has no more.
    source, x = tmp_path / f"x.{form}", np.zeros((400_000, 4), np.float32)
    if form == "npy":
        np.save(source, x)
    else:
        table = pa.table({name: x[:, place] for place, name in enumerate("abcd")})
        pa.feather.write_feather(table, source, compression="uncompressed", chunksize=len(x))
    columns = () if form == "npy" else ("--columns", "a,b,c,d")
    done = run("perturb", source, "-o", tmp_path / f"out.{form}", *FRR, *columns, code=code)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {source}: changed while it was being read")
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_the_version_needs_no_extra() -> None:
    code = WITHOUT.format(
        names=("typer", "rich", "pyarrow"), then="from bitldp.cli import main; main(['--version'])"
    )
    done = run(code=code)
    assert (done.returncode, done.stdout) == (0, f"bitldp {bitldp.__version__}\n"), done.stderr


AT_IMPORT = """
import builtins, os, signal
from bitldp.cli import main
imported = builtins.__import__
def interrupting(name, *rest):
    if name == "pyarrow":
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *rest)
builtins.__import__ = interrupting
main()
"""


@pytest.mark.slow
@POSIX
def test_an_interrupt_during_imports_is_no_traceback() -> None:
    done = run("perturb", "x.csv", "-o", "y.csv", *FRR, "--columns", "x", code=AT_IMPORT)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "error: interrupted\n"


# Sends itself Ctrl-C when the extension module is imported: in the middle of `import bitldp`.
EARLY = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == "bitldp._core":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("way", ["module", "script"])
def test_an_interrupt_while_the_package_is_imported_is_no_traceback(tmp_path: Path, way: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(EARLY)  # Python runs it before the program
    script = tmp_path / "bitldp"
    script.write_text("from bitldp.cli import main\nmain()\n")
    path = os.pathsep.join([str(tmp_path), str(Path(bitldp.__file__).parents[1])])
    environment = os.environ | {"PYTHONPATH": path}
    program = ["-m", "bitldp"] if way == "module" else [str(script)]
    command = [sys.executable, *program, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_whenever_a_signal_comes_an_output_has_its_own_report(tmp_path: Path, number: signal.Signals) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "out.npy"
    report = tmp_path / "out.npy.privacy.json"
    np.save(source, np.zeros((2_000, 4), np.float32))
    arguments = ("perturb", source, "-o", target, *FRR, "--force", "--quiet")
    assert run(*arguments).returncode == 0
    command = [sys.executable, "-m", "bitldp", *map(str, arguments)]
    ended: set[int] = set()
    for round_ in range(100):
        if round_ >= 5 and 128 + number in ended:
            break
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while process.poll() is None and not list(tmp_path.glob(".out.npy.*.tmp")):
            assert time.monotonic() < deadline
            time.sleep(0.0005)  # the cores are the program's
        time.sleep(0.003 * (round_ % 5))
        if process.poll() is None:
            process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        ended.add(process.returncode)
        # The last: when all was done, and Python had given its handlers back.
        assert process.returncode in (0, 128 + number, -number), errors
        said = json.loads(report.read_text())["output_sha256"]
        assert said == hashlib.sha256(target.read_bytes()).hexdigest()
        assert list(tmp_path.glob(".*")) == []
    assert 128 + number in ended


@pytest.mark.parametrize("arguments", [["--help"], ["explain", "grr", "--epsilon", "1", "--categories", "3"]])
def test_the_command_line_is_clean_where_warnings_are_errors(arguments: list[str]) -> None:
    """With the typer that Flower holds, too, which imports what click warns of."""
    command = [sys.executable, "-W", "error", "-m", "bitldp", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
