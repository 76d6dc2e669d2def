"""The wrapper that sudo lets the agent run: what gets through, and that what bypasses a sudoers wildcard does not."""

from __future__ import annotations

import getpass
import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import ramp.batch.slurm
from ramp.batch.slurm.reservations import delete_question, make_question, users_question
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


def test_what_the_plugin_asks_for_gets_through_unchanged(wrapper: ModuleType) -> None:
    for arguments in (
        make_question(WANTED, ME, "debug"),
        users_question(WANTED.name, ME),
        delete_question(WANTED.name),
    ):
        assert wrapper.build(["scontrol", *arguments], SETTINGS) == ["scontrol", *arguments]


MAKE = list(make_question(WANTED, ME, "debug"))


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
        ["sh", "-c", "id"],
    ],
    ids=lambda words: " ".join(words)[-60:],
)
def test_everything_else_is_refused(wrapper: ModuleType, words: list[str]) -> None:
    with pytest.raises(wrapper.Refused):
        wrapper.build(words, SETTINGS)


def test_without_a_list_of_accounts_those_of_the_system_get_nothing(wrapper: ModuleType) -> None:
    with pytest.raises(wrapper.Refused, match="account of the system"):
        wrapper.build(["scontrol", "update", "ReservationName=ramp_1", "Users=daemon"], {})


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
        path.write_text("prefiks = x\n")
        with pytest.raises(wrapper.Refused, match="is no setting"):
            wrapper.read_settings(str(path))
