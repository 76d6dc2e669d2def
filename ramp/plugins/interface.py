"""The interface between a Resource Agent and the machine it sells (paper section 6.2.2).

A plug-in answers four questions about one machine: what would a job find (`quote`), set capacity aside (`hold`), make
that firm (`confirm`), give it back (`release`). Capacity that is held or confirmed counts in every later quote.
Holds and reservations are keyed by the caller's own id (the offer id), so every call can be repeated: the second
answer equals the first. Holds and reservations survive a restart of the plug-in.

All calls are synchronous and should take well under a millisecond where they can; `now` is always given, so the same
plug-in runs in real time and in the simulator's virtual time. Plug-ins are found by name in the entry point group
`ramp.resource_plugins`; the entry is a callable `(PluginSettings) -> ResourcePlugin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ramp.model.instant import Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit
from ramp.model.slot import Reservation, Slot, StaticTerms

__all__ = ["PluginSettings", "Reservation", "ResourcePlugin", "Slot", "StaticTerms"]


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """What a plug-in is made from.

    Attributes:
        resource: the resource's name (`thunder1`).
        cores: cores of the machine in all, from its configuration.
        cores_per_node: cores on a node.
        started_at: the instant at which the machine's clock began: its log stands at the base time then.
        options: the plug-in's own table of the configuration file (for fake_qstat: `log`, `base_time_s`, `speed`).
        state_dir: folder for durable state, or None to keep it in memory only (simulator).
        seed: for whatever the plug-in draws at random.
    """

    resource: str
    cores: int
    cores_per_node: int
    started_at: Instant
    options: Mapping[str, Any] = field(default_factory=dict)
    state_dir: Path | None = None
    seed: int = 0


class ResourcePlugin(Protocol):
    """One machine, live or simulated."""

    source: str
    """What drives the machine's queue: `log`, `synthetic` or `live`; shown in every offer."""

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """The earliest slot for the unit, or why there is none, with the nearest value that would pass.

        Only capacity and time are looked at; static terms and price are the Resource Agent's business.
        For `CORES_TAKEN`, `nearest` is the earliest start after the window that would be free (ISO 8601), if any.
        Changes nothing.
        """
        ...

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        """Set the slot aside until `until`; the same key again answers the same reservation.

        Refused with `SLOT_TAKEN` if the slot has gone meanwhile. A key holds once: after its hold has run out it is
        refused with `HOLD_EXPIRED`, and one that was released stays released (`CANCELLED`). Durable when it returns.
        """
        ...

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Make a hold firm; a firm one stays firm.

        Refused with `HOLD_EXPIRED` when the hold has run out or never was, `CANCELLED` when it was released.
        Durable when it returns.
        """
        ...

    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back; unknown and released keys are no error. Durable when it returns."""
        ...

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """The hold or reservation of that key, or None.

        A hold past its deadline is none; a firm reservation stays known after its slot has ended.
        """
        ...

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        """All live holds and reservations, by start."""
        ...

    def next_event(self, now: Instant) -> Instant | None:
        """When the plug-in wants to be asked again by itself (a hold to sweep), or None."""
        ...

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        """The machine as `ramp qstat` shows it; JSON types only.

        Keys: `resource`, `source`, `time` (ISO), `machine_time_s` (log time), `cores`, `cores_busy`, `load`,
        `running` and `queued` (lists of {`job`, `cores`, `start`, `end`, `submitted`, `user`}), `reservations`
        (list of {`reservation_id`, `key`, `cores`, `start`, `end`, `firm`, `held_until`}), `projected_load`
        (list of {`time`, `load`} over the horizon).
        """
        ...
