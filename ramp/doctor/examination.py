"""The whole of it: a market is asked where it is up, and read from its state folder where it is down."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Final

from ramp.batch.book import book_path, read_book
from ramp.batch.inspecting import Comparing, Promise, Remark, inspection
from ramp.client.access import find_market, status
from ramp.client.machine_state import MachineState
from ramp.client.market import Market
from ramp.client.results import Resource
from ramp.control.status import SwarmStatus, is_well, state_text
from ramp.errors import START_EMPTY, RampError
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import DAY, Duration, Instant, iso
from ramp.protocol import records as rc
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import OWN_DISTRIBUTION, ResourceConfig, SwarmConfig, plugin_settings
from ramp.runtime.configuration_changes.overlay import load_market, load_overlay, running_config
from ramp.runtime.journal import Archive
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.servers.process import probe_problem


def promises_of(records: Iterable[rc.Record]) -> tuple[Promise, ...]:
    """Return a resource's promises that are not released."""
    found: dict[str, Promise] = {}
    proposed: dict[tuple[str, int], ContractChange] = {}
    before: dict[tuple[str, int], Instant] = {}
    for record in records:
        match record:
            case rc.HoldIntended(offer=offer, until=until):
                found[offer.offer_id] = Promise(offer.offer_id, "", paid=False, end=offer.end, ends_as_hold=until)
            case rc.AgreementReceived(offer_id=key, agreement=signed) if key in found:
                agreement_id = signed.body.agreement_id if isinstance(signed.body, Agreement) else ""
                found[key] = Promise(key, agreement_id, paid=False, end=found[key].end, ends_as_hold=None)
            case rc.AgreementPaid(offer_id=key) if key in found:
                known = found[key]
                found[key] = Promise(key, known.agreement_id, paid=True, end=known.end, ends_as_hold=None)
            case rc.ChangeReceived(offer_id=key, number=number):
                proposed[key, number] = record.signed.change
            case rc.CapacityTaken(offer_id=key, number=number) if key in found and (key, number) in proposed:
                # from now on the machine has the slot in its new size
                before[key, number] = found[key].end
                found[key] = replace(found[key], end=proposed[key, number].until)
            case rc.ChangeDropped(offer_id=key, number=number) if key in found and (key, number) in before:
                found[key] = replace(found[key], end=before.pop((key, number)))
            case rc.SlotReleased(offer_id=key):
                found.pop(key, None)
    return tuple(found.values())


ROOM_MIN_MB: Final = 200
"""Free megabytes (2**20 bytes) below which room is a finding: a day of a busy market, before anything stops."""

FILES_MIN: Final = 1_000
"""Files that can still be made at least."""

CERTIFICATE_LEFT_MIN: Final[Duration] = 30 * DAY
"""A certificate that ends sooner is a finding: agreements are made for weeks ahead, and holidays are long."""

SETTLING_S: Final = 5.0
"""Pause in seconds before a second look at a disagreement in a running market, which a purchase may have caused."""

PICTURE_OLD_S: Final = 120.0
"""Age of a resource's picture of its queue that is a finding; they are a minute old at most while it answers."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination."""

    is_up: bool
    remarks: tuple[Remark, ...]

    @property
    def findings(self) -> tuple[Remark, ...]:
        return tuple(each for each in self.remarks if each.is_finding)


def clock() -> Instant:
    """Return the present."""
    return time.time_ns() // 1000


def examine(state: StateFolder, config_path: Path | None = None) -> Report:
    """Examine a running market, or one that is down by its configuration (default: the last one); change nothing."""
    remarks: list[Remark] = []

    @contextmanager
    def looking(check: str, subject: str = "", do: str = "fix the error above, then check again") -> Iterator[None]:
        """Make an error of a check a finding."""
        try:
            yield
        except (RampError, OSError) as error:
            remarks.append(Remark(check, subject, str(error).replace("\n", " "), do))

    def looked(check: str, make: Callable[[], Iterable[Remark]], subject: str = "") -> None:
        with looking(check, subject):
            remarks.extend(make())

    found: SwarmStatus | None = None
    with looking("agents", "supervisor"):
        found = status(state)
        remarks.extend(agents(found) if found is not None else ())
    config = None if config_path is None or found is not None else load_market(config_path, state)
    if config is None:
        with looking("configuration", do="correct the file, then run ramp config --check"):
            config = known_config(found, state)
    looked("server", lambda: server(config, found), "XMPP server")
    looked("server", lambda: ledger(config), "ledger")
    looked("certificates", lambda: certificates(state, clock(), config))
    looked("disk", lambda: disk(state))
    looked("version", lambda: versions(config, state))
    if found is not None:
        up = found
        looked("machines", lambda: _shown(state, up, config), "machines")
    for resource in () if config is None else config.resources:
        looked("reservations", lambda one=resource: _machine(one, state, found is not None), resource.name)  # type: ignore[misc]
    return Report(found is not None, tuple(remarks))


def known_config(found: SwarmStatus | None, state: StateFolder) -> SwarmConfig | None:
    """Return the configuration of the running market, or of the last one; None if there was none."""
    if found is not None:
        return running_config(Path(found.config), state)
    overlay = load_overlay(state)
    return None if overlay is None else overlay.config(state.changes)


def _shown(state: StateFolder, found: SwarmStatus, config: SwarmConfig | None) -> Iterable[Remark]:
    """Check what machines show of themselves: the age of a live queue's picture, or every sold slot."""
    if config is None or not config.resources or not found.names("user"):
        return
    before = {each.name: _paid(state, each.name) for each in config.resources}
    asked = [Resource(each.name, f"{each.name}@{config.domain}") for each in config.resources]
    shown = [each.machine for each in Market(find_market(state, None)).machines(asked)]
    for resource, seen in zip(config.resources, shown, strict=True):
        if inspection(resource.plugin) is not None:
            yield _picture(resource.name, seen)
        elif seen is not None:  # a slot sold or given back meanwhile is on one side only
            sold = before[resource.name] & _paid(state, resource.name)
            slots = seen.snapshot.get("reservations")
            yield from forgotten(resource.name, sold, slots if isinstance(slots, list) else (), clock())


def _paid(state: StateFolder, name: str) -> frozenset[Promise]:
    return frozenset(each for each in promises_of(Archive(state.journal(name)).open_records()) if each.paid)


def forgotten(
    name: str, sold: Iterable[Promise], shown: Iterable[Mapping[str, object]], now: Instant
) -> Iterator[Remark]:
    """Report paid slots that are not among the reservations that a resource's machine shows."""
    keys = {each.get("key") for each in shown}
    for each in sold:
        if each.live(now) and each.key not in keys:
            says = f"the machine does not have the slot sold under {each.agreement_id}"
            yield Remark("reservations", name, says, "none: its agent reports it and the buyer is paid back")


def _picture(name: str, shown: MachineState | None) -> Remark:
    if shown is None:
        return Remark("queue", name, "does not show its queue", "check that its batch system answers (`ramp ps`)")
    age = shown.snapshot.get("picture_age_s")
    if not isinstance(age, int | float):
        return Remark("queue", name, "shows its queue, but not its age")
    do = "check that its batch system answers (`ramp ps`)" if age > PICTURE_OLD_S else ""
    return Remark("queue", name, f"its picture of the queue is {age:.0f} s old", do)


def _machine(
    resource: ResourceConfig,
    state: StateFolder,
    is_up: bool,
) -> Iterable[Remark]:
    """Compare a resource's batch system with its book and its agreements; other machines are checked by `_shown`."""
    look = inspection(resource.plugin)
    if look is None:
        return
    remarks, read = look(plugin_settings(resource, 0, None), clock())
    yield from remarks
    if read is None:
        return
    first = _compared(resource, state, read())
    if any(each.is_finding for each in first) and is_up:
        time.sleep(SETTLING_S)
        again = _compared(resource, state, read())
        first = [each for each in again if each in first]
    yield from first
    if not first:
        yield Remark("reservations", resource.name, "system, book and agreements agree")


def _compared(resource: ResourceConfig, state: StateFolder, compare: Comparing) -> Sequence[Remark]:
    book = book_path(state.reservations, resource.name)
    entries = read_book(book) if book.exists() else ()
    return compare(entries, promises_of(Archive(state.journal(resource.name)).open_records()), clock())


def disk(state: StateFolder) -> Iterator[Remark]:
    """Check the free space for journals and the ledger."""
    path = next(each for each in (state.path, *state.path.parents) if each.exists())
    room = os.statvfs(path)
    free_mb = shutil.disk_usage(path).free >> 20
    says = f"{free_mb} MB are free below {path}"
    do = f"free some space: below {ROOM_MIN_MB} MB an agent may soon have to leave the market"
    yield Remark("disk", "", says, "" if free_mb >= ROOM_MIN_MB else do)
    if room.f_files and room.f_favail < FILES_MIN:
        yield Remark("disk", "", f"only {room.f_favail} more files can be made below {path}", "remove files there")


def certificates(state: StateFolder, now: Instant, config: SwarmConfig | None = None) -> Iterator[Remark]:
    """How long the parties' certificates hold, and the authority's.

    Those of a party that has left the market are no finding: they were revoked when it was removed.
    """
    if not state.keys.exists():
        yield Remark("certificates", "", "no keys yet; `ramp up` creates them")
        return
    store = KeyStore(state.keys)
    here = set() if config is None else {config.address(name) for name in config.roles()}
    current = [each for each in store.inventory(now) if each.current and (each.name in here or each.state != "revoked")]
    for each in current:
        if each.state != "valid" or each.valid_until - now < CERTIFICATE_LEFT_MIN:
            says = f"its certificate is {each.state} and ends at {iso(each.valid_until)}"
            new_key = " --new-key" if each.state == "revoked" else ""
            yield Remark("certificates", each.name, says, f"ramp keys renew {each.name}{new_key}")
    from ramp.rfql.signing.certificates import valid_until

    for certificate in store.ca_certificates():
        if valid_until(certificate) - now < CERTIFICATE_LEFT_MIN:
            says = f"the market's authority ends at {iso(valid_until(certificate))}"
            do = "make a new authority (ramp keys init in a new folder) and give its ca.pem to all parties"
            yield Remark("certificates", "", says, do)
    if current:
        first = min(each.valid_until for each in current)
        yield Remark("certificates", "", f"{len(current)} are in use; the first ends at {iso(first)}")


def versions(config: SwarmConfig | None, state: StateFolder) -> Iterator[Remark]:
    """Check the versions of the programs and of the state folder."""
    from ramp.runtime.state_versions import check_versions

    python = platform.python_version()
    parts = [f"RAMP {metadata.version(OWN_DISTRIBUTION)}", f"Python {python}", f"SPADE {metadata.version('spade')}"]
    yield Remark("version", "", ", ".join(parts))
    try:
        check_versions(state)
    except RampError as error:
        yield Remark("version", "", str(error), START_EMPTY)
    if config is not None and config.server.kind == PROSODY and shutil.which("prosody") is None:
        yield Remark("server", PROSODY, "the program prosody is not installed", "apt-get install prosody")


def server(config: SwarmConfig | None, found: SwarmStatus | None) -> Iterator[Remark]:
    """Check that the XMPP server answers; without a supervisor, try the addresses of an external one."""
    if found is not None:
        problem = found.server.problem
        do = "read its log in the state folder; an external server must be started by its owner" if problem else ""
        yield Remark("server", found.server.text, problem or "answers", do)
    elif config is not None and config.server.kind not in (EMBEDDED, PROSODY):
        for host, port in config.server.addresses:
            problem = probe_problem(host, port, config.domain)
            do = "start it, or correct server.addresses" if problem else ""
            yield Remark("server", f"external XMPP server at {host}:{port}", problem or "answers", do)
    elif config is not None:
        yield Remark("server", f"{config.server.kind} XMPP server", "starts with the market")


def ledger(config: SwarmConfig | None) -> Iterator[Remark]:
    """Check that a ledger in a database server is reachable; the bank audits a file at each start."""
    if config is None or not config.ledger:
        return
    from sqlalchemy import exc

    from ramp.runtime.ledger.schema import open_engine  # with the bank's own driver

    try:
        engine = open_engine(config.ledger)
        with engine.connect():
            yield Remark("server", engine.url.render_as_string(hide_password=True), "the ledger's database answers")
    except exc.SQLAlchemyError as error:
        first = str(error).splitlines()[0]
        yield Remark("server", "the ledger's database", first, "start it, or correct market.ledger")


def agents(found: SwarmStatus) -> Iterator[Remark]:
    """Report the state of the agents, and their clock offsets from the bank."""
    well = 0
    for agent in found.agents:
        if not is_well(agent):
            do = f"read its log, fix the cause, then run `ramp restart {agent.name}`"
            yield Remark("agents", agent.name, state_text(agent), do)
        else:
            well += 1
        if agent.clock_warning:
            yield Remark("clock", agent.name, agent.clock_warning, "set this computer's clock, and the bank's, by NTP")
    yield Remark("agents", "", f"{well} of {len(found.agents)} respond")
    offsets = [abs(agent.clock_offset_ms) for agent in found.agents if agent.clock_offset_ms is not None]
    if offsets:
        worst = f"differs from the bank's by up to {max(offsets):.0f} ms" if max(offsets) else "agrees with the bank's"
        yield Remark("clock", "", f"every clock {worst}")
