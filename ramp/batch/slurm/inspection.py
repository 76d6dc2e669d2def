"""Checks of `ramp doctor` for a Slurm cluster: clock, version, and the privilege to change reservations.

scontrol(1), sudo(8), sudoers(5). Nothing is changed: `sudo -l COMMAND` only says whether sudo would run it.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ramp.batch.commands import CommandRunner, Question, ask
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.batch.slurm.plugin import SlurmOptions, open_system, runner_of
from ramp.batch.slurm.times import instant_of
from ramp.errors import BatchSystemError
from ramp.model.instant import SECOND, Instant
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings

WRAPPER: Final = Path(__file__).with_name("ramp-slurm-reservations")
"""The wrapper that ships with this version."""

WRAPPER_SETTINGS: Final = Path("/etc/ramp/slurm-reservations.conf")
CLOCK_OFF_MAX_S: Final = 5
"""Maximum difference of the controller's clock in seconds: it reports whole ones, and slots begin by it."""

TRIED: Final = ("22.05", "23.11", "24.11")
"""Versions whose outputs are among the tests; the first one live."""

_AS_OF: Final = re.compile(r"Configuration data as of (\S+)")
_USER: Final = re.compile(r"^SlurmUser\s*=\s*(\S+?)\(\d+\)", re.MULTILINE)
_VERSION: Final = re.compile(r"^SLURM_VERSION\s*=\s*(\S+)", re.MULTILINE)


def read(settings: PluginSettings) -> Comparing:
    """See `ramp.batch.inspecting.Inspection`."""
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    return reading(settings.resource, open_system(settings, options))


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`."""
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    found: list[Remark] = []
    slurm_user = ""
    try:
        config = ask(Question(("scontrol", "show", "config"), str), runner_of(options))
    except BatchSystemError as error:
        found.append(
            Remark("cluster", settings.resource, error.reason, "start slurmctld, or see why it does not answer")
        )
    else:
        slurm_user = (_USER.search(config) or ("", ""))[1]
        found += [_clock(settings.resource, config, now), _version(settings.resource, config)]
    return [*found, *privilege(settings.resource, options, slurm_user)]


def _clock(resource: str, config: str, now: Instant) -> Remark:
    """Compare clocks: the controller prints its own time above its configuration."""
    match = _AS_OF.search(config)
    theirs = None if match is None else instant_of(match[1])
    if theirs is None:
        return Remark("clock", resource, "slurmctld does not report its time")
    off = round((theirs - now) / SECOND)
    says = f"slurmctld's clock is {abs(off)} s {'ahead of' if off > 0 else 'behind'} this computer's"
    if abs(off) <= CLOCK_OFF_MAX_S:
        return Remark("clock", resource, f"slurmctld's clock is within {CLOCK_OFF_MAX_S} s of this computer's")
    return Remark("clock", resource, says, "set both by NTP: slots begin and end by slurmctld's clock")


def _version(resource: str, config: str) -> Remark:
    match = _VERSION.search(config)
    version = "of an unknown version" if match is None else match[1]
    tried = match is not None and match[1].startswith(TRIED)
    return Remark("version", resource, f"Slurm {version}" + ("" if tried else f"; tried were {', '.join(TRIED)}"))


def privilege(resource: str, options: SlurmOptions, slurm_user: str) -> Sequence[Remark]:
    """Check that this account may change reservations, and by a safe way.

    Args:
        resource: the resource's name.
        options: with the wrapper.
        slurm_user: the account that Slurm obeys besides root; empty if unknown.
    """
    account = pwd.getpwuid(os.geteuid()).pw_name
    if not options.wrapper:
        if os.geteuid() == 0 or account == slurm_user:
            return [Remark("privilege", resource, f"this account ({account}) may change reservations itself")]
        says = f"{account} is neither root nor SlurmUser ({slurm_user or 'unknown'}), and the options name no wrapper"
        return [Remark("privilege", resource, says, "install the wrapper (docs/slurm.md, Permissions) and name it")]
    return [*wrapper_remarks(resource, options.wrapper), *_sudo_remarks(resource, options.wrapper, account)]


def wrapper_remarks(
    resource: str, wrapper: Sequence[str], settings: Path = WRAPPER_SETTINGS, owner: int = 0
) -> Sequence[Remark]:
    """Check that the wrapper exists in this version, and that only its owner can change it or its settings.

    Args:
        resource: the resource's name.
        wrapper: the option's command; its last absolute path is the wrapper.
        settings: the file that it reads.
        owner: number of the account that must own it; root.
    """
    paths = [word for word in wrapper if word.startswith("/")]
    if not paths:
        return [Remark("wrapper", resource, f"{' '.join(wrapper)} names no path", "give the wrapper's full path")]
    path = Path(paths[-1])
    try:
        same = hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(WRAPPER.read_bytes()).digest()
    except OSError as error:
        do = f"install -o root -m 755 {WRAPPER} {path}"
        return [Remark("wrapper", resource, f"{path} cannot be read: {error.strerror}", do)]
    found = [*_unsafe(resource, path, owner), *(_unsafe(resource, settings, owner) if settings.exists() else ())]
    if not os.access(path, os.X_OK):
        found.append(Remark("wrapper", resource, f"{path} cannot be executed", f"chmod 755 {path}"))
    if not same:
        do = f"compare them, then install -o root -m 755 {WRAPPER} {path}"
        found.append(Remark("wrapper", resource, f"{path} is not the wrapper of this version", do))
    return found or [Remark("wrapper", resource, f"{path} is this version's, and root's alone to change")]


def _unsafe(resource: str, path: Path, owner: int) -> Sequence[Remark]:
    """Say who besides its owner could change a file, directly or by a folder above it."""
    found = []
    for each in (path, *path.resolve().parents):
        status = each.stat()
        if status.st_uid != owner:
            whose = f"belongs to user {status.st_uid}"
            do = f"chown {owner} {each}"
        elif status.st_mode & stat.S_ISVTX and stat.S_ISDIR(status.st_mode):
            continue  # in a sticky folder only a file's owner can replace it
        elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            whose, do = (
                f"has mode {stat.S_IMODE(status.st_mode):04o}, so that others may write to it",
                f"chmod go-w {each}",
            )
        else:
            continue
        found.append(Remark("wrapper", resource, f"{each} {whose}", do))
    return found


def _sudo_remarks(resource: str, wrapper: Sequence[str], account: str) -> Sequence[Remark]:
    """Check that sudo runs the wrapper without a password, and scontrol itself not at all."""
    if Path(wrapper[0]).name != "sudo":
        return []
    if os.geteuid() == 0:
        return [Remark("sudo", resource, "not tested: root has every permission; run this as the agent's account")]
    run = CommandRunner(time_limit_s=15)
    found = []
    command = [word for word in wrapper[1:] if not word.startswith("-")]
    try:
        if run((wrapper[0], "-n", "-l", *command)).code != 0:
            line = f"{account} ALL=(root) NOPASSWD: {' '.join(command)}"
            says = f"sudo does not let {account} run {' '.join(command)} without a password"
            found.append(Remark("sudo", resource, says, f"add the line {line!r} below /etc/sudoers.d (visudo -f)"))
        for program in ("scontrol", "scancel"):
            if run((wrapper[0], "-n", "-l", program, "show", "config")).code == 0:
                says = f"sudo lets {account} run {program} directly, which bypasses the wrapper"
                found.append(Remark("sudo", resource, says, f"take {program} out of the sudoers"))
    except BatchSystemError as error:
        return [Remark("sudo", resource, error.reason, "install sudo, or name another wrapper")]
    return found or [Remark("sudo", resource, f"sudo lets {account} run the wrapper, and not scontrol")]
