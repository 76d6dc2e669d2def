"""Acting as a buyer's local account: by which command the worker is run as it, and where its job folders are.

An agent that is root becomes the account; any other asks `sudo` for it, which needs one line of sudoers and the
installed worker (docs/launching.md). Nobody acts as root, or as the agent's own account, here.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ramp.errors import ConfigurationError
from ramp.launching import worker

HOME_FOLDER: Final = ".ramp/jobs"
"""Of job folders in an account's home, as the worker has it."""


@dataclass(frozen=True, slots=True)
class Acting:
    """By what programs others' accounts are acted as.

    Attributes:
        worker: command that runs the worker as another account, through `sudo -u`; by its full path.
        python: interpreter for the worker where it need not be installed.
        folder: where job folders are made, one folder an account; empty for the accounts' homes.
    """

    worker: str
    python: str
    folder: str = ""

    @classmethod
    def told(cls, plain: Mapping[str, str]) -> Self | None:
        """As `plain` has told it; None where that is empty."""
        return cls(plain["worker"], plain["python"], plain["folder"]) if plain else None

    def plain(self) -> dict[str, str]:
        """As a mapping, for what is said to another process."""
        return {"worker": self.worker, "python": self.python, "folder": self.folder}

    def command(self, account: str) -> tuple[tuple[str, ...], Mapping[str, Any], str]:
        """The worker's command as an account, what its process is made with, and the folder of its jobs.

        The folder is empty for the one that the worker takes by itself.

        Raises:
            ConfigurationError: if there is no such account, it is the agent's own or root, or its folder is not safe.
        """
        entry = account_of(account)
        if os.geteuid() != 0:
            folder = f"{self.folder}/{account}" if self.folder else ""
            return ("sudo", "-n", "-u", account, "--", self.worker), {}, folder
        folder = str(folder_for(entry, Path(self.folder))) if self.folder else ""
        return worker_inside(self.python), becoming(entry), folder

    def shell_folder(self, account: str) -> str:
        """The folder of an account's jobs, as a word of a shell that runs as it."""
        return f"{self.folder}/{account}" if self.folder else f'"$HOME"/{HOME_FOLDER}'


def worker_inside(python: str) -> tuple[str, ...]:
    """The worker's command where it need not be installed: its text goes along."""
    return (python, "-I", "-c", Path(worker.__file__).read_text("utf-8"))


def account_of(name: str) -> pwd.struct_passwd:
    """A local account that may be acted as.

    Raises:
        ConfigurationError: if there is none of that name, or it is the agent's own or root.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigurationError(f"no account {name!r} on this computer") from None
    if entry.pw_uid == os.geteuid() or entry.pw_uid == 0:
        raise ConfigurationError(f"jobs do not run as {name!r}, which is the agent's own account or root")
    return entry


def becoming(entry: pwd.struct_passwd) -> Mapping[str, Any]:
    """With what root makes a process of an account."""
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}


def folder_for(entry: pwd.struct_passwd, parent: Path) -> Path:
    """The folder of an account's jobs; its parent is root's, so that nobody else can make or replace it.

    Raises:
        ConfigurationError: if somebody else has.
    """
    parent.mkdir(mode=0o755, exist_ok=True)
    found = parent.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise ConfigurationError(f"{parent} is not a folder that only root can write to")
    parent.chmod(0o755)
    folder = parent / entry.pw_name
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder


def system_python() -> str:
    """An interpreter that other accounts can run too, as one in somebody's home is not; the worker needs no package."""
    base: str = getattr(sys, "_base_executable", sys.executable)
    return shutil.which("python3", path=worker.PATH) or base
