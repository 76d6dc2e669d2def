"""Conditions on which a Slurm cluster can be sold: clock, privilege, and a wrapper that reaches the same cluster.

The plug-in offers nothing while one of them is a finding, and `ramp doctor` reports the same findings.

scontrol(1), sudo(8), sudoers(5). Nothing is changed: `sudo -l COMMAND` only says whether sudo would run it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ramp.batch.commands import Runner, ask, own_account
from ramp.batch.inspecting import Remark
from ramp.batch.slurm.partition import CONF_VARIABLE, default_partition, partition_question
from ramp.batch.slurm.system import AS_OF, settings_question
from ramp.batch.slurm.times import instant_of
from ramp.errors import BatchSystemError
from ramp.model.instant import SECOND, Instant

WRAPPER: Final = Path(__file__).with_name("ramp-slurm-reservations")
"""The wrapper that ships with this version."""

WRAPPER_SETTINGS: Final = Path("/etc/ramp/slurm-reservations.conf")
CLOCK_OFF_MAX_S: Final = 5
"""Maximum difference of the controller's clock in seconds: it reports whole ones, and slots begin by it."""

TRIED: Final = ("22.05", "23.11", "24.11")
"""Versions whose outputs are among the tests; the first one live."""


def conditions(resource: str, wrapper: Sequence[str], partition: str, run: Runner, now: Instant) -> Sequence[Remark]:
    """Check the conditions for sales; a remark that is a finding forbids them."""
    try:
        config = ask(settings_question(), run)
    except BatchSystemError as error:
        return [Remark("cluster", resource, error.reason, "start slurmctld, or see why it does not answer")]
    slurm_user = config.get("SlurmUser", "").partition("(")[0]
    found = [
        _clock(resource, config, now),
        _version(resource, config),
        _partition(resource, partition, run),
        *privilege(resource, wrapper, slurm_user, run),
    ]
    if wrapper and not any(each.is_finding for each in found):
        found.append(_same_cluster(resource, wrapper, config, run))
    return found


def _same_cluster(resource: str, wrapper: Sequence[str], config: Mapping[str, str], run: Runner) -> Remark:
    """Ask the wrapper for its cluster: sudo passes no SLURM_CONF on."""
    try:
        theirs = _cluster_of(ask(settings_question(wrapper), run))
    except BatchSystemError as error:
        do = f"correct slurm_conf in {WRAPPER_SETTINGS}, or see why its cluster does not answer"
        return Remark("wrapper", resource, f"the wrapper reaches no cluster: {error.reason}", do)
    ours = _cluster_of(config)
    if theirs == ours:
        return Remark("wrapper", resource, f"plug-in and wrapper use the cluster {ours}")
    says = f"the plug-in uses the cluster {ours}, and the wrapper {theirs}"
    do = f"write `slurm_conf = PATH` into {WRAPPER_SETTINGS}, with the value of {CONF_VARIABLE} or of the option conf"
    return Remark("wrapper", resource, says, do)


def _cluster_of(config: Mapping[str, str]) -> str:
    """Name a cluster by its settings: clusters of one name differ in host or port."""
    host = config.get("SlurmctldHost[0]") or config.get("SlurmctldHost", "?")
    return f"{config.get('ClusterName', '?')} at {host}:{config.get('SlurmctldPort', '?')}"


def _partition(resource: str, name: str, run: Runner) -> Remark:
    try:
        name = name or default_partition(run)
        limits, _ = ask(partition_question(name, 1), run)
    except BatchSystemError as error:
        return Remark("partition", resource, error.reason, "correct the option partition")
    do = f"scontrol update PartitionName={name} State=UP" if limits.closed else ""
    return Remark("partition", resource, limits.closed or f"partition {name} starts jobs", do)


def _clock(resource: str, config: Mapping[str, str], now: Instant) -> Remark:
    """Compare clocks: the controller prints its own time above its configuration."""
    theirs = instant_of(config.get(AS_OF, ""))
    if theirs is None:
        return Remark("clock", resource, "slurmctld does not report its time")
    off = round((theirs - now) / SECOND)
    says = f"slurmctld's clock is {abs(off)} s {'ahead of' if off > 0 else 'behind'} this computer's"
    if abs(off) <= CLOCK_OFF_MAX_S:
        return Remark("clock", resource, f"slurmctld's clock is within {CLOCK_OFF_MAX_S} s of this computer's")
    return Remark("clock", resource, says, "set both by NTP: slots begin and end by slurmctld's clock")


def _version(resource: str, config: Mapping[str, str]) -> Remark:
    version = config.get("SLURM_VERSION", "of an unknown version")
    tried = version.startswith(TRIED)
    return Remark("version", resource, f"Slurm {version}" + ("" if tried else f"; tried were {', '.join(TRIED)}"))


def privilege(resource: str, wrapper: Sequence[str], slurm_user: str, run: Runner) -> Sequence[Remark]:
    """Check that this account may change reservations, and by a safe way."""
    account = own_account()
    if not wrapper:
        if os.geteuid() == 0 or account == slurm_user:
            return [Remark("privilege", resource, f"this account ({account}) may change reservations itself")]
        says = f"{account} is neither root nor SlurmUser ({slurm_user or 'unknown'}), and the options name no wrapper"
        return [Remark("privilege", resource, says, "install the wrapper (docs/slurm.md, Permissions) and name it")]
    return [*wrapper_remarks(resource, wrapper), *_sudo_remarks(resource, wrapper, account, run)]


def wrapper_remarks(
    resource: str, wrapper: Sequence[str], settings: Path = WRAPPER_SETTINGS, owner: int = 0
) -> Sequence[Remark]:
    """Check that the wrapper exists in this version, and that only its owner can change it or its settings."""
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


def _sudo_remarks(resource: str, wrapper: Sequence[str], account: str, run: Runner) -> Sequence[Remark]:
    """Check that sudo runs the wrapper without a password, and scontrol itself not at all."""
    if Path(wrapper[0]).name != "sudo":
        return []
    if os.geteuid() == 0:
        return [Remark("sudo", resource, "not tested: root has every permission; run this as the agent's account")]
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
