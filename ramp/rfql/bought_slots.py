"""Documents about bought slots: jobs on them (schemas/job.xsd) and their moves to other places (schemas/move.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import Record, Words

ARGUMENT: Final = Words("JobArgument")
INPUT: Final = Record(contents.JobInput, text="data")
VARIABLE: Final = Record(contents.JobVariable, text="value")
PEER: Final = Record(contents.JobPeer)
JOB_ORDER: Final = Record(
    contents.JobOrder, children={"arguments": ARGUMENT, "inputs": INPUT, "peers": PEER, "variables": VARIABLE}
)
JOB_INPUT_PIECE: Final = Record(contents.JobInputPiece, text="data")
JOB_OUTPUT: Final = Record(contents.JobOutput, text="data")
