"""Rules about plug-ins that can forget (`ForgettingPlugin`); the others are not judged by them."""

from __future__ import annotations

from typing import Final

from ramp.model.instant import HOUR
from ramp.plugins.contract.demands import demand, held, reserved, same
from ramp.plugins.contract.subject import SEARCHED, Subject


def what_is_over_is_forgotten(subject: Subject) -> None:
    """Keys that are over can be forgotten, again and with unknown ones; their reservations' ids are not used again."""
    state, now = subject.new_folder(), subject.now
    over, new = [subject.key("given-back"), subject.key("ended")], subject.key("new")
    with subject.machine(state) as machine:
        used = {held(machine, over[0], subject.unit(), now + HOUR, now).reservation_id}
        machine.release(over[0], now)
        used.add(held(machine, over[1], subject.unit(), now + HOUR, now).reservation_id)
        ended = reserved("confirm", machine.confirm(over[1], now)).slot.end
        machine.forget([subject.key("unknown"), over[0]], now)
        for _ in range(2):
            machine.forget(over, ended + HOUR)
        with subject.machine(state) as after:
            for each in (machine, after):
                same("reservation of a forgotten key", each.reservation(over[0], ended + HOUR), None)
                same("reservations", each.reservations(ended + HOUR), ())
            later = subject.unit(after=ended + 2 * HOUR - subject.start, slack=SEARCHED)
            fresh = held(after, new, later, ended + 2 * HOUR, ended + HOUR)
            demand(fresh.reservation_id not in used, f"hold: {fresh.reservation_id} was the id of a forgotten key")


def what_is_live_is_not_forgotten(subject: Subject) -> None:
    """A hold and a firm reservation stay as they are though they are to be forgotten, also after a restart."""
    state, now = subject.new_folder(), subject.now
    keys = [subject.key("held"), subject.key("firm")]
    with subject.machine(state) as machine:
        kept = [held(machine, key, subject.unit(), now + HOUR, now) for key in keys]
        kept[1] = reserved("confirm", machine.confirm(keys[1], now))
        quoted = machine.quote(subject.unit(1), now)
        machine.forget(keys, now)
        with subject.machine(state) as after:
            for each in (machine, after):
                same("reservation of a live key", [each.reservation(key, now) for key in keys], kept)
                same("quote", each.quote(subject.unit(1), now), quoted)


TRIALS: Final = (what_is_over_is_forgotten, what_is_live_is_not_forgotten)
