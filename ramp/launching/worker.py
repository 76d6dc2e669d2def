#!/usr/bin/python3 -I
"""The worker: stages, runs, looks up, ends and reads one buyer's jobs, as the buyer's local account.

It is one file of the standard library, so that a site can read it, install it and allow it by one line of sudoers. It
takes no arguments and no environment, reads one question as a line of JSON from standard input, and prints one answer.
Each question has its own run.

    ROOT/RESOURCE/JOB/       ROOT is ~/.ramp/jobs unless the question names another
        inputs.tar.gz        inputs, sent in pieces before the job and unpacked into work/
        work/                working directory of the command: the staged files, and its results
        stdout, stderr       its output

On this computer, for simulated machines, the job's keeper (`keeper.py`) starts the worker, which stages the job and
becomes its command. In a batch system the worker stages a script:

        run                  the script; made once
        started/             made by the script before anything else, so that no second start runs it again
        began, ended         time of start; exit code and time of end: shown to the buyer, and no evidence for anyone
        cancelled            marks a job that must end
    ROOT/queued/KEY/JOB      an order for the script of a job in a queue, KEY: its earliest start, and its folder

`slurm` and `gridengine` submit the script into the slot's reservation. The queue knows the job by its name, so a job
whose number nobody has recorded is found again and not submitted twice. Without a reservation, the order goes to a job
that the account already has in a queue, whose script (`queue_script.py`) looks for orders each second. The worker also
runs, as the account, the commands that hold, release and delete such jobs. It checks sizes, names and paths of orders
again, because an agent may be wrong. The account owns all of these files, so nothing in them decides what the buyer
pays.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import gzip
import hashlib
import json
import os
import pwd
import re
import resource
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

VERSION: Final = 1

QUESTION_BYTES_MAX: Final = 400_000
OUTPUT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum size of a job's file (`ulimit -f`), so that a faulty job does not fill the site's disk."""

PIECE_MAX: Final = 48 * 1024
ARCHIVE: Final = "inputs.tar.gz"
ARCHIVE_BYTES_MAX: Final = 32 * 1024 * 1024
UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Maximum size of all unpacked inputs in bytes."""

LISTED_MAX: Final = 10_000
"""Maximum number of names that a list of a job's files looks at."""

DEPTH_MAX: Final = 50
"""Maximum depth of folders in a list of files."""

BUYERS_ERRORS: Final = {errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.EDQUOT}
"""Errors while unpacking inputs that are not the site's fault."""

SMALL_MAX: Final = 4096
"""Maximum size of a file that the worker reads at once, in bytes."""

PATH_MAX: Final = 1_000
STREAMS: Final = ("stdout", "stderr")
SAFELY: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NAME: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,199}")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
MOMENT: Final = re.compile(r"(\d{9,11})\.(\d{1,9})")
ENDED: Final = re.compile(rf"(\d{{1,3}}) ({MOMENT.pattern})")
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
CANNOT_RUN: Final = 125
"""Exit code of a worker that could not become the job's command."""

ANSWER_LIMIT_S: Final = 44
"""Timeout of a whole question in seconds, below that of the agent."""

COMMANDS: Final = ("sbatch", "scancel", "scontrol", "qsub", "qrls", "qdel")
"""Commands that an agent may have the account run."""

COMMAND_MAX_S: Final = 40
"""Maximum timeout of such a command in seconds."""

LISTED: Final = {"slurm": ("squeue", "-h", "-o", "%T", "-j"), "gridengine": ("qstat", "-j")}
"""Commands that list a job by its number."""

COMMAND_LIMIT_S: Final = 10
"""Timeout of a command of a batch system in seconds: Slurm's own; Grid Engine's commands have none."""

HANDED_OVER_S: Final = 10.0
"""Seconds to retry with a reservation that the account cannot use yet."""

JOB_PREFIX: Final = "ramp_"
"""Prefix of a job's name in a batch system; the name of its folder follows."""

NOT_YET: Final = re.compile("Access denied to requested reservation|no suitable queues")
"""Refusal of an account that may not use a reservation yet: the handover follows the payment, at about that time."""

DOUBT: Final = re.compile(
    "Unable to contact|timed out|Unexpected message|Zero Bytes|temporarily|unable to (send|receive|contact)|commlib",
    re.IGNORECASE,
)
"""Complaints after which a job may or may not have been submitted; it is looked up by name."""

ENDED_JOB: Final = re.compile(
    "|COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|OUT_OF_MEMORY|DEADLINE|BOOT_FAIL"
)
"""States of ended jobs in Slurm, squeue(1); the output is empty for a forgotten job."""

UNKNOWN_JOB: Final = re.compile("Invalid job id|do(es)? not exist")

NO_MEMORY_SETTING: Final = ("DefMemPerNode", "MaxMemPerNode")
"""Settings that Slurm shows as unlimited if a site sets no default and no limit for the memory of a job."""

LISTED_JOB: Final = re.compile(
    r"<JB_job_number>(\d+)</JB_job_number>.*?<JB_name>([^<]*)</JB_name>.*?<state>(\w+)</state>", re.DOTALL
)
"""Number, name and state of a job as `qstat -xml` lists it; in a name `<` is escaped."""

SAID_MAX: Final = 20_000
"""Maximum output of a command in bytes."""

PASSED: Final = (
    r"SLURM[A-Z0-9_]*\|SGE_[A-Z0-9_]*\|PE_HOSTFILE\|PE\|NHOSTS\|NSLOTS\|NQUEUES\|JOB_ID\|TMPDIR\|CUDA_VISIBLE_DEVICES"
)
"""Variables of a batch system with which `srun`, `mpirun` and `qrsh` find a job's nodes; a pattern of sed."""

RUN: Final = """\
#!/bin/sh
cd {folder} || exit 125
[ ! -e cancelled ] && mkdir started 2>/dev/null || exit 126
child= stopped=
trap 'stopped=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT XCPU
date +%s.%N > began.new && mv began.new began
cd work || exit 125
ulimit -f {blocks}
set --
for name in $(env | sed -n '/^SLURM_EXPORT/d; s/^\\({passed}\\)=.*/\\1/p'); do
    eval "set -- \\"\\$@\\" $name=\\"\\$$name\\""
done
code=143
if [ -z "$stopped" ]; then
    env -i {environment} "$@" {command} > ../stdout 2> ../stderr < /dev/null &
    child=$!
    [ -z "$stopped" ] || {{ sleep 1; kill -TERM "$child" 2>/dev/null; }}
    wait $child
    code=$?
    while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
fi
trap '' TERM INT XCPU
cd ..
echo "$code $(date +%s.%N)" > ended.new && mv ended.new ended
exit $code
"""


class WrongQuestion(Exception):
    """The question is invalid or exceeds a limit."""


class WrongInputs(Exception):
    """The archive of inputs is incomplete or cannot be unpacked, by the buyer's fault."""


def main() -> int:
    """Answer one question, or become a job's command."""
    os.umask(0o077)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.alarm(ANSWER_LIMIT_S)  # a file system that hangs ends the worker, because its agent may not be allowed to
    starting = False
    try:
        question = json.loads(sys.stdin.buffer.readline(QUESTION_BYTES_MAX))
        starting = question.get("verb") == "run"
        answer = answered(question)
    except (WrongQuestion, ValueError, KeyError, TypeError, AttributeError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    except WrongInputs as error:
        answer = {"error": str(error)}
    except OSError as error:
        answer = {"error": f"{error.strerror}: {error.filename}" if error.filename else str(error)}
    print(json.dumps({"version": VERSION, **answer}))
    return CANNOT_RUN if starting else 0


def answered(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a question; `WrongQuestion` if it is invalid."""
    if question.get("version") != VERSION:
        got = question.get("version")
        remedy = "install the worker of the same version of RAMP"
        raise WrongQuestion(f"wrong version of the question: got {got}, expected {VERSION}; {remedy}")
    me = pwd.getpwuid(os.geteuid())
    given = {name: str(value) for name, value in question.get("variables", {}).items() if VARIABLE.fullmatch(name)}
    os.environ.clear()
    os.environ.update(given)
    path = f"{given['PATH']}:{PATH}" if given.get("PATH") else PATH
    os.environ.update(PATH=path, HOME=me.pw_dir, USER=me.pw_name, LOGNAME=me.pw_name, LC_ALL="C.UTF-8", TZ="UTC")
    verb = question["verb"]
    if verb == "command":
        return commanded(question)
    if verb == "end":
        return ended(question)
    if verb == "run":
        print(json.dumps({"version": VERSION}), flush=True)  # its keeper records the start, and sends the job
        signal.alarm(0)
        question = json.loads(sys.stdin.buffer.readline(QUESTION_BYTES_MAX))
    job = question["job"]
    folder = folder_of(Path(question.get("root") or Path(me.pw_dir) / ".ramp" / "jobs"), job)
    if verb == "run":
        run(folder, job, me)
    if verb == "read":
        return read(folder, str(question["name"]), int(question["offset"]))
    if verb == "stage":
        return keep(folder, int(question["offset"]), base64.b64decode(str(question["data"]), validate=True))
    batch = batch_named(str(question["executor"]), job)
    if verb == "submit" and not (folder / "run").exists():
        try:
            write_script(folder, job, me)
        except WrongInputs as error:
            return {"seen": sight("failed", detail=str(error))}
    elif not (folder / "run").exists():
        return {"seen": None}
    if verb == "cancel":
        (folder / "cancelled").touch()
        batch.end(folder, job)
    if verb == "submit" and not any((folder / name).exists() for name in ("cancelled", "started")):
        refused = batch.submit(folder, job)
        if refused:
            return {"seen": sight("failed", detail=refused)}
    return {"seen": seen(folder, batch, job)}


def folder_of(root: Path, job: dict[str, Any]) -> Path:
    """Return the job's folder, whose name cannot lead elsewhere, inside a folder of this account."""
    for name in (str(job["resource"]), str(job["job_id"])):
        if not NAME.fullmatch(name):
            raise WrongQuestion(f"invalid name of a resource or job: {name!r}")
    root.mkdir(parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise WrongQuestion(f"{root} is not a folder of the account's own")
    return root / str(job["resource"]) / str(job["job_id"])


def commanded(question: dict[str, Any]) -> dict[str, Any]:
    """Run a command that adds jobs to a queue, releases or deletes them, and return its output."""
    argv = [str(word) for word in question["argv"]]
    if not argv or Path(argv[0]).name not in COMMANDS:
        raise WrongQuestion(f"{argv[:1]!r} is no command by which jobs are submitted")
    limit = min(float(question["limit_s"]), COMMAND_MAX_S)
    try:
        stdin = str(question["stdin"]).encode()
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=limit, cwd="/", check=False)
    except subprocess.TimeoutExpired:
        return {"timed_out": limit}
    except FileNotFoundError as error:
        raise WrongQuestion(f"{argv[0]} is not installed") from error
    out, err = (text[:SAID_MAX].decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return {"code": done.returncode, "stdout": out, "stderr": err}


# -- files of a job ------------------------------------------------------------------------------------------------


def opened(folder: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file below a job's folder and return its descriptor.

    Whatever a job leaves there leads nowhere else and makes nobody wait: each folder on the way is opened inside the
    one before without following a link, and a pipe, a socket or a device is refused.

    Args:
        folder: the job's folder, ROOT/RESOURCE/JOB.
        name: path of the file in it; its folders exist.
        flags: how to open it; with `O_CREAT` only the account can read it.

    Raises:
        WrongQuestion: the name has an empty part or leads upwards.
        OSError: there is no such file, a part is a link, or it is not a regular file.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise WrongQuestion(f"invalid file name: {name!r}")
    inside = entered(folder, parts[:-1], make=bool(flags & os.O_CREAT))
    try:
        found = os.open(parts[-1], flags | SAFELY, 0o600, dir_fd=inside)
    finally:
        os.close(inside)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    raise OSError(errno.EINVAL, "not a regular file", name)


def entered(folder: Path, parts: Sequence[str], *, make: bool = False) -> int:
    """Open a folder below a job's folder as `opened` does and return its descriptor; `make` makes missing ones."""
    flags = os.O_RDONLY | os.O_DIRECTORY | SAFELY
    inside = os.open(folder.parents[1], flags)
    for part in (*folder.parts[-2:], *parts):
        outside = inside
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=outside)
            inside = os.open(part, flags, dir_fd=outside)
        finally:
            os.close(outside)
    return inside


def piece_of(folder: Path, name: str, offset: int, size: int) -> tuple[bytes, int]:
    """Return at most `size` bytes of a file in a job's folder, and the size of the whole file."""
    found = opened(folder, name)
    try:
        return os.pread(found, size, offset), os.fstat(found).st_size
    finally:
        os.close(found)


def write(folder: Path, name: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file into a job's folder; one that is there already is overwritten."""
    with open(opened(folder, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)


def text_of(folder: Path, name: str) -> str:
    """Return the contents of a small file of the folder; empty if it is missing or not a regular file."""
    try:
        return piece_of(folder, name, 0, SMALL_MAX)[0].decode("utf-8", "replace").strip()
    except OSError:
        return ""


def listed(folder: Path, offset: int) -> tuple[bytes, int]:
    """Return a piece of the list of a job's streams and regular files, and the number of all of them.

    Each entry is a line of JSON: path, size in bytes, time of the last change in microseconds. Links, and names that
    are no printable text, are left out.

    Args:
        folder: the job's folder.
        offset: number of entries to skip.
    """
    lines: list[bytes] = []

    def add(path: str, state: os.stat_result) -> None:
        if stat.S_ISREG(state.st_mode) and path.isprintable() and len(path) <= PATH_MAX:
            lines.append(json.dumps([path, state.st_size, state.st_mtime_ns // 1000]).encode() + b"\n")

    looked_at = 0
    for name in STREAMS:
        with contextlib.suppress(OSError):
            add(name, (folder / name).lstat())
    top = entered(folder, ["work"])
    try:
        for here, folders, files, inside in os.fwalk(".", dir_fd=top):
            folders[:] = sorted(folders) if here.count("/") < DEPTH_MAX else []
            for name in sorted(files):
                path = f"{here}/{name}".removeprefix("./")
                with contextlib.suppress(OSError):
                    state = os.stat(name, dir_fd=inside, follow_symlinks=False)
                    add(f"./{path}" if path in STREAMS else path, state)
            looked_at += len(files) + len(folders)
            if looked_at > LISTED_MAX:
                break
    finally:
        os.close(top)
    piece = b""
    for line in lines[offset:LISTED_MAX]:
        if len(piece) + len(line) > PIECE_MAX:
            break
        piece += line
    return piece, min(len(lines), LISTED_MAX)


# -- staging -------------------------------------------------------------------------------------------------------


def keep(folder: Path, offset: int, data: bytes) -> dict[str, Any]:
    """Keep a piece of a job's archive of inputs, and return how much of the archive there is."""
    if not 0 <= offset <= ARCHIVE_BYTES_MAX - len(data):
        raise WrongQuestion(f"a piece of inputs from {offset} on")
    if not (folder / "run").exists():
        with open(opened(folder, ARCHIVE, os.O_WRONLY | os.O_CREAT), "wb") as file:
            os.pwrite(file.fileno(), data, offset)
            size = os.fstat(file.fileno()).st_size
        return {"data": "", "size": size, "complete": False}
    return {"code": "no_file", "detail": "the job has been submitted"}


class Bounded:
    """A source of bytes that ends with an error instead of becoming too large."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._left = UNPACKED_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        data: bytes = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise WrongInputs(f"the inputs are too large: expected at most {UNPACKED_BYTES_MAX} bytes")
        return data


def unpack(folder: Path, digest: str) -> None:
    """Unpack the regular files of a job's archive of inputs into `work`; `WrongInputs` if that is impossible."""
    try:
        with open(opened(folder, ARCHIVE), "rb") as file:
            found = hashlib.sha256()
            while block := file.read(1024 * 1024):
                found.update(block)
            if found.hexdigest() != digest:
                raise WrongInputs("the inputs arrived incomplete: the checksum of their archive differs")
            file.seek(0)
            source: Any = Bounded(gzip.GzipFile(fileobj=file))
            with tarfile.open(fileobj=source, mode="r|") as archive:
                for member in archive:
                    unpack_one(folder, archive, member)
    except FileNotFoundError:
        raise WrongInputs("the inputs of the job never arrived") from None
    except (tarfile.TarError, EOFError, ValueError, zlib.error, gzip.BadGzipFile, WrongQuestion) as error:
        raise WrongInputs(f"the inputs cannot be unpacked: {error}") from error
    except OSError as error:
        if error.errno in BUYERS_ERRORS:
            raise WrongInputs(f"the inputs cannot be unpacked: {error.strerror}: {error.filename}") from error
        raise


def unpack_one(folder: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    """Unpack one file; one with holes may be larger than its archive by any amount."""
    content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if content is None:
        raise WrongInputs(f"the inputs cannot be unpacked: {member.name!r:.80} is not a regular file")
    with open(opened(folder, f"work/{member.name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        shutil.copyfileobj(content, file)
        os.fchmod(file.fileno(), 0o700 if member.mode & 0o100 else 0o600)


def stage(folder: Path, job: dict[str, Any], me: pwd.struct_passwd) -> dict[str, str]:
    """Create the folder with the staged files, and return the environment of the command."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    if job.get("archive"):
        unpack(folder, str(job["archive"]))
    environment = {"PATH": PATH, "HOME": me.pw_dir, "USER": me.pw_name, "LOGNAME": me.pw_name, "LANG": "C.UTF-8"}
    for name, value in job["environment"]:
        if not VARIABLE.fullmatch(str(name)):
            raise WrongQuestion(f"invalid variable: {name!r}")
        environment[str(name)] = str(value)
    return environment


def run(folder: Path, job: dict[str, Any], me: pwd.struct_passwd) -> NoReturn:
    """Become the job's command, in its folder and with its files as standard streams."""
    environment = stage(folder, job, me)
    (folder / ARCHIVE).unlink(missing_ok=True)
    command = [str(word) for word in job["arguments"]]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    streams = [os.open(os.devnull, os.O_RDONLY), *(opened(folder, name, flags) for name in ("stdout", "stderr"))]
    os.chdir(folder / "work")
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES_MAX, OUTPUT_BYTES_MAX))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for standard, stream in enumerate(streams):
        os.set_blocking(stream, True)
        os.dup2(stream, standard)
    os.execve("/usr/bin/env", ["env", "--", *command], environment)  # noqa: S606 - the command is the buyer's own


def write_script(folder: Path, job: dict[str, Any], me: pwd.struct_passwd) -> None:
    """Stage a job and the script that a batch system runs; it comes last, so a folder without it is staged again."""
    environment = stage(folder, job, me)
    script = RUN.format(
        folder=shlex.quote(str(folder)),
        blocks=OUTPUT_BYTES_MAX // 512,
        passed=PASSED,
        environment=" ".join(shlex.quote(f"{name}={value}") for name, value in environment.items()),
        command=" ".join(shlex.quote(str(word)) for word in job["arguments"]),
    )
    write(folder, "run.new", script.encode(), 0o700)
    (folder / "run.new").rename(folder / "run")
    (folder / ARCHIVE).unlink(missing_ok=True)


def ended(question: dict[str, Any]) -> dict[str, Any]:
    """Send a signal to processes of this account: the named ones, and those with a mark in their environment."""
    for pid in {*map(int, question["pids"]), *carrying(str(question["mark"]), os.geteuid())}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if pid > 1:
                os.kill(pid, int(question["signal"]))
    return {}


def carrying(mark: str, uid: int) -> list[int]:
    """Return the processes of an account that were started with `NAME=value` in their environment; none for ""."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                mine = bool(mark) and entry.stat().st_uid == uid
                if mine and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def sight(state: str, **values: Any) -> dict[str, Any]:
    """Return the state of a job for the agent, with times in microseconds."""
    empty = {"native_id": "", "cores": 0, "started_at": None, "ended_at": None, "exit_code": None, "detail": ""}
    return {"state": state, **empty, **values}


def is_over(state: dict[str, Any]) -> bool:
    """Return whether a job has ended or will never start."""
    return state["state"] in ("done", "failed", "cancelled")


def seen(folder: Path, batch: Batch | QueuedOrders, job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the state of a job according to its folder, otherwise to its batch system; for its owner to see only."""
    ended = ENDED.fullmatch(text_of(folder, "ended"))  # first: what has ended has begun
    began = moment(text_of(folder, "began"))
    known: dict[str, Any] = {"started_at": began, "cores": 0 if began is None else int(job["cores"])}
    known["native_id"] = str(job["reservation_id"]) if "queue_key" in job else ""  # of a job in a queue, known before
    cancelled = (folder / "cancelled").exists()
    if ended and began is not None:
        code = int(ended[1])
        code = 128 - code if code > 128 else code
        state = "cancelled" if cancelled and code else "failed" if code else "done"
        return sight(state, **known, ended_at=moment(ended[2]), exit_code=code)
    alive, detail, known["native_id"] = batch.lives(folder, job)
    if alive is None and not cancelled and not (folder / "started").exists():
        return None  # it was staged and not submitted, or was lost before it began
    if alive:
        return sight("running" if began is not None else "queued", **known, detail=detail)
    if not ended and ENDED.fullmatch(text_of(folder, "ended")):  # it has ended between the two looks
        return seen(folder, batch, job)
    if cancelled:
        return sight("cancelled", **known, ended_at=moment(str(time.time())))
    if began is None:
        return sight("failed", **known, detail=detail or "it was cancelled before it started")
    what = detail or "it was killed: its slot ended, or it was cancelled"
    return sight("failed", **known, ended_at=moment(str(time.time())), detail=what)


def moment(text: str) -> int | None:
    """Convert seconds since 1970 to microseconds."""
    found = MOMENT.fullmatch(text)
    return int(found[1]) * 1_000_000 + int((found[2] + "000000")[:6]) if found else None


def read(folder: Path, name: str, offset: int) -> dict[str, Any]:
    """Return a piece of a stream, a file or the list of files of the job; follow no links, as a job can create any."""
    if offset < 0:
        raise WrongQuestion(f"{name!r} from {offset} on")
    complete = bool(text_of(folder, "ended")) or (folder / "cancelled").exists()
    try:
        if name == ".":
            piece, size = listed(folder, offset)
        else:
            path = name if name in STREAMS else f"work/{name.removeprefix('./')}"
            piece, size = piece_of(folder, path, offset, PIECE_MAX)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and name in STREAMS and (folder / "run").exists():
            return {"data": "", "size": 0, "complete": complete}
        what = "the job has left no files" if name == "." else f"cannot read {name}"
        return {"code": "no_file", "detail": f"{what}: {error.strerror}"}
    return {"data": base64.b64encode(piece).decode("ascii"), "size": size, "complete": complete}


# -- batch systems -------------------------------------------------------------------------------------------------


class Batch(ABC):
    """A batch system that runs jobs in reservations."""

    name: str
    delete: tuple[str, ...]

    @abstractmethod
    def submission(self, folder: Path, job: dict[str, Any]) -> list[str]:
        """Return the command that submits the job's script."""

    @abstractmethod
    def lives(self, folder: Path, job: dict[str, Any]) -> tuple[bool | None, str, str]:
        """Return whether the job is listed and has not ended (None: not listed), a sentence about it, its number."""

    def submit(self, folder: Path, job: dict[str, Any]) -> str:
        """Submit the script unless it was submitted; return why it is refused, empty if it is not.

        Raises:
            OSError: the submission is impossible now, or its result is unknown.
        """
        if self.lives(folder, job)[0] is not None:
            return ""
        command = self.submission(folder, job)
        until = time.monotonic() + HANDED_OVER_S
        while True:
            code, said = ran(command)
            if not code:
                return ""
            waits = NOT_YET.search(said) is not None
            if DOUBT.search(said) or (waits and time.monotonic() > until):
                raise OSError(said)
            if not waits:
                return f"{self.name} does not take it: {said}"
            time.sleep(1)

    def end(self, folder: Path, job: dict[str, Any]) -> None:
        """End a job; one that is missing in the queue ends itself if it starts later."""
        number = self.lives(folder, job)[2]
        if number:
            code, said = ran([*self.delete, number])
            if code and not UNKNOWN_JOB.search(said):
                raise OSError(said)


class Slurm(Batch):
    """Slurm 22.05 and later: sbatch(1), squeue(1)."""

    name = "Slurm"
    delete = ("scancel", "-Q")

    def submission(self, folder: Path, job: dict[str, Any]) -> list[str]:
        """See `Batch`; the time limit is the end of the slot."""
        cores, reservation = int(job["cores"]), str(job["reservation_id"])
        begin, end = int(job["begin_at"]) // 1_000_000, int(job["end_at"]) // 1_000_000
        seconds = max(1, end - max(begin, int(time.time())))
        command = ["sbatch", f"--job-name={JOB_PREFIX}{folder.name}", f"--reservation={reservation}"]
        command += [f"--ntasks={cores}", f"--nodes=1-{cores}", f"--gres={job['gres']}"]
        command += [f"--time={seconds // 60}:{seconds % 60:02}"]
        command += [f"--begin={time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(begin))}"]
        with contextlib.suppress(OSError):  # a site may hide its reservations
            if memory := slurm_memory(reservation):
                command.append(f"--mem-per-cpu={memory}M")
        return [*command, f"--chdir={folder}", "--output=/dev/null", "--error=/dev/null", str(folder / "run")]

    def lives(self, folder: Path, job: dict[str, Any]) -> tuple[bool | None, str, str]:
        """See `Batch`; the sentence is Slurm's reason, which may have several words."""
        listing = ["squeue", "--me", "-h", "-t", "all", "-n", f"{JOB_PREFIX}{folder.name}", "-o", "%A %T %r"]
        line = printed(listing).partition("\n")[0]
        if not line:
            return None, "", ""
        found = re.fullmatch(r"(\d+) ([A-Z_]+) (.*)", line)
        if found is None:
            raise OSError(f"squeue: unreadable line {line[:80]!r}")
        return not ENDED_JOB.fullmatch(found[2]), found[3].strip(), found[1]


def slurm_memory(reservation: str) -> int:
    """Return the share in MB of a CPU of a reservation's nodes; 0 if Slurm allots no memory, or the site has a default.

    Without either a job gets all memory of its nodes, and waits if another job has some.
    """
    config = printed(["scontrol", "show", "config"])
    if not re.search(r"^SelectTypeParameters\s*=.*MEMORY", config, re.MULTILINE | re.IGNORECASE):
        return 0
    shown = printed(["scontrol", "-o", "show", "reservation", reservation])
    nodes, partition = (re.search(rf"\b{name}=(\S+)", shown) for name in ("Nodes", "PartitionName"))
    if nodes is None or partition is None:
        return 0
    settings = [config, printed(["scontrol", "-o", "show", "partition", partition[1]])]
    if not all(re.search(rf"\b{name}\s*=\s*UNLIMITED", text) for text in settings for name in NO_MEMORY_SETTING):
        return 0
    listed = printed(["sinfo", "-h", "-N", "-n", nodes[1], "-p", partition[1], "-o", "%m %c"])
    return min((int(memory) // int(cpus) for memory, cpus in map(str.split, listed.splitlines())), default=0)


class GridEngine(Batch):
    """Grid Engine 8.1: qsub(1), qstat(1). It ends all jobs at the end of their reservation."""

    name = "Grid Engine"
    delete = ("qdel",)

    def submission(self, folder: Path, job: dict[str, Any]) -> list[str]:
        """See `Batch`; slots are those of the parallel environment that the reservation has."""
        reservation = str(job["reservation_id"])
        if not reservation.isdecimal():
            raise WrongQuestion(f"invalid number of a reservation: {reservation!r}")
        shown = printed(["qrstat", "-ar", reservation])
        environment = re.search(r"^granted_parallel_environment\s+(\S+)", shown, re.MULTILINE)
        if environment is None:
            raise OSError(f"qrstat: reservation {reservation} has no parallel environment")
        begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(int(job["begin_at"]) // 1_000_000))
        command = ["qsub", "-terse", "-N", f"{JOB_PREFIX}{folder.name}", "-ar", reservation, "-a", begin]
        command += ["-pe", environment[1], str(int(job["cores"])), "-V", "-r", "n", "-wd", str(folder)]
        # as a binary, because qsub looks for options in all lines of a script, and the buyer's command is in it
        return [*command, "-o", "/dev/null", "-e", "/dev/null", "-b", "y", "-shell", "n", str(folder / "run")]

    def lives(self, folder: Path, job: dict[str, Any]) -> tuple[bool | None, str, str]:
        """See `Batch`; ended jobs are not listed."""
        for number, name, state in LISTED_JOB.findall(printed(["qstat", "-u", os.environ["USER"], "-xml"])):
            if name == f"{JOB_PREFIX}{folder.name}":
                failed = f"Grid Engine could not start it (state {state}); see qstat -explain E" if "E" in state else ""
                return not failed, failed, number
        return None, "", ""


class QueuedOrders:
    """Orders to a job that the account has in a queue; the script of that job runs them, and ends cancelled ones."""

    def __init__(self, system: str) -> None:
        self._listing = LISTED[system]
        self._is_slurm = system == "slurm"

    def submit(self, folder: Path, job: dict[str, Any]) -> str:
        """Leave an order, with its earliest start and the job's folder; return why that is impossible."""
        key, number = str(job["queue_key"]), str(job["reservation_id"])
        if not NAME.fullmatch(key) or not number.isdecimal():
            return f"invalid job of a queue: {key!r}, {number!r}"
        orders = folder.parents[1] / "queued" / key
        orders.mkdir(parents=True, exist_ok=True)
        new = orders / f".{folder.name}"
        new.write_text(f"{-(-int(job['begin_at']) // 1_000_000)}\n{folder}\n", "utf-8")
        new.rename(orders / folder.name)
        (folder / "ordered").touch()
        return ""

    def end(self, folder: Path, job: dict[str, Any]) -> None:
        """Leave it to the script, which looks for the mark `cancelled` in the job's folder."""

    def lives(self, folder: Path, job: dict[str, Any]) -> tuple[bool | None, str, str]:
        """See `Batch.lives`, of the job in the queue; `OSError` if the state is unknown."""
        number = str(job["reservation_id"])
        if not (folder / "ordered").exists():
            return None, "", number
        code, said = ran([*self._listing, number])
        if code and not UNKNOWN_JOB.search(said):
            raise OSError(f"{self._listing[0]}: {said[:300] or code}")
        if code or (self._is_slurm and ENDED_JOB.fullmatch(said)):
            return False, f"job {number} of the queue has ended", number
        return True, "", number


def batch_named(name: str, job: dict[str, Any]) -> Batch | QueuedOrders:
    """Return the batch system with a name; `WrongQuestion` if it is unknown."""
    if name not in LISTED:
        raise WrongQuestion(f"unknown batch system {name!r}")
    if job.get("queue_key"):
        return QueuedOrders(name)
    return Slurm() if name == "slurm" else GridEngine()


def ran(command: Sequence[str]) -> tuple[int, str]:
    """Return exit code and output of a command, with errors if it fails; `OSError` if it cannot run or is too slow."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, cwd="/", check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{command[0]} does not answer within {COMMAND_LIMIT_S} s") from error
    return done.returncode, (done.stdout + (done.stderr if done.returncode else "")).strip()


def printed(command: Sequence[str]) -> str:
    """Return the output of a command; `OSError` if it fails."""
    code, said = ran(command)
    if code:
        raise OSError(f"{command[0]}: {' '.join(said.split()) or code}")
    return said


if __name__ == "__main__":
    sys.exit(main())
