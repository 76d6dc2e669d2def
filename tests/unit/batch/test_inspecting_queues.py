"""What `ramp doctor` finds where starts in a queue are sold: journal, book and queue compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.book import Entry
from ramp.batch.commands import Completed
from ramp.batch.gridengine.held_jobs import GridEngineQueue
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.inspecting import Promise, inspection
from ramp.batch.slurm.held_jobs import SlurmQueue
from ramp.batch.slurm.system import SlurmSystem
from ramp.batch.waiting.job_queue import OwnJob, Standing, WantedJob
from ramp.batch.waiting.plugin import disagreements
from ramp.errors import BatchSystemError, CommandFailed, SystemRefused
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.model.request import TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings

NOW = from_iso("2026-11-21T08:00:00Z")
SLOT = Slot(NOW + HOUR, NOW + 2 * HOUR, 16, 0.0, start_probability=0.9)
SOLD = Entry("offer-1", "ramp_queue1.offer-1", "7", 1, SLOT, (("", 16),), None, firm=True, made=True)
HELD = replace(SOLD, firm=False, held_until=NOW + MINUTE)
AGREED = Promise("offer-1", "agreement-1", paid=False, end=SLOT.end, ends_as_hold=None)
TAKEN = Promise("offer-1", "", paid=False, end=SLOT.end, ends_as_hold=NOW + MINUTE)
WAITS = (SOLD.name, OwnJob("7", Standing.WAITING))
IS_HELD = (SOLD.name, OwnJob("7", Standing.HELD))


def says(entries: list[Entry], promises: list[Promise], there: list[tuple[str, OwnJob]]) -> list[str]:
    found = disagreements("queue1", entries, promises, there, "slurm", NOW)
    assert all(each.is_finding and each.subject == "queue1" for each in found)
    return [each.says for each in found]


def test_what_agrees_is_no_finding_whether_held_let_go_started_or_ended() -> None:
    assert says([HELD], [TAKEN], [IS_HELD]) == []
    assert says([SOLD], [AGREED], [WAITS]) == []
    assert says([SOLD], [AGREED], [(SOLD.name, OwnJob("7", Standing.STARTED, NOW))]) == []
    assert says([replace(SOLD, started=NOW)], [replace(AGREED, paid=True)], []) == []
    assert says([], [], [(SOLD.name, OwnJob("7", Standing.GONE))]) == []
    ended = OwnJob("7", Standing.STARTED, NOW, ended=True)
    assert says([replace(SOLD, released=True)], [], [(SOLD.name, ended)]) == says([], [], [(SOLD.name, ended)]) == []
    assert says([SOLD], [AGREED], [(SOLD.name, ended)]) == []


def test_jobs_that_no_agreement_covers() -> None:
    (orphan,) = says([], [], [IS_HELD])
    assert orphan == "slurm has the job ramp_queue1.offer-1 (7), and no agreement covers it"
    (over,) = says([replace(SOLD, released=True)], [], [WAITS])
    assert over.endswith("its hold or agreement is over")
    assert says([replace(HELD, held_until=NOW)], [], [IS_HELD]) == [over]


@pytest.mark.parametrize(
    ("entry", "promise", "there", "said"),
    [
        (SOLD, AGREED, [], "does not know its job 7"),
        (SOLD, AGREED, [(SOLD.name, OwnJob("8", Standing.WAITING))], "does not know its job 7"),
        (SOLD, AGREED, [IS_HELD], "still holds its job 7"),
        (HELD, TAKEN, [WAITS], "has released its job 7"),
    ],
)
def test_what_is_sold_or_held_that_the_queue_has_otherwise(
    entry: Entry, promise: Promise, there: list[tuple[str, OwnJob]], said: str
) -> None:
    (found,) = says([entry], [promise], there)
    kind = "sold" if entry.firm else "held"
    assert found == f"ramp_queue1.offer-1 is {kind}, its latest start 2026-11-21T09:00:00Z, and slurm {said}"


def test_journal_and_book_that_do_not_know_the_same() -> None:
    (uncovered,) = says([SOLD], [], [WAITS])
    assert uncovered.endswith("no agreement covers it")
    (bookless,) = says([], [replace(AGREED, paid=True)], [])
    assert bookless == "agreement agreement-1 is paid until 2026-11-21T10:00:00Z, but the book has no slot for it"


def queue_that_says(lines: str) -> SlurmQueue:
    def answers(*_: Any, **__: Any) -> Completed:
        return Completed((), 0, lines, "")

    return SlurmQueue(SlurmSystem(answers, "debug", ""), lambda _: answers)


def test_slurms_queue_lists_our_jobs_whatever_strangers_call_theirs() -> None:
    lines = (
        "ramp_queue1.offer-1|7|PENDING|N/A|0:00|JobHeldUser\n"
        "ramp_queue1.offer-2|8|RUNNING|2026-11-21T08:00:00|1:00|None\n"
        "ramp_queue1.offer-4|11|COMPLETED|2026-11-21T08:00:00|1:00|None\n"
        "ramp_queue10.offer-3|9|PENDING|N/A|0:00|Priority\n"
        "a|b|10|nonsense|ramp_queue1.\n"
    )
    queue = queue_that_says(lines)
    found = queue.own("ramp_queue1.")
    assert found == (
        ("ramp_queue1.offer-1", OwnJob("7", Standing.HELD)),
        ("ramp_queue1.offer-2", OwnJob("8", Standing.STARTED, NOW)),
        ("ramp_queue1.offer-4", OwnJob("11", Standing.STARTED, NOW)),
    )
    assert [job.ended for _, job in found] == [False, False, True]
    with pytest.raises(BatchSystemError):
        queue_that_says("ramp_queue1.x|nothing\n").own("ramp_queue1.")


def test_slurms_queue_finds_a_renamed_job_by_its_number() -> None:
    line = "7|RUNNING|2026-11-21T08:00:00|1:00|None\n"

    def answers(argv: tuple[str, ...], *_: Any, **__: Any) -> Completed:
        by_number = argv[argv.index("-u") + 2 : -2]
        if by_number == ("-j", "8"):
            return Completed(argv, 1, "", "slurm_load_jobs error: Invalid job id specified")
        assert argv[argv.index("-u") + 1] == "alice1"
        return Completed(argv, 0, line if by_number == ("-j", "7") else "", "")

    queue = SlurmQueue(SlurmSystem(answers, "debug", ""), lambda _: answers)
    assert queue.find("ramp_queue1.offer-1", "alice1") == ()
    assert queue.find("ramp_queue1.offer-1", "alice1", "8") == ()
    assert queue.find("ramp_queue1.offer-1", "alice1", "7") == (OwnJob("7", Standing.STARTED, NOW),)


def test_a_simulated_queue_has_nothing_to_compare(tmp_path: Path) -> None:
    look = inspection("queue-bound")
    assert look is not None
    settings = PluginSettings("queue1", 64, 8, NOW, {"system": "simulated"}, tmp_path)
    assert look(settings, NOW) == ((), None)


class Commands:
    """Runs orders for queues as an account: remembers them, and answers with one code and text."""

    def __init__(self, code: int = 0, said: str = "") -> None:
        self.asked: list[tuple[str, tuple[str, ...], str]] = []
        self._answer = code, said

    def as_account(self, account: str) -> Any:
        def run(argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
            self.asked.append((account, argv, stdin))
            return Completed(argv, self._answer[0], "", self._answer[1])

        return run


def queues(commands: Commands) -> tuple[SlurmQueue, GridEngineQueue]:
    slurm = SlurmSystem(commands.as_account(""), "debug", "")
    cell = GridEngine(commands.as_account(""), "all.q", "mpi", "")
    return SlurmQueue(slurm, commands.as_account), GridEngineQueue(cell, commands.as_account)


WANTED = WantedJob("ramp_q.offer-1", TotalCores(4), HOUR, None, "#!/bin/sh", "alice1")


def test_orders_about_a_job_are_the_systems_and_run_as_its_owner() -> None:
    commands = Commands()
    for queue, submits, releases, deletes in zip(
        queues(commands),
        (("sbatch", "--hold"), ("qsub", "-h")),
        (("scontrol", "release"), ("qrls", "-h", "u")),
        (("scancel", "--quiet"), ("qdel",)),
        strict=True,
    ):
        commands.asked.clear()
        queue.submit(WANTED)
        queue.let_go("7", "alice1")
        queue.delete("7")
        submitted, *others = commands.asked
        assert (submitted[0], submitted[1][:2], submitted[2]) == ("alice1", submits, "#!/bin/sh")
        assert others == [("alice1", (*releases, "7"), ""), ("", (*deletes, "7"), "")]


@pytest.mark.parametrize(
    ("place", "gone", "never"), [(0, "Invalid job id", "Invalid account"), (1, "is already in", "denied")]
)
def test_a_job_that_is_gone_is_no_error_a_sure_no_is_told_and_the_rest_is_in_doubt(
    place: int, gone: str, never: str
) -> None:
    over = queues(Commands(1, f"error: {gone}"))[place]
    over.delete("7")
    over.let_go("7")
    with pytest.raises(CommandFailed):
        over.submit(WANTED)
    with pytest.raises(SystemRefused, match=never):
        queues(Commands(1, f"error: {never}"))[place].submit(WANTED)
    with pytest.raises(CommandFailed):
        queues(Commands(1, "error: timed out"))[place].delete("7")
