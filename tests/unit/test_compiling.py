"""Compiled loops: once for constants and variables, and by one process at a time."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from simulation import compiling
from simulation.compiling import compiled
from simulation.lab import AS_WRITTEN

with pytest.MonkeyPatch.context() as patch:  # `make test` does without the compiler elsewhere
    patch.delenv(AS_WRITTEN, raising=False)

    @compiled
    def doubled(number: int) -> int:
        return 2 * number

    @compiled
    def doubled_often(times: int) -> int:
        number = 1
        for _ in range(times):
            number = doubled(number)  # the constant 1 at first, then what the loop makes of it
        return number + doubled(1)

    @compiled
    def wrong(number: int) -> int:
        return number.upper()  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def with_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)


def may_be_locked(file: Path) -> bool:
    """Whether somebody else could lock a file now."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


@pytest.mark.slow
def test_constants_and_variables_take_the_same_machine_code() -> None:
    assert doubled_often(5) == 2**5 + 2
    doubled_often.recompile()  # type: ignore[attr-defined]  # what an earlier run has kept asks for nothing
    assert [str(kinds) for kinds in doubled.signatures] == ["(int64,)"]  # type: ignore[attr-defined]


def test_what_cannot_be_compiled_says_so_and_leaves_no_lock() -> None:
    for _ in range(2):
        with pytest.raises(numba.core.errors.TypingError, match="upper"):
            wrong(1)
    assert may_be_locked(Path(__file__))


def test_one_process_compiles_what_is_in_a_file(tmp_path: Path) -> None:
    source = tmp_path / "loops.py"
    source.touch()
    with compiling._taken(str(source)):
        with compiling._taken(str(source)):
            assert not may_be_locked(source)
        assert not may_be_locked(source)
    assert may_be_locked(source)


def test_a_process_that_never_ends_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PATIENCE_S", 0.05)
    source = tmp_path / "loops.py"
    source.touch()
    stopped = os.open(source, os.O_RDONLY)
    fcntl.flock(stopped, fcntl.LOCK_EX)
    with compiling._taken(str(source)):
        pass
    os.close(stopped)


def test_a_file_that_is_not_there_is_not_locked() -> None:
    with compiling._taken("<typed by hand>"):
        pass


@pytest.mark.parametrize(("value", "as_written"), [("1", True), ("0", False), ("", False), (None, False)])
def test_without_the_compiler_a_loop_is_itself(monkeypatch, value, as_written):
    monkeypatch.delenv(AS_WRITTEN, raising=False)
    if value is not None:
        monkeypatch.setenv(AS_WRITTEN, value)

    def halved(number: int) -> int:
        return number // 2

    assert (compiled(halved) is halved) == as_written


def test_names_do_not_load_numba_and_what_is_called_afterwards_is_compiled():
    """Both in one process: a list of plug-ins, then a run."""
    program = (
        "import sys\n"
        "from simulation.schedulers.compiled import running_jobs\n"
        "assert 'numba' not in sys.modules\n"
        "from simulation.schedulers.compiled.conservative import _split\n"
        "import numpy\n"
        "times = numpy.zeros(4, numpy.int64)\n"
        "assert _split(times, times.copy(), 1, 5) == (1, 2)\n"
        "sys.exit('numba' not in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], env=os.environ | {AS_WRITTEN: "0"}, check=True)
