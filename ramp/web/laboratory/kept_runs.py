"""Runs on record: a server that begins finds those of the one before, also where that was killed."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.control.codec import findings_of, strict_converter
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import make_folder, write_whole
from ramp.web.laboratory.command_line import ANSWER_MAX
from ramp.web.laboratory.run import Run
from ramp.web.laboratory.run_process import ProcessMark

RECORD_VERSION: Final = 1
"""Of the record's format."""


@dataclass(frozen=True, slots=True)
class RunsRecord:
    """What is on record.

    Attributes:
        version: of the format.
        runs: the latest last.
        process: of the last, where that has not ended.
    """

    version: int = RECORD_VERSION
    runs: tuple[Run, ...] = ()
    process: ProcessMark | None = None


@dataclass(frozen=True, slots=True)
class KeptRuns:
    """The folder of the record, and of what the last run says and answers.

    Attributes:
        path: of the folder; made when there is something to keep.
    """

    path: Path

    @property
    def said(self) -> Path:
        """What the last run has said on standard error."""
        return self.path / "said.txt"

    @property
    def answer(self) -> Path:
        """What the last run has printed on standard output."""
        return self.path / "answer.json"

    def load(self) -> RunsRecord:
        """What is on record; where that cannot be read, nothing, and the log says why."""
        try:
            found = json.loads(self._record.read_bytes())
            record = strict_converter().structure(found, RunsRecord)
        except FileNotFoundError:
            return RunsRecord()
        except Exception as error:  # cattrs raises whatever it meets
            self._leave_aside(findings_of(error))
            return RunsRecord()
        if record.version != RECORD_VERSION:
            self._leave_aside(f"its version is {record.version}; right would be {RECORD_VERSION}")
            return RunsRecord()
        return record

    def _leave_aside(self, why: str) -> None:
        aside = self._record.with_suffix(".unread")
        logging.getLogger(__name__).warning(
            "the record of runs %s is left aside as %s: %s", self._record, aside.name, why
        )
        with contextlib.suppress(OSError):
            self._record.replace(aside)

    def keep(self, runs: Sequence[Run], process: ProcessMark | None) -> None:
        """Put something else on record, whole or not at all.

        Raises:
            OSError: if it cannot be written.
        """
        record = strict_converter().unstructure(RunsRecord(RECORD_VERSION, tuple(runs), process))
        write_whole(self._record, json.dumps(record, indent=1).encode(), private=True)

    def prepare(self) -> None:
        """Make the folder, which only its owner enters.

        Raises:
            OSError: if it cannot be made.
        """
        make_folder(self.path)

    def has_answered(self) -> bool:
        """Whether the last run has printed its whole answer, which is the last that it does."""
        try:
            with self.answer.open("rb") as file:
                json.loads(file.read(ANSWER_MAX))
        except (OSError, ValueError):
            return False
        return True

    def last_word_at(self) -> Instant | None:
        """When the last run has said or printed something for the last time; None where that is not known."""
        found = [each.stat().st_mtime_ns // 1000 for each in (self.said, self.answer) if each.exists()]
        return max(found, default=None)

    @property
    def _record(self) -> Path:
        return self.path / "runs.json"
