"""What `ramp doctor` finds on a batch system: journal, book and system compared; wrappers that are not safe."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.batch.book import Entry
from ramp.batch.inspecting import Promise, Remark, disagreements
from ramp.batch.slurm.conditions import WRAPPER, wrapper_remarks
from ramp.batch.system import SystemReservation
from ramp.model.instant import HOUR, MINUTE, from_iso
from ramp.model.slot import Slot
from tests.unit.batch.fake_system import FakeSystem

NOW = from_iso("2026-11-21T08:00:00Z")
PARTS = (("n1", 8), ("n2", 4))
SLOT = Slot(NOW + HOUR, NOW + 2 * HOUR, 12, 0.0)
SOLD = Entry("offer-1", "ramp_big1.offer-1", "", 1, SLOT, PARTS, None, firm=True, account="alice1", made=True)
HELD = replace(SOLD, firm=False, account="", held_until=NOW + MINUTE)
PAID = Promise("offer-1", "agreement-1", paid=True, end=SLOT.end, ends_as_hold=None)
MADE = SystemReservation(SOLD.name, SOLD.name, SLOT.start, SLOT.end, PARTS, ("alice1",))


def _says(
    entries: list[Entry], promises: list[Promise], there: list[SystemReservation], system: FakeSystem | None = None
) -> list[str]:
    fake = system or FakeSystem()
    found = disagreements("big1", entries, promises, there, fake, NOW)
    assert all(each.is_finding and each.check == "reservations" and each.subject == "big1" for each in found)
    return [each.says for each in found]


def test_what_agrees_is_no_finding_and_neither_are_others_reservations() -> None:
    theirs = SystemReservation("maintenance", "maintenance", NOW, None, PARTS, ("root",))
    of_another_resource = replace(MADE, name="ramp_big10.offer-9")
    assert _says([SOLD], [PAID], [MADE, theirs, of_another_resource]) == []
    promise = Promise("offer-1", "", paid=False, end=SLOT.end, ends_as_hold=NOW + MINUTE)
    assert _says([HELD], [promise], [replace(MADE, users=("market",))]) == []
    assert _says([], [], []) == []


def test_what_the_system_holds_that_no_agreement_covers() -> None:
    (unknown,) = _says([], [], [MADE])
    assert unknown == "fake has the reservation ramp_big1.offer-1, and no agreement covers it"
    system = FakeSystem(jobs_in={MADE.name: ("17", "18")})
    assert _says([], [], [MADE], system) == [f"{unknown}; jobs 17, 18 use it"]
    given_back = replace(SOLD, released=True)
    assert "its hold or agreement is over" in _says([given_back], [], [MADE])[0]
    run_out = replace(HELD, held_until=NOW)
    assert "its hold or agreement is over" in _says([run_out], [], [MADE])[0]


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (None, "does not have it"),
        (replace(MADE, parts=(("n1", 8),)), "has 8 of its 12 cores"),
        (replace(MADE, parts=(("n1", 8), ("n3", 4))), "or on other nodes"),
        (replace(MADE, start=SLOT.start + 2 * MINUTE), "begins it at 2026-11-21T09:02:00Z"),
        (replace(MADE, end=SLOT.end - MINUTE), "ends it at 2026-11-21T09:59:00Z"),
        (replace(MADE, users=("market",)), "lets market use it, not alice1"),
    ],
)
def test_what_an_agreement_covers_that_the_system_has_otherwise(there: SystemReservation | None, says: str) -> None:
    (found,) = _says([SOLD], [PAID], [] if there is None else [there])
    assert found.startswith("ramp_big1.offer-1 is sold until 2026-11-21T10:00:00Z, and fake ")
    assert says in found


def test_what_is_only_meant_is_not_missed_on_the_system() -> None:
    promise = Promise("offer-1", "", paid=False, end=SLOT.end, ends_as_hold=NOW + MINUTE)
    assert _says([replace(HELD, made=False)], [promise], []) == []


def test_journal_and_book_that_do_not_know_the_same() -> None:
    (uncovered,) = _says([SOLD], [], [MADE])
    assert uncovered.endswith("no agreement covers it")
    (bookless,) = _says([], [PAID], [])
    assert bookless == "agreement agreement-1 is paid until 2026-11-21T10:00:00Z, but the book has no slot for it"
    over = replace(PAID, end=NOW)
    assert _says([], [over], []) == []


def _wrapper(folder: Path) -> tuple[Path, Path]:
    wrapper = folder / "ramp-slurm-reservations"
    shutil.copyfile(WRAPPER, wrapper)
    wrapper.chmod(0o755)
    settings = folder / "slurm-reservations.conf"
    settings.write_text("prefix = ramp_\n")
    settings.chmod(0o644)
    return wrapper, settings


def _found(wrapper: Path, settings: Path, owner: int = 0) -> list[Remark]:
    remarks = wrapper_remarks("big1", ["sudo", "-n", str(wrapper)], settings, owner)
    return [each for each in remarks if each.is_finding]


@pytest.mark.skipif(os.geteuid() != 0, reason="the folders above are root's")
def test_a_wrapper_that_only_root_can_change_is_well(tmp_path: Path) -> None:
    wrapper, settings = _wrapper(tmp_path)
    assert _found(wrapper, settings) == []
    assert _found(wrapper, tmp_path / "none.conf") == []
    tmp_path.chmod(0o777)
    assert [each.do for each in _found(wrapper, settings)] == [f"chmod go-w {tmp_path}"] * 2
    tmp_path.chmod(0o755)
    os.chown(wrapper, 1234, -1)
    assert [each.says for each in _found(wrapper, settings)] == [f"{wrapper} belongs to user 1234"]


def test_a_wrapper_that_is_missing_changed_or_open_to_others_is_told(tmp_path: Path) -> None:
    mine = os.geteuid()
    wrapper, settings = _wrapper(tmp_path)
    assert not any(str(wrapper) in each.says for each in _found(wrapper, settings, mine))
    wrapper.chmod(0o775)
    assert any(each.do == f"chmod go-w {wrapper}" for each in _found(wrapper, settings, mine))
    wrapper.chmod(0o755)
    settings.chmod(0o666)
    assert any(each.do == f"chmod go-w {settings}" for each in _found(wrapper, settings, mine))
    wrapper.write_text('#!/bin/sh\nexec "$@"\n')
    assert any("is not the wrapper of this version" in each.says for each in _found(wrapper, settings, mine))
    wrapper.unlink()
    (missing,) = _found(wrapper, settings, mine)
    assert missing.do == f"install -o root -m 755 {WRAPPER} {wrapper}"
