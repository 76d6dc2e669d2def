"""The wrapper that sudo lets the agent run: what gets through, and that what bypasses a sudoers wildcard does not."""

import getpass
import importlib.machinery
import importlib.util
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import ramp.batch.slurm
from ramp.batch.slurm.reservations import (
    delete_question,
    end_question,
    guard_name,
    make_question,
    narrow_question,
    nodes_question,
    users_question,
    whole_question,
)
from ramp.batch.system import WantedReservation
from ramp.model.instant import HOUR, SECOND

SCRIPT = Path(str(ramp.batch.slurm.__file__)).parent / "ramp-slurm-reservations"
ME = getpass.getuser()


@pytest.fixture(scope="module")
def wrapper() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("ramp_slurm_reservations", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


WANTED = WantedReservation("ramp_s.offer-1", 10 * HOUR, 11 * HOUR + 5 * SECOND, (("n1", 8), ("n2", 3)))
SETTINGS = {"accounts": f"{ME} nobody", "partition": "debug", "prefix": "ramp_s.", "longest_days": "2"}


def test_what_the_plugin_asks_for_gets_through_unchanged(wrapper: ModuleType, slurm: Callable[..., None]) -> None:
    slurm()
    for arguments in (
        make_question(WANTED, ME, "debug"),
        users_question(WANTED.name, ME),
        delete_question(WANTED.name),
    ):
        assert wrapper.build(["scontrol", *arguments], SETTINGS) == ["scontrol", *arguments]


def test_it_tells_its_cluster_and_nothing_else_of_it(wrapper: ModuleType) -> None:
    assert wrapper.build(["scontrol", "show", "config"], SETTINGS) == ["scontrol", "show", "config"]
    for words in (["scontrol", "show", "jobs"], ["scontrol", "show", "config", "-o"], ["scontrol", "show"]):
        with pytest.raises(wrapper.Refused):
            wrapper.build(words, SETTINGS)


MAKE = list(make_question(WANTED, ME, "debug"))

NODES = "".join(f"n{number} 1 8 1 8\n" for number in range(1, 7))
"""As `sinfo` prints them: a socket of eight cores, a thread each."""


def _reservation(name: str, hours: tuple[int, int], nodes: str, cores: int) -> str:
    start, end = (f"1970-01-01T{hour:02d}:00:00" for hour in hours)
    return (
        f"ReservationName={name} StartTime={start} EndTime={end} Duration=01:00:00 Nodes={nodes} NodeCnt=1 "
        f"CoreCnt={cores} Features=(null) PartitionName=debug Flags=SPEC_NODES TRES=cpu=1 Users=root State=INACTIVE\n"
    )


SOLD = _reservation("ramp_s.offer-1", (10, 11), "n1,n2", 16)
PARTLY = _reservation("ramp_s.offer-1", (10, 11), "n1,n2", 11)


@pytest.fixture
def slurm(wrapper: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says which reservations Slurm has; it is half past ten."""

    def ask_nothing_else(command: list[str], settings: dict[str, str]) -> None:
        pytest.fail(f"Slurm is asked: {command}")

    def has(*reservations: str) -> None:
        def asked(command: list[str], settings: dict[str, str]) -> str:
            if command[:3] == ["scontrol", "show", "hostnames"]:
                return command[3].replace(",", "\n")
            if command[-1] == "%N":
                return "n1\nn2\nn3\nn4\n" + ("" if "-p" in command else "n5\nn6\n")
            return "".join(reservations) if command[0] == "scontrol" else NODES

        monkeypatch.setattr(wrapper, "asked", asked)
        monkeypatch.setattr(wrapper, "run", ask_nothing_else)
        monkeypatch.setattr(wrapper.time, "time", lambda: 10.5 * 3600)

    return has


def _guard(hours: tuple[int, int], nodes: str, cores: int, name: str = guard_name(WANTED.name, 1)) -> str:
    return _reservation(name, hours, nodes, cores)


WHOLE = replace(WANTED, parts=(("n1", 8), ("n2", 8)), end=11 * HOUR)
THREE = (("n1", 8), ("n2", 8), ("n3", 8))
FOUR = (*THREE, ("n4", 8))


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (whole_question(WHOLE, ME, "debug"), [_guard((10, 11), "n1,n2", 16)]),
        (whole_question(WHOLE, ME, "debug"), [_guard((9, 12), "n1,n2,n3", 24)]),
        (
            whole_question(WHOLE, ME, "debug"),
            [_guard((10, 11), "n1", 8), _guard((10, 11), "n2", 8, guard_name(WANTED.name, 2))],
        ),
        (end_question(WANTED.name, 11 * HOUR - SECOND), [SOLD]),
        (nodes_question(WANTED.name, 11 * HOUR, (("n2", 8),)), [SOLD]),
        (nodes_question(WANTED.name, 11 * HOUR, THREE), [SOLD, _guard((10, 11), "n3", 8)]),
        (end_question(WANTED.name, 12 * HOUR), [SOLD, _guard((11, 12), "n1,n2", 16)]),
        (end_question(WANTED.name, 12 * HOUR), [PARTLY, _guard((11, 12), "n1,n2", 11)]),
        (
            end_question(WANTED.name, 12 * HOUR),
            [PARTLY, _guard((11, 12), "n1", 8), _guard((11, 12), "n2", 3, guard_name(WANTED.name, 2))],
        ),
        (
            nodes_question(WANTED.name, 12 * HOUR, (("n2", 8), ("n3", 8))),
            [SOLD, _guard((10, 12), "n3", 8), _guard((11, 12), "n2", 8, guard_name(WANTED.name, 2))],
        ),
    ],
)
def test_a_change_of_size_gets_through_where_what_is_taken_is_covered(
    wrapper: ModuleType, slurm: Callable[..., None], words: tuple[str, ...], there: list[str]
) -> None:
    slurm(*there)
    assert wrapper.build(["scontrol", *words], SETTINGS) == ["scontrol", *words]


@pytest.mark.parametrize(
    ("words", "there"),
    [
        # whole nodes that nothing covers, or only for a while, on some of them, in part, or by somebody else's
        (whole_question(WHOLE, ME, "debug"), []),
        (whole_question(WHOLE, ME, "debug"), [SOLD]),
        (whole_question(replace(WHOLE, end=12 * HOUR), ME, "debug"), [_guard((10, 11), "n1,n2", 16)]),
        (whole_question(WHOLE, ME, "debug"), [_guard((10, 11), "n1", 8)]),
        (whole_question(WHOLE, ME, "debug"), [_guard((10, 11), "n1,n2", 15)]),
        (whole_question(WHOLE, ME, "debug"), [_guard((10, 11), "n1,n2", 16, "theirs")]),
        # more nodes
        (nodes_question(WANTED.name, 11 * HOUR, THREE), [SOLD]),
        (nodes_question(WANTED.name, 11 * HOUR, FOUR), [SOLD, _guard((10, 11), "n3", 8)]),
        (nodes_question(WANTED.name, 11 * HOUR, THREE), [SOLD, _guard((11, 12), "n3", 8)]),
        (nodes_question(WANTED.name, 12 * HOUR, THREE), [SOLD, _guard((10, 12), "n3", 8)]),
        # longer
        (end_question(WANTED.name, 12 * HOUR), [SOLD]),
        (end_question(WANTED.name, 12 * HOUR), [SOLD, _guard((11, 12), "n1,n3", 16)]),
        (end_question(WANTED.name, 12 * HOUR), [SOLD, _guard((11, 12), "n1,n2", 16, "theirs")]),
        (end_question(WANTED.name, 12 * HOUR), [PARTLY, _guard((11, 12), "n1,n2", 10)]),
        (end_question(WANTED.name, 12 * HOUR), [PARTLY, _guard((11, 12), "n1", 11)]),
        (
            end_question(WANTED.name, 12 * HOUR),
            [PARTLY, _guard((11, 12), "n1,n2", 11), _reservation("theirs", (11, 13), "n2", 2)],
        ),
        (end_question(WANTED.name, 99 * HOUR), [SOLD, _guard((11, 23), "n1,n2", 16)]),
        (end_question(WANTED.name, 10 * HOUR), [SOLD]),
        # not there, not the market's, not in the form
        (end_question(WANTED.name, 11 * HOUR), []),
        (end_question("theirs", 11 * HOUR), [_reservation("theirs", (10, 11), "n1", 8)]),
        (nodes_question(WANTED.name, 11 * HOUR, (*THREE[:2], ("n5", 8))), [SOLD, _guard((10, 11), "n5", 8)]),
        (end_question(WANTED.name, 11 * HOUR), [SOLD, "what is this?\n"]),
        (("update", "ReservationName=ramp_s.offer-1", "EndTime=now"), [SOLD]),
        (("update", "ReservationName=ramp_s.offer-1", "Nodes=n1"), [SOLD]),
        (("update", "ReservationName=ramp_s.offer-1", "EndTime=uts39600", "Nodes=ALL"), [SOLD]),
        (("update", "ReservationName=ramp_s.offer-1", "EndTime=uts39600", "Nodes=n1,n1"), [SOLD]),
        (("update", "ReservationName=ramp_s.offer-1", "EndTime=uts39600", "Flags=OVERLAP"), [SOLD]),
        (("update", "ReservationName=ramp_s.offer-1", "EndTime=uts39600", "Nodes=n1", "Flags=OVERLAP"), [SOLD]),
        (("update", "JobId=7", "NumNodes=0"), [SOLD]),
        (("update", "JobId=7", "TimeLimit=9"), [SOLD]),
        (("update", "JobId=7,8", "NumNodes=1"), [SOLD]),
    ],
)
def test_a_change_of_size_that_slurm_would_not_look_at_is_refused(
    wrapper: ModuleType, slurm: Callable[..., None], words: tuple[str, ...], there: list[str]
) -> None:
    slurm(*there)
    with pytest.raises(wrapper.Refused):
        wrapper.build(["scontrol", *words], SETTINGS)


def test_only_jobs_of_the_markets_reservations_are_narrowed(
    wrapper: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["scontrol", *narrow_question("7", 2)]
    monkeypatch.setattr(wrapper, "job_of_ours", lambda job, settings: job)
    assert wrapper.build(words, SETTINGS) == words
    monkeypatch.setattr(wrapper, "job_of_ours", lambda job, settings: "")
    with pytest.raises(wrapper.Refused, match="job 7 has ended"):
        wrapper.build(words, SETTINGS)


def test_a_machine_without_slurm_is_refused(wrapper: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapper, "PATH", "/nonexistent")
    with pytest.raises(wrapper.Refused, match="squeue cannot be run: No such file or directory"):
        wrapper.build(["scontrol", *narrow_question("7", 2)], SETTINGS)


def _with(index: int, word: str) -> list[str]:
    return ["scontrol", *MAKE[:index], word, *MAKE[index + 1 :]]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["scontrol"],
        ["scontrol", "shutdown"],
        ["scontrol", "update", "NodeName=n1", "State=DOWN"],
        # the two that a sudoers wildcard lets through: another name later, and flags
        ["scontrol", "update", "ReservationName=ramp_s.1", "ReservationName=x1", f"Users={ME}"],
        ["scontrol", "update", "ReservationName=ramp_s.1", f"Users={ME}", "ReservationName=x1"],
        ["scontrol", *MAKE, "Flags=OVERLAP,IGNORE_JOBS"],
        ["scontrol", "delete", "ReservationName=theirs"],
        ["scontrol", "delete", "ReservationName=ramp_s.1,theirs"],
        ["scontrol", "delete", "ReservationName=ramp_s.1 ReservationName=theirs"],
        ["scontrol", "delete", "ReservationName=ramp_s.1\nreconfigure"],
        ["scontrol", "delete", "ReservationName=ramp_other.1"],
        _with(2, "ReservationName=ramp_s." + "x" * 70),
        _with(3, "PartitionName=other"),
        _with(4, "StartTime=now"),
        _with(5, "EndTime=uts36000"),
        _with(5, "EndTime=uts99999999"),
        _with(6, "Nodes=ALL"),
        _with(6, "Nodes=n1,n1"),
        _with(6, "Nodes=n[1-2]"),
        _with(6, "Nodes=n1,n5"),  # n5 is in another partition
        _with(6, "Nodes=ALL,n1"),
        ["scontrol", "update", "ReservationName=ramp_s.1", f"Users={ME}"],
        ["scontrol", "update", "ReservationName=ramp_s.1", f"Users={ME}", "Flags=OVERLAP"],
        ["scontrol", "update", "ReservationName=ramp_s.1", f"Users={ME}", "Flags=IGNORE_JOBS,MAINT"],
        _with(7, "CoreCnt=8"),
        _with(7, "CoreCnt=8,0"),
        _with(7, "NodeCnt=2"),
        _with(8, "Users=-nobody"),
        _with(8, f"Users={ME},root"),
        _with(8, "Users=no-such-account"),
        _with(8, "Users=daemon"),
        ["scancel", "--quiet"],
        ["scancel", "--quiet", "--user=root"],
        ["scancel", "--quiet", "7 8"],
        ["scancel", "--quiet", "7", "8;9"],
        ["sh", "-c", "id"],
    ],
    ids=lambda words: " ".join(words)[-60:],
)
def test_everything_else_is_refused(wrapper: ModuleType, slurm: Callable[..., None], words: list[str]) -> None:
    slurm()
    with pytest.raises(wrapper.Refused):
        wrapper.build(words, SETTINGS)


@pytest.mark.parametrize("account", ["daemon", "nobody"])
def test_without_a_list_of_accounts_those_of_the_system_get_nothing(wrapper: ModuleType, account: str) -> None:
    with pytest.raises(wrapper.Refused, match="account of the system"):
        wrapper.build(["scontrol", "update", "ReservationName=ramp_1", f"Users={account}", "Flags=IGNORE_JOBS"], {})


@pytest.mark.parametrize(("names", "ours"), [("ramp_s.1", True), ("ramp_s.1,root_maint", False), ("root_maint", False)])
def test_a_job_is_the_markets_only_in_its_reservations_alone(
    wrapper: ModuleType, monkeypatch: pytest.MonkeyPatch, names: str, ours: bool
) -> None:
    done = subprocess.CompletedProcess(["squeue"], 0, f"{names}\n", "")
    monkeypatch.setattr(wrapper, "run", lambda command, settings: done)
    if ours:
        assert wrapper.job_of_ours("7", SETTINGS) == "7"
    else:
        with pytest.raises(wrapper.Refused, match="in no reservation of the market"):
            wrapper.job_of_ours("7", SETTINGS)


def test_settings_that_others_may_write_to_are_refused(wrapper: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "slurm-reservations.conf"
    assert wrapper.read_settings(str(path)) == {}
    path.write_text("prefix = ramp_s.  # of this market\n\naccounts = a b\n")
    path.chmod(0o666)
    with pytest.raises(wrapper.Refused, match="root's alone"):
        wrapper.read_settings(str(path))
    path.chmod(0o644)
    if ME == "root":
        assert wrapper.read_settings(str(path)) == {"prefix": "ramp_s.", "accounts": "a b"}
        for line, told in (("prefix =", "prefix has no value"), ("longest_days = x", "wanted is a number of days")):
            path.write_text(f"{line}\n")
            with pytest.raises(wrapper.Refused, match=told):
                wrapper.read_settings(str(path))
        path.write_text("prefiks = x\n")
        with pytest.raises(wrapper.Refused, match="is no setting"):
            wrapper.read_settings(str(path))
