"""Acting as a buyer's local account: the command that runs the worker as it, and its job folders.

An agent that is root becomes the account; any other asks `sudo` for it, which needs one line of sudoers and the
installed worker (docs/launching.md). Acting as root or as the agent's own account is refused.
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
from typing import Final, Self

from ramp.errors import ConfigurationError
from ramp.launching import worker

HOME_FOLDER: Final = ".ramp/jobs"
"""Job folders in an account's home, as in the worker."""


@dataclass(frozen=True, slots=True)
class Acting:
    """Programs for acting as other accounts.

    Attributes:
        worker: command that runs the worker as another account, through `sudo -u`; by its full path.
        python: interpreter for a worker that is not installed.
        folder: parent of the job folders, one for each account; empty to use the accounts' homes.
    """

    worker: str
    python: str
    folder: str = ""

    @classmethod
    def told(cls, plain: Mapping[str, str]) -> Self | None:
        """Return the value that another process has got as a mapping; None if it is empty."""
        return cls(**plain) if plain else None

    def command(self, account: str) -> tuple[tuple[str, ...], str]:
        """Return the worker's command as an account, and the folder of its jobs.

        The folder is empty if the worker uses its default.

        Raises:
            ConfigurationError: the account is unknown, the agent's own or root, or its folder is not safe.
        """
        entry = account_of(account)
        if os.geteuid() != 0:
            folder = f"{self.folder}/{account}" if self.folder else ""
            return ("sudo", "-n", "-u", account, "--", self.worker), folder
        folder = str(folder_for(entry, Path(self.folder))) if self.folder else ""
        return (*becoming(entry), *worker_inside(self.python)), folder

    def shell_folder(self, account: str) -> str:
        """Return the folder of an account's jobs as a word for a shell of that account."""
        return f"{self.folder}/{account}" if self.folder else f'"$HOME"/{HOME_FOLDER}'


def worker_inside(python: str) -> tuple[str, ...]:
    """Return the worker's command if it is not installed: its text is part of the command."""
    return (python, "-I", "-c", Path(worker.__file__).read_text("utf-8"))


def account_of(name: str) -> pwd.struct_passwd:
    """Return a local account; `ConfigurationError` if it is unknown, root, or the agent's own."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigurationError(f"no account {name!r} on this computer") from None
    if entry.pw_uid == os.geteuid() or entry.pw_uid == 0:
        raise ConfigurationError(f"jobs do not run as {name!r}, which is the agent's own account or root")
    return entry


def becoming(entry: pwd.struct_passwd) -> tuple[str, ...]:
    """Return the command with which root runs another one as an account.

    It becomes the account in a program of its own. If a process of ours did so before it runs a program, as `Popen`
    with `user=` does, the account could stop that process, for which we wait.
    """
    groups = ",".join(map(str, os.getgrouplist(entry.pw_name, entry.pw_gid)))
    return ("setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", f"--groups={groups}", "--")


def folder_for(entry: pwd.struct_passwd, parent: Path) -> Path:
    """Return the folder of an account's jobs in root's folder; `ConfigurationError` if another account has made it."""
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
    """Return an interpreter outside all homes, so that other accounts can run it; the worker needs no package."""
    base: str = getattr(sys, "_base_executable", sys.executable)
    return shutil.which("python3", path=worker.PATH) or base
