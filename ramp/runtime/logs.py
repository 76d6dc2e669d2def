"""What processes write for people and programs: events, such as a sale or a restart, and logs that are rotated.

An event is one JSON line. Every process writes its own file under `logs/events`, so none waits for another; readers
merge them by time. The events are also lines of the process's log. Logs are rotated by copying and truncating, so that
their writers need not open them again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from ramp.model.instant import SECOND, Instant, from_iso, iso
from ramp.text import visible

LOOK_S: Final = 0.3
"""Pause between two checks for new lines in seconds."""

_ATTRIBUTE: Final = "market_event"
Line = TypeVar("Line")
_log = logging.getLogger("ramp.events")


@dataclass(frozen=True, slots=True)
class MarketEvent:
    """An event.

    Attributes:
        time: ISO 8601.
        agent: local name of its agent; `supervisor` and `server` are no agents.
        event: its kind, such as `sale`, `loss`, `refusal`, `request`, `cancellation`, `deposit`, or an agent's state.
        text: sentence for people.
        fields: values for programs.
    """

    time: str
    agent: str
    event: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def at(self) -> Instant:
        return from_iso(self.time)


def record(agent: str, event: str, text: str, **fields: str | int) -> None:
    """Record an event of an agent, by local or full name; the arguments are the fields of `MarketEvent`."""
    told = {"agent": agent.partition("@")[0], "event": event, "text": text, "fields": fields}
    _log.info("%s: %s: %s", told["agent"], event, text, extra={_ATTRIBUTE: told})


class _EventLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = getattr(record, _ATTRIBUTE, {})
        return visible(json.dumps({"time": _moment(record), **told}, ensure_ascii=False))


class _TextLines(logging.Formatter):
    """Write each message on one line, whatever another party has put into it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        return visible(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        return visible(super().formatException(ei))


LOG_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(level: int | str, line: str = LOG_LINE) -> None:
    """Let this process write its log to standard error, as lines of this format."""
    handler = logging.StreamHandler()
    handler.setFormatter(_TextLines(line))
    logging.basicConfig(level=level, handlers=[handler])


class JsonLines(logging.Formatter):
    """A log of JSON lines: `time`, `level`, `logger`, `message`, and for events also `agent`, `event` and `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": _moment(record), "level": record.levelname, "logger": record.name}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return visible(json.dumps({**line, **getattr(record, _ATTRIBUTE, {})}, ensure_ascii=False))


class _EventFile(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """A disk that is full costs the line; agents say themselves what they cannot write."""


def as_json_lines() -> None:
    """Let this process write its log as JSON lines."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())


def keep_events(path: Path, *, rotate_bytes: int, keep: int, in_log: bool = True) -> Callable[[], None]:
    """Let this process write its events to a file (`in_log`: also to its log), and return a function that ends that.

    The file is rotated at a size, and a number of rotated files kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = _EventFile(path, maxBytes=rotate_bytes, backupCount=keep, encoding="utf-8", delay=True)
    handler.setFormatter(_EventLines())
    _log.setLevel(logging.INFO)
    _log.addHandler(handler)
    _log.propagate = in_log

    def end() -> None:
        _log.removeHandler(handler)
        _log.propagate = True
        handler.close()

    return end


def read_events(folder: Path, name: str = "", since: Instant = 0) -> list[MarketEvent]:
    """Return all kept events of an agent (empty name: all agents) since a time, in order of time."""
    found = [event for path in sorted(folder.glob("*.jsonl*")) for event in json_lines(_text(path), MarketEvent)]
    wanted = [event for event in found if name in ("", event.agent) and event.time >= iso(since)]
    return sorted(wanted, key=lambda event: event.time)


def follow_events(
    folder: Path, name: str = "", *, wait: Callable[[float], None] = time.sleep
) -> Iterator[MarketEvent | None]:
    """Yield events of an agent (empty name: of all) forever, and None after each poll without news; `wait` pauses."""
    read: dict[Path, int] = {path: path.stat().st_size for path in folder.glob("*.jsonl")}
    while True:
        new: list[MarketEvent] = []
        for path in folder.glob("*.jsonl"):
            data = path.read_bytes()
            begin = read.get(path, 0)
            begin = begin if begin <= len(data) else 0  # the file was rotated
            whole = data[begin : data.rfind(b"\n") + 1]
            read[path] = begin + len(whole)
            new += json_lines(whole.decode("utf-8", errors="replace"), MarketEvent)
        yield from sorted((event for event in new if name in ("", event.agent)), key=lambda event: event.time)
        yield None
        wait(LOOK_S)


def json_lines(text: str, kind: Callable[..., Line]) -> Iterator[Line]:
    """Yield the lines of a text, JSON objects with a `time`, as values of a class; skip invalid ones."""
    for line in text.splitlines():
        try:
            plain = json.loads(line)
            from_iso(plain["time"])
            found = kind(**plain)
        except (ValueError, TypeError, KeyError):  # a line that a full disk has cut short
            continue
        yield found


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:  # rotated meanwhile
        return ""


def _moment(record: logging.LogRecord) -> str:
    return iso(round(record.created * SECOND))


def brief(error: BaseException) -> str:
    """Return an unexpected exception in one line: type, text and place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:200]!a}{place}"


def rotate(path: Path, *, rotate_bytes: int, keep: int) -> bool:
    """Rotate a log if it is large: to `NAME.1`, older ones to `NAME.2` and so on; return whether it was rotated.

    Its writers append (O_APPEND). Lines written between copy and cut are lost: a few lines at most.

    Raises:
        OSError: the copy cannot be written; the log is unchanged.
    """
    if not path.exists() or path.stat().st_size < rotate_bytes:
        return False
    aside = path.with_name(f"{path.name}.new")
    try:
        shutil.copyfile(path, aside)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    for number in range(keep, 1, -1):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(f"{path.name}.{number - 1}").rename(path.with_name(f"{path.name}.{number}"))
    aside.rename(path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)
    return True


def rotate_all(folder: Path, *, rotate_bytes: int, keep: int) -> None:
    """Rotate every log of a folder; skip one with an error."""
    for path in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            rotate(path, rotate_bytes=rotate_bytes, keep=keep)
