"""Checks of a market's surroundings: disk space, certificates, versions, servers."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from ramp.batch.inspecting import Remark
from ramp.control.status import SwarmStatus, is_well, state_text
from ramp.errors import START_EMPTY, RampError
from ramp.model.instant import DAY, Duration, Instant, iso
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import OWN_DISTRIBUTION, SwarmConfig
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.servers.process import probe_problem

ROOM_MIN_MB: Final = 200
"""Free megabytes (2**20 bytes) below which room is a finding: a day of a busy market, before anything stops."""

FILES_MIN: Final = 1_000
"""Files that can still be made at least."""

CERTIFICATE_LEFT_MIN: Final[Duration] = 30 * DAY
"""A certificate that ends sooner is a finding: agreements are made for weeks ahead, and holidays are long."""


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
