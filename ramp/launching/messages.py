"""Questions to the worker and its answers, as JSON; every answer is checked."""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from ramp.errors import wrong_version
from ramp.launching.configuration import BATCH_SYSTEMS
from ramp.launching.worker import VERSION
from ramp.model.contents.jobs import OUTPUT_CHUNK_BYTES, JobState
from ramp.protocol import effects as fx
from ramp.protocol import events as ev

ANSWER_BYTES_MAX: Final = 200_000
"""Maximum answer: a piece of output in base64."""

DETAIL_MAX: Final = 1_000
"""Maximum length of a sentence in characters."""

_VERBS: Final[Mapping[type, str]] = {
    fx.SubmitJob: "submit",
    fx.LookUpJob: "look_up",
    fx.CancelJob: "cancel",
    fx.ReadJobFile: "read",
    fx.StageJobInput: "stage",
}
_SEEN_STATES: Final = frozenset(JobState) - {JobState.TAKEN}


def question_text(
    question: fx.AskLauncher,
    executor: str,
    root: str,
    variables: Mapping[str, str],
) -> bytes:
    """Encode a question for the worker.

    Args:
        question: the question.
        executor: executor of the jobs.
        root: folder of the job folders; empty for the account's own.
        variables: environment of the batch system's commands; its `PATH` precedes the usual folders.
    """
    job = question.job
    plain: dict[str, Any] = {
        "version": VERSION,
        "verb": _VERBS[type(question)],
        "executor": executor,
        "variables": dict(variables),
        **job_plain(job, root),
    }
    if job.queue_key and executor in BATCH_SYSTEMS:
        plain["job"]["queue_key"] = job.queue_key
    if isinstance(question, fx.ReadJobFile):
        plain |= {"name": question.name, "offset": question.offset}
    if isinstance(question, fx.StageJobInput):
        plain |= {"offset": question.offset, "data": question.data}
    return json.dumps(plain).encode()


def job_plain(job: fx.JobToRun, root: str) -> dict[str, Any]:
    """Return a job, and the folder of the job folders, for the worker."""
    plain = asdict(job)
    for name in ("account", "queue_key", "start_by"):
        del plain[name]
    return {"root": root, "job": plain}


def answer_of(question: fx.AskLauncher, text: bytes) -> ev.JobSeen | ev.JobFileRead:
    """Decode the worker's answer; `ValueError` if it is invalid or impossible."""
    if len(text) > ANSWER_BYTES_MAX:
        raise ValueError(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise ValueError(f"invalid JSON: {text[:80]!r}") from error
    if not isinstance(plain, dict) or plain.get("version") != VERSION:
        got = plain.get("version") if isinstance(plain, dict) else None
        raise ValueError(
            wrong_version("the worker's answer", got, VERSION, "install the worker of the same version of RAMP")
        )
    if "error" in plain:
        raise ValueError(_sentence(plain["error"]))
    if isinstance(question, fx.ReadJobFile | fx.StageJobInput):
        return _read(question, plain)
    if plain.get("seen", "") is None:
        return ev.JobSeen(question.job.job_id, None)
    return ev.JobSeen(question.job.job_id, _sight(plain.get("seen")))


def in_doubt(question: fx.AskLauncher, reason: str) -> ev.JobSeen | ev.JobFileRead:
    """Return the substitute for a missing answer."""
    if isinstance(question, fx.ReadJobFile | fx.StageJobInput):
        return ev.JobFileRead(question.call_id, None, code="in_doubt", detail=reason)
    return ev.JobSeen(question.job.job_id, ev.MachineInDoubt(reason))


def _sight(plain: object) -> ev.JobSight:
    if not isinstance(plain, dict):
        raise ValueError(f"{plain!r:.80} where a job is described")  # noqa: TRY004 - one error for all
    state = JobState(str(plain.get("state")))
    if state not in _SEEN_STATES:
        raise ValueError(f"no launcher sees a job {state}")
    started, ended = _number(plain, "started_at"), _number(plain, "ended_at")
    if ended is not None and started is not None and ended < started:
        ended = started  # its clock was set back meanwhile
    if state in (JobState.RUNNING, JobState.DONE) and started is None:
        raise ValueError(f"a job that is {state} and has not started")
    cores = _number(plain, "cores")
    if cores is not None and cores < 0:
        raise ValueError(f"{cores} cores")
    exit_code = _number(plain, "exit_code")
    return ev.JobSight(
        state,
        _sentence(plain.get("native_id"))[:200],
        cores or 0,
        started,
        ended,
        exit_code if exit_code is None or abs(exit_code) < 2**31 else None,
        _sentence(plain.get("detail")),
    )


def _read(question: fx.ReadJobFile | fx.StageJobInput, plain: Mapping[str, Any]) -> ev.JobFileRead:
    data = plain.get("data")
    if data is None:
        return ev.JobFileRead(question.call_id, None, code="no_file", detail=_sentence(plain.get("detail")))
    if not isinstance(data, str) or not isinstance(plain.get("complete"), bool):
        raise ValueError("an invalid piece of output")  # noqa: TRY004
    try:
        piece = binascii.a2b_base64(data, strict_mode=True) if data else b""
    except binascii.Error as error:
        raise ValueError(f"a piece of output that is not in base64: {error}") from error
    size = _number(plain, "size")
    if len(piece) > OUTPUT_CHUNK_BYTES or size is None or size < 0:
        raise ValueError(f"a piece of {len(piece)} bytes of {size}")
    return ev.JobFileRead(question.call_id, data, size, plain["complete"])


def _number(plain: Mapping[str, Any], key: str) -> int | None:
    value = plain.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62):
        return value
    raise ValueError(f"{key} {value!r:.80}")


def _sentence(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())[:DETAIL_MAX]
