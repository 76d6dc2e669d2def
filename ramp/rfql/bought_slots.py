"""Documents about bought slots: jobs on them (schemas/job.xsd) and their moves to other places (schemas/move.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.model.contents.jobs import Delivery, JobState
from ramp.rfql.xml.record import BOOLEAN, INSTANT, INTEGER, SENTENCE, TEXT, Form, Record

STATE: Final = Form(str, JobState)
DELIVERY: Final = Form(str, Delivery)

ARGUMENT: Final = Record(contents.JobArgument, {}, text="value")
INPUT: Final = Record(contents.JobInput, {"name": TEXT, "executable": BOOLEAN}, text="data")
VARIABLE: Final = Record(contents.JobVariable, {"name": TEXT}, text="value")
PEER: Final = Record(contents.JobPeer, {"unit": INTEGER, "resource": TEXT, "reservation_id": TEXT, "cores": INTEGER})
JOB_ORDER: Final = Record(
    contents.JobOrder,
    {
        "job_id": TEXT,
        "agreement_id": TEXT,
        "cores": INTEGER,
        "unit": INTEGER,
        "begin_at": INSTANT,
        "archive": TEXT,
    },
    children={"arguments": ARGUMENT, "inputs": INPUT, "peers": PEER, "variables": VARIABLE},
)
JOB_INPUT_PIECE: Final = Record(
    contents.JobInputPiece, {"job_id": TEXT, "agreement_id": TEXT, "offset": INTEGER}, text="data"
)
JOB_QUERY: Final = Record(contents.JobQuery, {"job_id": TEXT, "agreement_id": TEXT})
JOB_CANCELLATION: Final = Record(contents.JobCancellation, {"job_id": TEXT, "agreement_id": TEXT})
JOB_OUTPUT_QUERY: Final = Record(
    contents.JobOutputQuery, {"job_id": TEXT, "agreement_id": TEXT, "name": TEXT, "offset": INTEGER}
)
JOB_STATUS: Final = Record(
    contents.JobStatus,
    {
        "job_id": TEXT,
        "agreement_id": TEXT,
        "state": STATE,
        "executor": TEXT,
        "account": TEXT,
        "due_at": INSTANT,
        "delivery": DELIVERY,
        "native_id": TEXT,
        "cores": INTEGER,
        "started_at": INSTANT,
        "ended_at": INSTANT,
        "exit_code": INTEGER,
        "detail": SENTENCE,
    },
)
JOB_REFUSED: Final = Record(
    contents.JobRefused, {"job_id": TEXT, "agreement_id": TEXT, "code": TEXT, "detail": SENTENCE}
)
JOB_OUTPUT: Final = Record(
    contents.JobOutput,
    {"job_id": TEXT, "agreement_id": TEXT, "name": TEXT, "offset": INTEGER, "size": INTEGER, "complete": BOOLEAN},
    text="data",
)

SLOT_MOVED: Final = Record(
    contents.SlotMoved, {"agreement_id": TEXT, "reservation_id": TEXT, "placement": SENTENCE, "moved_at": INSTANT}
)
SLOT_MOVE_HEARD: Final = Record(contents.SlotMoveHeard, {"agreement_id": TEXT, "moved_at": INSTANT})
