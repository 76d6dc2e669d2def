"""The interface between a Resource Agent and the machine it sells (paper section 6.2.2).

A plug-in is a subclass of `ResourcePlugin`. It answers four calls about one machine: describe the slot for a job
(`quote`), set capacity aside (`hold`), make that firm (`confirm`), give it back (`release`). Capacity that is held or
confirmed counts in every later quote. Holds and reservations are keyed by the caller's own id (the offer id), so every
call can be repeated: the second answer equals the first. Holds and reservations survive a restart of the plug-in. What
only some machines can do has a default: override it where the machine can.

All calls are synchronous; `now` is always given, so the same plug-in runs in real time and in the simulator's virtual
time. Plug-ins are found by name in the entry point group `ramp.resource_plugins`; the entry is a callable
`(PluginSettings) -> ResourcePlugin`.

**Where it runs.** A plug-in of another package runs in a process of its own (`isolation` in the resource's
configuration), so a call may take its time. The limits are in the table `[guests]`: 5 s for the quotes of one call for
proposals, 30 s for a hold, confirmation, release or look-up, 5 s for a snapshot, a minute for opening. Past its
limit the process is killed and started anew; `reservation` then reports what the dead one had done, so book before you
answer. Standard output and error go to the agent's log. Calls come one at a time, from one thread. A plug-in in the
agent's own process should answer in well under a millisecond: all agents of that process wait for it.

**How to fail.** Raise `ramp.errors.PluginError`. Any other exception, and an impossible answer (an end before the
start, fewer cores than asked), counts as a failure with an unknown result. The Resource Agent reads `transient`:

- a `quote` that fails is refused at once with `machine_unavailable` and the reason, whatever `transient` says;
- after a `hold` or `confirm` that fails, its result is unknown: `reservation` is asked until it answers. What it shows
  as done counts. Otherwise, if `transient` is true the call is repeated. If it is false, the call is given up:
  released, refused, and a sale called off before it is paid. If it is unknown (any other exception, a call that took
  too long), a hold is given up and a confirmation repeated once;
- a `release` or `reservation` that fails is repeated until it succeeds;
- when the plug-in is opened, true means that it is tried again after a pause, false that its agent stays down. A
  `ConfigurationError` (an option that is wrong) ends the launch with its message.

After a failure the plug-in is asked for no offers for a second, then twice as long each time, up to a minute; `ramp ps`
shows the resource as `degraded` with the reason until the failed call succeeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from ramp.errors import ConfigurationError
from ramp.model.instant import Duration, Instant
from ramp.model.offer import NOT_RESIZABLE, Refusal
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot, SlotMove
from ramp.plugins.snapshot import machine_shown

__all__ = [
    "GONE",
    "NOT_RESIZABLE",
    "PluginSettings",
    "Reservation",
    "ResourcePlugin",
    "Slot",
]

SOURCES: Final = ("log", "synthetic", "live")
"""Origins of a machine's queue."""

GONE: Final = "the machine no longer has the reservation"
"""Reason of a lost slot that the machine has forgotten."""


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The settings from which a plug-in is made.

    Attributes:
        resource: the resource's name (`thunder1`).
        cores: cores of the machine in all, from its configuration.
        cores_per_node: cores on a node.
        started_at: when the machine's clock began: its log is at the base time then.
        options: the plug-in's own table of the configuration file (for fake_qstat: `log`, `base_time_s`, `speed`).
        state_dir: folder for durable state, or None to keep it in memory only (simulator).
        seed: for all random draws of the plug-in.
        acting: how to act as its buyers' local accounts (`ramp.launching.acting.Acting.told`); empty if it cannot.
    """

    resource: str
    cores: int
    cores_per_node: int
    started_at: Instant
    options: Mapping[str, Any] = field(default_factory=dict)
    state_dir: Path | None = None
    seed: int = 0
    acting: Mapping[str, str] = field(default_factory=dict)


class ResourcePlugin(ABC):
    """One machine, live or simulated.

    Attributes:
        source: origin of the machine's queue: `log`, `synthetic` or `live`; shown in every offer.
        resource: the resource's name.
        capacity: the machine's cores.
        tended: whether `tend` is called as soon as a slot is sold and every quarter of a minute, because the machine
            must know the owners of its slots; otherwise it is called every minute or less often.
    """

    source: str = "live"
    resource: str
    capacity: int
    tended: ClassVar[bool] = False

    @abstractmethod
    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """Return the earliest slot for the unit, or a refusal with the nearest value that would pass.

        Check only capacity and time; the Resource Agent checks static terms and price.
        For `CORES_TAKEN`, `nearest` is the earliest start after the window that would be free (ISO 8601), if any. A
        request that is too large and a window that holds no run are refused by `ramp.plugins.answers.run_window`.
        Changes nothing.
        """

    @abstractmethod
    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        """Set the slot aside until `until`; the same key again answers the same reservation.

        Refused with `SLOT_TAKEN` if the slot is no longer free, and with `HOLD_EXPIRED` if `until` has passed, as
        when the call was long on its way. A key holds once: after its hold has run out it is refused with
        `HOLD_EXPIRED`, and one that was released stays released (`CANCELLED`). Durable when it returns.
        """

    @abstractmethod
    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm; a firm one stays firm.

        Refused with `HOLD_EXPIRED` when the hold has run out or never was, `CANCELLED` when it was released.
        Durable when it returns.
        """

    @abstractmethod
    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back; unknown and released keys are no error. Durable when it returns.

        A release may come before the hold that it cancels, because commands to a batch system overtake each other.
        The machine decides whether that key can be held afterwards: the resource releases again when it hears of the
        hold, and an unnoticed hold ends at its `until`.
        """

    @abstractmethod
    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """Return the hold or reservation of that key, or None.

        A hold past its deadline does not count; a firm reservation stays known after its slot has ended.
        """

    @abstractmethod
    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """Return all live holds and reservations, by start."""

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """Return the machine as `ramp qstat` shows it; JSON types only. By default it has no jobs of its own.

        Keys: `resource`, `source`, `time` (ISO), `machine_time_s` (log time), `cores`, `cores_busy`, `load`,
        `running` and `queued` (lists of {`job`, `cores`, `start`, `end`, `submitted`, `user`}), `reservations`
        (list of {`reservation_id`, `key`, `cores`, `start`, `end`, `firm`, `held_until`}), `projected_load`
        (list of {`time`, `load`} over the horizon); `ramp.plugins.snapshot.machine_shown` makes them. A machine that
        sells nothing at present says why in `not_selling`. The resource adds `operating_system`, `architecture` and
        `start_price` of its own configuration.
        """
        return machine_shown(self.resource, self.source, self.capacity, self.reservations(now), now, horizon)

    def hold_for(
        self, account: str, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant
    ) -> Reservation | Refusal:
        """Do the same as `hold` for a buyer; override it if the hold is a job of the buyer's.

        Args:
            account: the buyer's local account; empty if the site maps the buyer to none.
            key: see `hold`, as of all others.
            unit: the request.
            slot: as it was quoted.
            until: deadline of the hold.
            now: the present.
        """
        del account
        return self.hold(key, unit, slot, until, now)

    def forget(self, keys: Sequence[str], now: Instant) -> None:  # noqa: B027 -- forgetting nothing is right
        """Forget keys that are over and will not be asked for again; unknown ones are no error.

        Override it if the memory of the plug-in grows with every slot that it has ever set aside. The slots ended or
        were released, at least the market's retention ago. Durable when it returns; live reservations under these keys
        stay.
        """

    def tend(self, owners: Mapping[str, str], now: Instant) -> dict[str, str | SlotMove]:
        """Look after sold slots, and report lost and moved ones; by default one is lost that `reservation` misses.

        A machine that must know the owners (`tended`) gives them access to their slots; repeated owners need no action.

        Args:
            owners: by the key of each sold slot the buyer's local account, empty if the site maps the buyer to none.
            now: the present.

        Returns:
            By key why a slot is lost, for people, or its last move if it was ever moved. The resource refunds the
            price of a lost slot by its own signed statement, informs the buyer, and releases it. It informs the buyer
            of a moved one; repeated moves do no harm.
        """
        found = ((key, self.reservation(key, now)) for key in owners)
        return {key: GONE for key, seen in found if seen is None or not seen.firm}

    def resize(self, key: str, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        """Give a firm reservation `cores` cores from now on, until `until`; durable when it returns.

        Override it if the machine can change the size of an existing reservation, also in mid-slot; the default answers
        `NOT_RESIZABLE`. A reduction frees its cores at once, because the resource refunds it on this answer. It is
        refused with `SLOT_TAKEN` if jobs on the slot need the cores. An addition, of cores or time, is set aside at
        once, so that no other request gets it. It is refused with `SLOT_TAKEN` if it is not free, or the machine cannot
        do it. It is not paid yet: the Resource Agent starts no job on it before, and if it remains unpaid asks for the
        old size again, in a later step. A refusal changes nothing. The same step again answers the same. Because calls
        overtake each other, a step below the last one, or another change with the same step, is refused with
        `SLOT_TAKEN`.

        Args:
            key: of the reservation; one that was released, or never made firm, is refused with `CANCELLED` or
                `HOLD_EXPIRED`.
            step: counts the changes of this key, from 1.
            cores: from now on; at least 1.
            until: the slot's end from now on.
            now: the present.
        """
        del key, step, cores, until, now
        return NOT_RESIZABLE


def checked_plugin(made: object) -> ResourcePlugin:
    """Return what an entry point has made if it is a plug-in; `ConfigurationError` if it is no plug-in."""
    if not isinstance(made, ResourcePlugin):
        raise ConfigurationError(f"wrong type of plug-in: got {type(made).__name__}, expected a ResourcePlugin")
    return made
