"""The laboratory's commands where the extra `lab`, numba and matplotlib, is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ramp.cli.main import main
from simulation.lab import AS_WRITTEN, INSTALL_LAB, tell_loops

WITHOUT = "import sys; sys.modules['numba'] = sys.modules['matplotlib'] = None; from ramp.cli.main import main"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    rows = [f"{number} {number} 0 100 8 -1 -1 8 100 -1 1 5 1 1 1 1 -1 -1" for number in range(1, 9)]
    path.write_text("; MaxProcs: 512\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("machine", ["flat:64", "bgl"])
def test_simulations_run_as_written_and_say_so_once(log: Path, machine: str) -> None:
    arguments = ["simulate", "--machine", machine, "--log", str(log), "--scheduler", "easy"]
    environment = {name: value for name, value in os.environ.items() if name != AS_WRITTEN}
    done = subprocess.run(
        [sys.executable, "-c", f"{WITHOUT}; sys.exit(main({arguments!r}))"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"numba is not installed: inner loops run uncompiled, many times slower; install it with {INSTALL_LAB}"
    ]
    assert "utilisation" in done.stdout


def test_nothing_is_said_where_numba_is_there_or_unwanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(AS_WRITTEN, raising=False)
    tell_loops()
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv(AS_WRITTEN, "1")
    tell_loops()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("simulate --machine flat:64 --log LOG --scheduler easy --gantt OUT/gantt.png", "--gantt: "),
        ("simulate --machine flat:64 --log LOG --scheduler easy --timeline OUT/timeline.png", "--timeline: "),
        ("smap bgl --png OUT/map.png", "--png: "),
        ("smap bgl --svg OUT/map.svg", "--svg: "),
        ("experiment run rounds --quick --out OUT/results", ""),
        ("sweep OUT/rounds.toml --out OUT/sweep", ""),
    ],
)
def test_pictures_are_refused_before_any_work(
    words: str,
    option: str,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "rounds.toml").write_text('run = "experiment rounds"\n[vary]\nseed = [1, 2]\n')
    before = sorted(tmp_path.iterdir())
    arguments = [word.replace("LOG", str(log)).replace("OUT", str(tmp_path)) for word in words.split()]
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"ramp: {option}pictures need matplotlib; install it with {INSTALL_LAB}\n"
    assert sorted(tmp_path.iterdir()) == before
