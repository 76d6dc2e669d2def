"""Holds on a batch system that fails, forgets and lies: what is answered is there, what is not held is gone."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramp.batch.book import BOOK_VERSION, HoldBook, book_path, read_book
from ramp.batch.for_sale import ForSale
from ramp.batch.inspecting import Remark
from ramp.batch.machine import SNAPSHOT_AGE_S, BatchMachine
from ramp.batch.reconciling import own_prefix, reservation_name
from ramp.batch.system import Node, RunningJob, SystemReservation, WantedReservation
from ramp.errors import PluginError, StateDamaged, SystemRefused, WrongVersion
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import Nodes, RequestUnit, TotalCores
from ramp.model.slot import Reservation, Slot, SlotMove
from tests.slots import quoted, refused
from tests.unit.batch.fake_system import NOW, FakeSystem, lost_of, machine_on

UNIT = RequestUnit(1, 70, NOW + 4 * HOUR, TotalCores(20), not_before=NOW + HOUR, wall_time=HOUR)


def _machine(system: FakeSystem, folder: Path | None = None, **options: Any) -> BatchMachine:
    return machine_on(system, folder=folder, snapshot_age_s=SNAPSHOT_AGE_S, **options)


def _hold(machine: BatchMachine, key: str = "offer-1") -> Reservation | Refusal:
    return machine.hold(key, UNIT, quoted(machine, UNIT, NOW), NOW + MINUTE, NOW)


def test_a_hold_is_a_reservation_for_the_market_and_then_for_the_buyer() -> None:
    system = FakeSystem()
    machine = _machine(system)
    held = _hold(machine)
    assert held.reservation_id == "ramp_big1.offer-1"
    made = system.there["ramp_big1.offer-1"]
    assert (made.start, made.end, made.users) == (NOW + HOUR, NOW + 2 * HOUR, ("market",))
    assert made.parts == (("n1", 8), ("n2", 8), ("n3", 4))
    assert machine.confirm("offer-1", NOW) == replace(held, firm=True, held_until=None)
    assert system.there["ramp_big1.offer-1"].users == ("market",)
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    assert system.there["ramp_big1.offer-1"].users == ("buyer1",)


def test_a_create_that_is_said_to_have_failed_is_looked_for() -> None:
    system = FakeSystem(faults=[("make", "after")])
    assert isinstance(_hold(_machine(system)), Reservation)


def test_a_create_of_which_nobody_knows_is_in_doubt_and_may_be_asked_for_again() -> None:
    system = FakeSystem(faults=[("make", "before")])
    machine = _machine(system)
    with pytest.raises(PluginError) as failed:
        _hold(machine)
    assert failed.value.transient
    assert machine.reservation("offer-1", NOW) is None
    assert machine.reservations(NOW) == ()
    assert isinstance(_hold(machine), Reservation)


def test_a_create_that_comes_late_is_found_by_name() -> None:
    system = FakeSystem(faults=[("make", "after"), ("reservations", "hang")])
    machine = _machine(system)
    system.calls.clear()
    slot = quoted(machine, UNIT, NOW)
    system.faults = [("reservations", ""), ("make", "after"), ("reservations", "hang")]
    with pytest.raises(PluginError):
        machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)
    found = machine.reservation("offer-1", NOW)
    assert not found.firm


def test_fewer_nodes_than_wanted_are_no_hold_and_nothing_is_left() -> None:
    system = FakeSystem(faults=[("make", "fewer")])
    machine = _machine(system)
    answer = _hold(machine)
    assert answer.code is RefusalCode.SLOT_TAKEN
    assert not system.there
    assert machine.reservation("offer-1", NOW) is None


def test_a_sure_no_is_a_refusal_and_the_picture_is_taken_anew() -> None:
    system = FakeSystem(faults=[("snapshot", ""), ("make", "refuse")])
    machine = _machine(system)
    answer = _hold(machine)
    assert isinstance(answer, Refusal)
    before = system.calls.count("snapshot")
    machine.quote(UNIT, NOW)
    assert system.calls.count("snapshot") == before + 1


@pytest.mark.parametrize("refusals", [0, 5], ids=["at once", "though it says busy for a while after its start"])
def test_what_the_system_has_forgotten_is_made_again_before_it_is_confirmed(refusals: int) -> None:
    system = FakeSystem()
    machine = _machine(system)
    assert isinstance(_hold(machine), Reservation)
    system.there.clear()
    system.faults = [("make", "refuse")] * refusals
    assert isinstance(machine.confirm("offer-1", NOW), Reservation)
    assert "ramp_big1.offer-1" in system.there


def test_what_the_system_has_given_to_another_is_not_confirmed() -> None:
    system = FakeSystem()
    machine = _machine(system)
    assert isinstance(_hold(machine), Reservation)
    all_nodes = tuple((node.name, 8) for node in system.nodes)
    system.there = {"theirs": SystemReservation("theirs", "theirs", NOW, NOW + 9 * HOUR, all_nodes, ("x",))}
    answer = machine.confirm("offer-1", NOW)
    assert answer.code is RefusalCode.SLOT_TAKEN
    assert machine.reservation("offer-1", NOW) is None


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_release_that_fails_is_repeated_until_the_system_is_seen_without_it(fault: str) -> None:
    system = FakeSystem()
    machine = _machine(system)
    _hold(machine)
    system.faults = [("remove", fault)]
    with pytest.raises(PluginError):
        machine.release("offer-1", NOW)
    machine.release("offer-1", NOW)
    assert not system.there
    assert machine.book.to_remove(NOW) == ()


def test_a_restart_sweeps_what_nobody_holds_and_leaves_the_rest(tmp_path: Path) -> None:
    system = FakeSystem()
    before = _machine(system, tmp_path)
    _hold(before)
    before.hold("offer-2", UNIT, quoted(before, UNIT, NOW), NOW + 10 * MINUTE, NOW)
    slot = system.there["ramp_big1.offer-1"]
    for name in ("ramp_big1.unknown", "ramp_big1.used", "ramp_big10.other", "theirs"):
        system.there[name] = replace(slot, name=name, parts=(("n8", 1),))
    system.jobs_in["ramp_big1.used"] = ("77",)
    after = _machine(system, tmp_path)
    after.begin(NOW + 2 * MINUTE)
    assert sorted(system.there) == ["ramp_big1.offer-2", "ramp_big1.used", "ramp_big10.other", "theirs"]


def test_one_picture_serves_all_who_ask_for_some_seconds() -> None:
    clock = [0.0]
    system = FakeSystem()
    machine = _machine(system, clock=clock)
    for number in range(50):
        machine.quote(UNIT, NOW + number)
    assert system.calls.count("snapshot") == 1
    clock[0] = 3.0
    machine.quote(UNIT, NOW)
    assert system.calls.count("snapshot") == 2


def test_a_new_picture_is_drawn_anew_even_where_the_old_one_was_in_memory() -> None:
    """A picture that is gone leaves its id to the next one, which then looked as if it were drawn already."""
    system = FakeSystem()
    machine = machine_on(system)
    for number in range(50):
        usable = number % 2 == 0
        machine.picture(NOW)
        system.nodes = [replace(node, usable=usable) for node in system.nodes]
        assert machine.availability(NOW).load(NOW, NOW + MINUTE) == (0 if usable else 1), number


def test_jobs_and_nodes_out_of_service_are_not_sold() -> None:
    nodes = [Node(f"n{number}", 8) for number in range(1, 5)]
    nodes[1] = Node("n2", 8, usable=False, state="drained")
    system = FakeSystem(nodes, [RunningJob("1", "u", NOW - HOUR, NOW + 90 * MINUTE, (("n1", 8), ("n3", 2)))])
    machine = machine_on(system)
    slot = quoted(machine, UNIT, NOW)
    assert slot.start == NOW + 90 * MINUTE + SECOND
    assert slot.placement == "n[1,3-4]"
    assert slot.load == pytest.approx(8 / 32)
    small = quoted(machine, replace(UNIT, cores=TotalCores(14)), NOW)
    assert (small.start, small.placement) == (NOW + HOUR, "n[3-4]")


def test_free_cores_are_those_of_nodes_in_service_that_nothing_has() -> None:
    system = FakeSystem()
    machine = _machine(system)
    _fail(system, "n8")
    system.running = [
        RunningJob("1", "u", NOW, None, (("n1", 4),)),
        RunningJob("2", "u", NOW, None, (("n2", 2),), reservation="theirs"),
        RunningJob("3", "u", NOW, None, (("n8", 8),)),
    ]
    slot = SystemReservation("theirs", "theirs", NOW, NOW + HOUR, (("n2", 8),), ("u",), active=True)
    system.there = {"theirs": slot, "later": replace(slot, name="later", parts=(("n3", 8),), active=False)}
    shown = machine.snapshot(NOW, HOUR)
    assert (shown["cores"] - shown["cores_busy"], shown["load"]) == (64 - 8 - 8 - 4, 20 / 64)


def test_nothing_is_offered_while_the_doctor_would_complain() -> None:
    """`ramp up` said "ready, live" to an account without the right to reserve, and each buyer failed."""
    system, clock = FakeSystem(), [0.0]
    may_not = Remark("privilege", "big1", "this account may not reserve", "install the wrapper")
    found: list[Remark] = [Remark("clock", "big1", "is right"), may_not]
    machine = _machine(system, clock=clock, conditions=lambda _: found)
    words = "this account may not reserve; install the wrapper"
    for act in (machine.begin, lambda now: machine.quote(UNIT, now), lambda now: machine.tend({}, now)):
        with pytest.raises(PluginError, match=words) as caught:
            act(NOW)
        assert caught.value.transient, "it is asked again"
    found.pop()
    machine.begin(NOW)
    _sold(machine)
    found.append(may_not)
    assert isinstance(machine.quote(UNIT, NOW), Slot), "a check serves for some minutes"
    clock[0] = 300.0
    with pytest.raises(PluginError, match=words):
        machine.quote(UNIT, NOW)
    machine.begin(NOW)
    with pytest.raises(PluginError, match=words):
        machine.tend({"offer-1": "buyer1"}, NOW)
    assert system.there["ramp_big1.offer-1"].users == ("buyer1",), "what is sold is handed over all the same"
    assert machine.snapshot(NOW, HOUR)["not_selling"] == words
    found.pop()
    machine.quote(UNIT, NOW)
    assert "not_selling" not in machine.snapshot(NOW, HOUR)


def test_a_hold_that_is_refused_for_another_reason_than_cores_is_explained_by_the_conditions() -> None:
    class Forbidden(FakeSystem):
        def make(self, wanted: WantedReservation) -> None:
            raise SystemRefused("Invalid user id")

    found: list[Remark] = []
    machine = machine_on(Forbidden(), conditions=lambda _: found)
    slot = quoted(machine, UNIT, NOW)
    found.append(Remark("privilege", "big1", "this account may not reserve", "install the wrapper"))
    with pytest.raises(PluginError, match="this account may not reserve; install the wrapper"):
        machine.hold("offer-1", UNIT, slot, NOW + MINUTE, NOW)


def test_the_market_has_its_share_at_most() -> None:
    system = FakeSystem()
    machine = _machine(system, for_sale=ForSale(share=0.5))
    assert isinstance(_hold(machine), Reservation)
    answer = refused(machine, replace(UNIT, cores=TotalCores(33)), NOW)
    assert (answer.code, answer.nearest) == (RefusalCode.MACHINE_TOO_SMALL, "32 cores")
    later = quoted(machine, replace(UNIT, cores=TotalCores(13)), NOW)
    assert later.start == NOW + 2 * HOUR
    now = quoted(machine, replace(UNIT, cores=TotalCores(12)), NOW)
    assert now.start == NOW + HOUR


def test_names_are_the_keys_and_no_two_resources_share_a_beginning() -> None:
    assert reservation_name("big1", "offer-3f2a") == "ramp_big1.offer-3f2a"
    for key in ("a b", "x" * 70, "a.b", "../x", "ключ"):
        name = reservation_name("big1", key)
        assert len(name) <= 64
        assert name.startswith("ramp_big1.x")
    prefixes = {own_prefix(each) for each in ("a", "a.b", "a-b", "a_b", "a" * 30, "a" * 31)}
    assert len(prefixes) == 6
    assert not any(one != other and one.startswith(other) for one in prefixes for other in prefixes)


@pytest.mark.parametrize(("version", "got"), [(BOOK_VERSION + 1, "2"), (0, "none")])
def test_the_book_is_refused_where_it_is_of_another_version_or_none(version: int, got: str, tmp_path: Path) -> None:
    HoldBook(tmp_path, "big1")
    path = book_path(tmp_path, "big1")
    assert read_book(path) == ()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    connection.close()
    told = f"wrong version of this book of holds: got {got}, expected 1"
    with pytest.raises(WrongVersion, match=told):
        HoldBook(tmp_path, "big1")
    with pytest.raises(WrongVersion, match=told):
        read_book(path)
    book_path(tmp_path, "other").write_bytes(b"no database at all" * 99)
    with pytest.raises(StateDamaged):
        HoldBook(tmp_path, "other")


def test_an_intention_is_in_the_book_before_the_system_is_told(tmp_path: Path) -> None:
    class Dies(FakeSystem):
        def make(self, wanted: object) -> None:
            assert [(each.key, each.made) for each in read_book(book_path(tmp_path, "big1"))] == [("offer-1", False)]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _hold(_machine(Dies(), tmp_path))
    again = _machine(FakeSystem(), tmp_path)
    assert again.reservation("offer-1", NOW + SECOND) is None
    assert again.quote(UNIT, NOW + SECOND) != quoted(_machine(FakeSystem()), UNIT, NOW), "an intention takes its cores"


def _sold(machine: BatchMachine, key: str = "offer-1") -> None:
    assert isinstance(_hold(machine, key), Reservation)
    assert isinstance(machine.confirm(key, NOW), Reservation)


def test_a_hand_over_that_failed_is_made_good_at_the_next_time() -> None:
    machine, system, _ = _tended(nodes=8)
    system.faults = [("hand_over", "before")]
    with pytest.raises(PluginError):
        machine.tend({"offer-1": "buyer1"}, NOW)
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    assert system.there["ramp_big1.offer-1"].users == ("buyer1",)
    system.there.clear()  # forgotten: made again, for the buyer
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    assert system.there["ramp_big1.offer-1"].users == ("buyer1",)


def test_a_sold_slot_whose_node_fails_is_lost_where_no_other_is_free_and_others_are_not() -> None:
    machine, system, clock = _tended(nodes=5)  # of two slots of 8, 8 and 4 cores: nothing is left for 8
    node = {name for name, _ in system.there["ramp_big1.offer-2"].parts}
    _fail(system, "n1")
    assert "n1" not in node - {"n3"}
    assert machine.tend({"offer-1": "", "offer-2": ""}, NOW) == {}, "it may be a restart"
    clock[0] = 60.0
    none_left = "node n1 is down (fan); no 20 other cores are free for it"
    assert machine.tend({"offer-1": "", "offer-2": ""}, NOW) == {"offer-1": none_left}


def test_a_slot_of_cores_moves_to_nodes_of_another_size_and_a_slot_of_nodes_does_not() -> None:
    """Eighty cores were free on small nodes, and the slot on the large one was paid back."""
    small = [Node(f"s{number}", 8) for number in range(10)]
    for cores, moved in ((TotalCores(32), True), (Nodes(1, 32), False)):
        system, clock = FakeSystem(nodes=[Node("n1", 32)]), [0.0]
        machine = machine_on(system, clock=clock)
        unit = replace(UNIT, cores=cores)
        machine.hold("offer-1", unit, quoted(machine, unit, NOW), NOW + MINUTE, NOW)
        machine.confirm("offer-1", NOW)
        system.nodes += small
        _fail(system, "n1")
        assert machine.tend({"offer-1": ""}, NOW) == {}
        clock[0] = 60.0
        lost = machine.tend({"offer-1": ""}, NOW)
        if moved:
            assert (lost_of(lost), sum(count for _, count in system.there["ramp_big1.offer-1"].parts)) == ({}, 32)
            assert "n1" not in dict(system.there["ramp_big1.offer-1"].parts)
        else:
            says = "node n1 is down (fan); no 32 other cores on nodes of the same kind are free for it"
            assert lost == {"offer-1": says}


@pytest.mark.parametrize("before", [1, 15, 20])
def test_a_slot_that_begins_before_its_trouble_has_lasted_a_minute_moves_at_the_last_look(before: int) -> None:
    machine, system, clock = _tended(nodes=8)
    _fail(system, "n1")
    at = NOW + HOUR - 30 * SECOND
    assert machine.tend({"offer-1": ""}, at) == {}
    assert "n1" in dict(system.there["ramp_big1.offer-1"].parts), "it may be a restart"
    clock[0] = 15.0
    assert lost_of(machine.tend({"offer-1": ""}, NOW + HOUR - before * SECOND)) == {}
    assert "n1" not in dict(system.there["ramp_big1.offer-1"].parts)
    clock[0] = 75.0
    assert lost_of(machine.tend({"offer-1": ""}, NOW + HOUR + 30 * SECOND)) == {}


def test_a_slot_that_cannot_move_at_the_last_look_has_the_rest_of_its_minute() -> None:
    machine, system, clock = _tended(nodes=5)
    _fail(system, "n1")
    for clock[0], left in ((0.0, 25), (15.0, 10), (45.0, -20)):
        assert machine.tend({"offer-1": ""}, NOW + HOUR - left * SECOND) == {}
    clock[0] = 60.0
    says = "node n1 is down (fan); the slot has begun, so it is not moved"
    assert machine.tend({"offer-1": ""}, NOW + HOUR + 35 * SECOND) == {"offer-1": says}


def test_a_sold_slot_whose_node_fails_is_moved_before_it_begins() -> None:
    machine, system, clock = _tended(nodes=8)
    owners = {"offer-1": "buyer1", "offer-2": ""}
    others = system.there["ramp_big1.offer-2"]
    before = machine.reservation("offer-1", NOW)
    assert before is not None
    _fail(system, "n1")
    assert machine.tend(owners, NOW) == {}
    clock[0] = 60.0
    told = machine.tend(owners, NOW)
    moved = system.there["ramp_big1.offer-1"]
    assert "n1" not in dict(moved.parts)
    assert sorted(count for _, count in moved.parts) == [4, 8, 8]
    assert (moved.start, moved.end, moved.users) == (before.slot.start, before.slot.end, ("buyer1",))
    assert system.there["ramp_big1.offer-2"] == others
    after = machine.reservation("offer-1", NOW)
    assert (after.reservation_id, after.firm, after.slot.cores) == (before.reservation_id, True, 20)
    assert "n1" not in after.slot.placement
    assert told == {"offer-1": SlotMove(after.slot.placement, NOW, "ramp_big1.offer-1")}
    clock[0] = 200.0
    assert machine.tend(owners, NOW) == told


def test_a_sold_slot_that_a_system_makes_again_on_nodes_of_its_own_choice_has_moved() -> None:
    """Grid Engine chooses the hosts itself; what it has lost it may make again elsewhere."""

    class Chooses(FakeSystem):
        def make(self, wanted: WantedReservation) -> None:
            last = [node.name for node in self.nodes][-len(wanted.parts) :]
            chosen = tuple((name, count) for name, (_, count) in zip(last, wanted.parts, strict=True))
            super().make(replace(wanted, parts=chosen))

    system = Chooses(chooses_parts=True)
    machine = _machine(system)
    _sold(machine)
    assert machine.tend({"offer-1": ""}, NOW) == {}, "where it was sold"
    before = machine.book.entry("offer-1")
    assert [name for name, _ in before.parts] == ["n6", "n7", "n8"]
    system.there.clear()
    system.nodes = system.nodes[:-1]
    moved = {"offer-1": SlotMove("n[5-7]", NOW + MINUTE, "ramp_big1.offer-1")}
    for now in (NOW + MINUTE, NOW + HOUR // 2):
        assert machine.tend({"offer-1": "buyer1"}, now) == moved


def test_a_reservation_that_is_made_again_under_another_number_is_a_move() -> None:
    class Numbers(FakeSystem):
        number = 11

        def make(self, wanted: WantedReservation) -> None:
            super().make(wanted)
            self.number += 1
            self.there[wanted.name] = replace(self.there[wanted.name], reservation_id=str(self.number))

    system = Numbers(chooses_parts=True)
    machine = _machine(system)
    _sold(machine)
    assert machine.tend({"offer-1": ""}, NOW) == {}
    system.there.clear()
    (move,) = machine.tend({"offer-1": "buyer1"}, NOW).values()
    assert (move.reservation_id, move.moved_at) == ("13", NOW)


@pytest.mark.parametrize(
    ("at", "refusals"), [(NOW + HOUR, 0), (NOW, 100)], ids=["it has begun", "the system refuses the move"]
)
def test_a_sold_slot_in_trouble_that_is_not_moved_is_lost(at: int, refusals: int) -> None:
    machine, system, clock = _tended(nodes=8)
    _fail(system, "n1")
    machine.tend({"offer-1": ""}, at)
    clock[0] = 60.0
    system.faults = [("make", "refuse")] * refusals
    assert list(machine.tend({"offer-1": ""}, at)) == ["offer-1"]


@pytest.mark.parametrize("fault", [("remove", "before"), ("remove", "after"), ("make", "before"), ("make", "after")])
def test_a_move_that_is_cut_short_is_ended_at_the_next_time(fault: tuple[str, str]) -> None:
    machine, system, clock = _tended(nodes=8)
    _fail(system, "n1")
    machine.tend({"offer-1": ""}, NOW)
    clock[0] = 60.0
    system.faults = [fault]
    with contextlib.suppress(PluginError):
        machine.tend({"offer-1": ""}, NOW)
    assert lost_of(machine.tend({"offer-1": ""}, NOW)) == {}
    assert "n1" not in dict(system.there["ramp_big1.offer-1"].parts)
    assert sum(count for _, count in system.there["ramp_big1.offer-1"].parts) == 20


def test_many_moves_that_the_system_refuses_are_given_up_without_waiting_for_each() -> None:
    """A plug-in that takes longer than half a minute is killed, and would forget since when slots are in trouble."""
    system, clock = FakeSystem(), [0.0]

    def wait(seconds: float) -> None:
        clock[0] += seconds

    machine = machine_on(system, clock=clock, wait=wait)
    keys = ["offer-1", "offer-2", "offer-3"]
    for key in keys:
        _sold(machine, key)
    for name in ("n1", "n3", "n5", "n7"):
        _fail(system, name)
    owners = dict.fromkeys(keys, "")
    assert machine.tend(owners, NOW) == {}
    assert clock[0] == 0.0
    clock[0] = 60.0
    system.nodes += [Node(f"m{number}", 8) for number in range(9)]
    system.faults = [("make", "refuse")] * 1000
    assert sorted(machine.tend(owners, NOW)) == keys
    assert clock[0] - 60.0 <= 6.0


@pytest.mark.parametrize(("nodes", "told"), [(5, str), (8, SlotMove)], ids=["given up", "moved"])
def test_a_slot_that_cannot_be_seen_to_keeps_no_other_from_being_moved_or_given_up(nodes: int, told: type) -> None:
    machine, system, clock = _tended(nodes)
    _fail(system, "n1")
    owners = {"offer-2": "buyer2", "offer-1": "buyer1"}
    for at in (0.0, 60.0):
        clock[0] = at
        system.faults = [("hand_over", "before")]
        if at == 0.0:
            with pytest.raises(PluginError):  # nothing is lost yet, so the failure is told
                machine.tend(owners, NOW)
        else:
            found = machine.tend(owners, NOW)
            assert list(found) == ["offer-1"]
            assert isinstance(found["offer-1"], told)


def test_a_sold_slot_that_the_book_has_lost_is_lost() -> None:
    machine, _, clock = _tended(nodes=8)
    assert machine.tend({"offer-9": "buyer1"}, NOW) == {}
    clock[0] = 60.0
    assert machine.tend({"offer-9": "buyer1"}, NOW) == {"offer-9": "the plug-in's book has no such slot any more"}


def _tended(nodes: int) -> tuple[BatchMachine, FakeSystem, list[float]]:
    """A machine with two sold slots of 20 cores, and the clock by which it waits."""
    system = FakeSystem(nodes=[Node(f"n{number}", 8) for number in range(1, nodes + 1)])
    clock = [0.0]
    machine = machine_on(system, clock=clock)
    _sold(machine)
    _sold(machine, "offer-2")
    return machine, system, clock


def _fail(system: FakeSystem, name: str) -> None:
    system.nodes = [
        replace(each, usable=False, state="down", reason="fan") if each.name == name else each for each in system.nodes
    ]


def test_a_sold_slot_that_was_given_to_another_is_lost() -> None:
    machine, system, clock = _tended(nodes=8)
    before = dict(system.there)
    all_nodes = tuple((node.name, 8) for node in system.nodes)
    system.there = {"theirs": SystemReservation("theirs", "theirs", NOW, NOW + 9 * HOUR, all_nodes, ("x",))}
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    theirs, system.there = system.there, before
    clock[0] = 70.0
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}, "it was there again in between"
    system.there = theirs
    assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    clock[0] = 130.0
    assert list(machine.tend({"offer-1": "buyer1"}, NOW)) == ["offer-1"]


def test_no_slot_is_lost_while_its_nodes_are_silent_and_the_system_waits_for_them() -> None:
    machine, system, clock = _tended(nodes=8)
    system.nodes = [replace(each, usable=False, state="idle*", waited_for=True) for each in system.nodes]
    for seconds in (0.0, 70.0, 290.0):
        clock[0] = seconds
        assert machine.tend({"offer-1": "buyer1"}, NOW) == {}
    system.nodes = [replace(each, state="down", waited_for=False) for each in system.nodes]
    for seconds, lost in ((300.0, []), (370.0, ["offer-1"])):
        clock[0] = seconds
        assert list(machine.tend({"offer-1": "buyer1"}, NOW)) == lost


def test_nothing_is_lost_because_the_system_cannot_be_asked() -> None:
    machine, system, _ = _tended(nodes=8)
    system.faults = [("reservations", "hang")]
    with pytest.raises(PluginError):
        machine.tend({"offer-1": "buyer1"}, NOW)
