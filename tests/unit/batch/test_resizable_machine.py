"""Sold slots on a batch system that change their size: in place where it can be, else anew, else not at all."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramp.batch.book import book_path, read_book
from ramp.batch.for_sale import ForSale
from ramp.batch.gridengine.plugin import GridEngineMachine
from ramp.batch.machine import BatchMachine
from ramp.batch.resizable_machine import ResizableBatchMachine, smaller_slot
from ramp.batch.system import Limits, Node, Parts, RunningJob, WaitingJob
from ramp.errors import ConfigurationError, PluginError
from ramp.model.instant import HOUR, MINUTE, Instant, from_iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.contract import Rule, Subject
from ramp.plugins.interface import PluginSettings, ResourcePlugin
from tests.example_counts import examples
from tests.slots import sold
from tests.unit.batch.fake_system import NOW, FakeSystem, lost_of, machine_on

NAME = "ramp_big1.offer-1"
BEGIN, END = NOW + HOUR, NOW + 2 * HOUR


def _machine(system: FakeSystem, folder: Path | None = None, **options: Any) -> ResizableBatchMachine:
    return machine_on(system, ResizableBatchMachine, folder=folder, **options)


def _sold(machine: ResizableBatchMachine, cores: int = 32, key: str = "offer-1") -> Slot:
    unit = RequestUnit(1, 70, NOW + 4 * HOUR, TotalCores(cores), not_before=BEGIN, wall_time=HOUR)
    return sold(machine, key, unit, NOW).slot


def _sold_on(
    system: FakeSystem | None = None, cores: int = 32, **options: Any
) -> tuple[ResizableBatchMachine, FakeSystem]:
    """A machine with a sold slot, and its system."""
    system = system or FakeSystem()
    machine = _machine(system, **options)
    _sold(machine, cores)
    return machine, system


def _runs(system: FakeSystem, parts: Parts, job_id: str = "7", end: Instant | None = END) -> None:
    """A job of the buyer's runs in the slot."""
    system.running.append(RunningJob(job_id, "buyer1", BEGIN, end, parts, NAME))
    system.jobs_in[NAME] = (*system.jobs_in.get(NAME, ()), job_id)


def _reason(answer: Reservation | Refusal) -> str:
    assert answer.code is RefusalCode.SLOT_TAKEN
    return answer.detail


def test_a_slot_shrinks_in_place_under_a_job_that_is_not_in_the_way_and_the_buyer_is_told_where() -> None:
    machine, system = _sold_on()
    _runs(system, (("n3", 8),))
    smaller = machine.resize("offer-1", 3, 16, END - MINUTE, BEGIN + MINUTE)
    assert (smaller.slot.cores, smaller.slot.end, smaller.slot.placement) == (16, END - MINUTE, "n[1,3]")
    there = system.there[NAME]
    assert (there.parts, there.end) == ((("n1", 8), ("n3", 8)), END - MINUTE)
    assert system.jobs_in[NAME] == ("7",)
    assert machine.tend({"offer-1": ""}, BEGIN + MINUTE) == {
        "offer-1": SlotMove("n[1,3]", BEGIN + MINUTE, "ramp_big1.offer-1")
    }
    free = machine.availability(BEGIN + MINUTE)
    assert free.lacking((("n2", 8), ("n4", 8)), BEGIN + MINUTE, END) == ""
    assert free.lacking((("n1", 1),), BEGIN + MINUTE, END - MINUTE)


def test_the_buyers_job_is_narrowed_to_its_first_nodes_where_it_is_wider_than_the_slot_shall_be() -> None:
    machine, system = _sold_on()
    _runs(system, (("n1", 8), ("n2", 8), ("n3", 8)))
    smaller = machine.resize("offer-1", 3, 16, END, BEGIN + MINUTE)
    assert smaller.slot.placement == "n[1-2]"
    assert system.running[0].parts == (("n1", 8), ("n2", 8))


def test_a_job_that_keeps_all_its_nodes_is_named_and_nothing_has_changed() -> None:
    machine, system = _sold_on()
    _runs(system, (("n1", 8), ("n2", 8), ("n3", 8)))
    before, entry = dict(system.there), machine.book.entry("offer-1")
    system.faults = [("narrow_job", "refuse")]
    answer = machine.resize("offer-1", 3, 16, END, BEGIN + MINUTE)
    assert "job 7 cannot be narrowed to 2 nodes" in _reason(answer)
    assert (system.there, machine.book.entry("offer-1")) == (before, entry)
    _runs(system, (("n1", 4), ("n4", 8)), "8")
    _runs(system, (("n2", 4),), "9")
    _runs(system, (("n3", 4),), "10")
    reason = _reason(machine.resize("offer-1", 3, 8, END, BEGIN + MINUTE))
    assert reason == "job 7, 8, 9, 10 has more than 8 cores of it, and cannot be narrowed to them"
    assert (system.there, machine.book.entry("offer-1")) == (before, entry)


def test_jobs_that_the_agent_has_launched_are_not_narrowed_but_in_the_way() -> None:
    """Two jobs of two nodes each, of which one could stay whole; once the other has ended, it does."""
    machine, system = _sold_on(FakeSystem(launched=frozenset({"7", "8"})))
    _runs(system, (("n1", 8), ("n2", 8)))
    _runs(system, (("n3", 8), ("n4", 8)), "8")
    before = dict(system.there), list(system.running)
    answer = machine.resize("offer-1", 3, 16, END, BEGIN + MINUTE)
    assert "job 7, 8 has more than 16 cores of it" in _reason(answer)
    assert (system.there, system.running) == before
    assert "narrow_job" not in system.calls
    system.running.pop()
    smaller = machine.resize("offer-1", 3, 16, END, BEGIN + MINUTE)
    assert smaller.slot.placement == "n[1-2]"
    assert system.running[0].parts == (("n1", 8), ("n2", 8))


def test_beside_what_the_agent_has_launched_the_buyers_own_job_is_narrowed() -> None:
    machine, system = _sold_on(FakeSystem(launched=frozenset({"7"})))
    _runs(system, (("n1", 8), ("n2", 8)))
    _runs(system, (("n3", 8), ("n4", 8)), "8")
    smaller = machine.resize("offer-1", 3, 24, END, BEGIN + MINUTE)
    assert smaller.slot.placement == "n[1-3]"
    assert [job.parts for job in system.running] == [(("n1", 8), ("n2", 8)), (("n3", 8),)]


def test_who_is_still_on_what_would_be_given_up_keeps_it() -> None:
    """A job that is narrowed and yet is there: the cores are not proven free, so nothing is given up."""

    class Lies(FakeSystem):
        def narrow_job(self, job_id: str, nodes: int) -> None:
            pass

    machine, system = _sold_on(Lies())
    _runs(system, (("n1", 8), ("n2", 8), ("n3", 8), ("n4", 8)))
    answer = machine.resize("offer-1", 3, 8, END, BEGIN + MINUTE)
    assert "job 7 still runs" in _reason(answer)
    assert len(system.there[NAME].parts) == 4
    assert machine.reservation("offer-1", BEGIN + MINUTE) is not None


def test_a_slot_grows_by_nodes_and_time_that_are_free_and_by_no_others() -> None:
    machine, system = _sold_on()
    larger = machine.resize("offer-1", 1, 48, END + HOUR, NOW)
    assert (larger.slot.cores, larger.slot.end) == (48, END + HOUR)
    assert (system.there[NAME].end, len(system.there[NAME].parts)) == (END + HOUR, 6)
    _sold(machine, 16, "offer-2")
    assert "1 cores more are not free" in _reason(machine.resize("offer-1", 2, 49, END + HOUR, NOW))
    _sold_after = machine.resize("offer-1", 3, 48, END + HOUR, NOW)
    assert _sold_after == larger
    system.running.append(RunningJob("9", "eve", NOW, NOW + 6 * HOUR, (("n8", 8),)))
    assert "n8 has 0 of 8" in _reason(machine.resize("offer-2", 1, 16, END + HOUR, NOW))


@pytest.mark.parametrize(
    ("options", "until", "reason"),
    [
        ({"horizon_h": 3}, NOW + 4 * HOUR, "nothing is for sale after"),
        ({"longest_slot_h": 1}, END + MINUTE, "a slot may last at most 3600 s"),
        ({"hours": ("Sat 08:00-10:30",)}, END + HOUR, "hours that are not for sale"),
        ({"share": 0.5}, END, "8 cores more are not free and for sale"),
    ],
)
def test_what_the_site_does_not_sell_no_slot_grows_into(options: dict[str, Any], until: Instant, reason: str) -> None:
    machine = _machine(FakeSystem(), for_sale=ForSale(**options))
    _sold(machine)
    cores = 40 if until == END else 32
    assert reason in _reason(machine.resize("offer-1", 1, cores, until, NOW))


def test_a_job_whose_limit_is_beyond_the_slot_keeps_the_slot_from_getting_longer() -> None:
    machine, system = _sold_on()
    _runs(system, (("n1", 8),), end=END + MINUTE)
    reason = _reason(machine.resize("offer-1", 1, 32, END + HOUR, BEGIN + MINUTE))
    assert reason.startswith("the time limit of job 7 already exceeds the slot's end")


def test_what_cannot_be_changed_in_place_is_made_anew_where_nobody_is_in_it_or_would_take_it() -> None:
    machine, system = _sold_on(cores=20)
    smaller = machine.resize("offer-1", 1, 13, END, NOW)
    assert isinstance(smaller, Reservation)
    assert system.there[NAME].parts == (("n1", 8), ("n2", 5))
    assert system.calls.count("make") == 2
    waits = WaitingJob("5", "eve", NOW, 64, HOUR)
    system.waiting.append(waits)
    assert isinstance(machine.resize("offer-1", 2, 12, END, NOW), Reservation), "it has not begun: no job takes it now"
    assert "waiting jobs" in _reason(machine.resize("offer-1", 3, 11, END, BEGIN + MINUTE))
    system.waiting.clear()
    _runs(system, (("n1", 1),))
    assert "jobs 7 are in it" in _reason(machine.resize("offer-1", 3, 11, END, BEGIN + MINUTE))
    assert system.there[NAME].parts == (("n1", 8), ("n2", 4))


def test_what_is_gone_when_it_was_to_be_made_anew_gets_its_old_size_again() -> None:
    system = FakeSystem()
    machine = _machine(system)
    slot = _sold(machine, 20)
    system.faults = [("change", ""), ("running_in", ""), ("remove", ""), ("make", "refuse")]
    assert "busy" in _reason(machine.resize("offer-1", 1, 13, END, NOW))
    assert sum(count for _, count in system.there[NAME].parts) == 20
    kept = machine.reservation("offer-1", NOW)
    assert kept.slot == slot


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("cores", [16, 48])
@pytest.mark.parametrize(("step", "undone"), [(4, False), (5, True)])
def test_a_change_of_which_nobody_knows_is_made_good_by_the_same_step_or_undone_by_the_next(
    fault: str, cores: int, step: int, undone: bool, tmp_path: Path
) -> None:
    machine, system = _sold_on(folder=tmp_path)
    system.faults = [("reservations", ""), ("change", fault), ("reservations", "hang")]
    with pytest.raises(PluginError):
        machine.resize("offer-1", 4, cores, END, NOW)
    wanted = 32 if undone else cores
    again = _machine(system, tmp_path)
    system.faults = []
    answer = again.resize("offer-1", step, wanted, END, NOW)
    assert (answer.slot.cores, again.reservation("offer-1", NOW)) == (wanted, answer)
    assert sum(count for _, count in system.there[NAME].parts) == wanted


def test_a_change_that_a_crash_cut_short_is_ended_without_ending_the_jobs_in_the_slot(tmp_path: Path) -> None:
    class Dies(FakeSystem):
        dies: bool = True

        def change(self, *given: object) -> bool:
            if self.dies:
                booked = read_book(book_path(tmp_path, "big1"))
                assert [each.parts for each in booked] == [(("n1", 8), ("n2", 8))]
                raise KeyboardInterrupt
            return super().change(*given)  # type: ignore[arg-type]

    machine, system = _sold_on(Dies(), folder=tmp_path)
    _runs(system, (("n1", 8),))
    with pytest.raises(KeyboardInterrupt):
        machine.resize("offer-1", 4, 16, END, BEGIN + MINUTE)
    system.dies = False
    again = _machine(system, tmp_path)
    assert lost_of(again.tend({"offer-1": ""}, BEGIN + 2 * MINUTE)) == {}
    assert system.there[NAME].parts == (("n1", 8), ("n2", 8))
    assert system.jobs_in[NAME] == ("7",)
    assert system.calls.count("remove") == 0


def test_steps_that_come_late_and_steps_that_were_others_change_nothing() -> None:
    machine, system = _sold_on()
    first = machine.resize("offer-1", 4, 16, END, NOW)
    assert machine.resize("offer-1", 4, 16, END, NOW) == first
    other, late = machine.resize("offer-1", 4, 8, END, NOW), machine.resize("offer-1", 3, 8, END, NOW)
    assert "was another change" in _reason(other)
    assert "by step 4 since" in _reason(late)
    assert len(system.there[NAME].parts) == 2


def test_a_grid_engine_which_changes_no_reservation_says_so_by_having_no_resize() -> None:
    """Its programs are qrsub, qrstat and qrdel alone; buyers are refused with `cannot_resize`."""
    assert ResizableBatchMachine.resize is not ResourcePlugin.resize
    assert GridEngineMachine.resize is ResourcePlugin.resize


def test_a_box_of_a_torus_keeps_its_nodes() -> None:
    class Boxes:
        pass

    machine, _ = _sold_on(places=Boxes())
    assert "box of the torus" in _reason(machine.resize("offer-1", 1, 16, END, NOW))
    assert isinstance(machine.resize("offer-1", 1, 32, END - MINUTE, NOW), Reservation)


_NODES: Parts = tuple((f"n{number}", cores) for number, cores in enumerate((8, 8, 4, 8, 2, 6), start=1))


@given(data=st.data())
@settings(max_examples=examples(200))
def test_what_stays_of_a_slot_is_of_the_size_asked_for_and_has_all_that_its_jobs_keep(data: st.DataObject) -> None:
    free = dict(_NODES)
    jobs = []
    for number in range(data.draw(st.integers(0, 3))):
        names = data.draw(st.sets(st.sampled_from([name for name, _ in _NODES]), min_size=1))
        parts = []
        for name in sorted(names):
            if free[name]:
                count = data.draw(st.integers(1, free[name]))
                free[name] -= count
                parts.append((name, count))
        if parts:
            jobs.append(RunningJob(str(number), "u", 0, None, tuple(parts)))
    cores = data.draw(st.integers(1, 35))
    whole = data.draw(st.booleans())
    found = smaller_slot(_NODES, cores, jobs, whole=whole)
    least = sum(_needs([replace(job, parts=job.parts[:1]) for job in jobs], whole=whole).values())
    if found is None:
        assert cores < least, "each job on its first node alone would do"
        return
    kept, narrowed = dict(found.parts), dict(found.jobs)
    assert sum(kept.values()) == cores
    assert all(0 < count <= dict(_NODES)[name] for name, count in found.parts)
    for name in dict(_NODES):
        used = sum(dict(job.parts[: narrowed.get(job.job_id, 99)]).get(name, 0) for job in jobs)
        assert used <= kept.get(name, 0)
    assert all(0 < nodes < len(job.parts) for job in jobs if (nodes := narrowed.get(job.job_id)) is not None)
    everything = sum(_needs(jobs, whole=whole).values())
    assert not narrowed or everything > cores, "a job was narrowed though all had room"


def _needs(jobs: Sequence[RunningJob], *, whole: bool) -> dict[str, int]:
    needs: dict[str, int] = {}
    for job in jobs:
        for name, count in job.parts:
            needs[name] = dict(_NODES)[name] if whole else needs.get(name, 0) + count
    return needs


def test_whole_nodes_stay_whole_where_that_can_be() -> None:
    nodes = tuple((node.name, node.cores) for node in (Node("a", 4), Node("b", 8), Node("c", 4)))
    found = smaller_slot(nodes, 8, [], whole=True)
    assert found.parts == (("b", 8),)


@pytest.mark.parametrize(
    ("limits", "cores", "end", "said"),
    [
        (Limits(longest=HOUR), 32, END + MINUTE, "a slot may last at most 3600 s"),
        (Limits(nodes=4), 40, END, "40 cores on 5 nodes are more than a job here may have"),
        (Limits(cores=36), 40, END, "40 cores on 5 nodes are more than a job here may have"),
    ],
)
def test_a_slot_does_not_grow_beyond_the_systems_limits(limits: Limits, cores: int, end: Instant, said: str) -> None:
    machine, system = _sold_on(FakeSystem(limits=limits))
    assert _reason(machine.resize("offer-1", 1, cores, end, NOW)) == said
    system.limits = Limits()
    assert isinstance(machine.resize("offer-1", 1, cores, end, NOW), Reservation)


NOW = from_iso("2026-11-21T08:00:00Z")


@pytest.mark.parametrize("kind", [BatchMachine, ResizableBatchMachine])
def test_keeps_the_contract(kind: type[BatchMachine], plugin_rule: Rule, tmp_path: Path) -> None:
    system = FakeSystem()

    def open_plugin(settings: PluginSettings) -> BatchMachine:
        if settings.options:
            raise ConfigurationError("unknown")
        return kind(system, settings, ForSale())

    subject = Subject(open_plugin, PluginSettings("big1", 64, 8, NOW - MINUTE), NOW, tmp_path / "states")
    plugin_rule.check(subject)
    assert not system.there, "what was given back is on the system still"
