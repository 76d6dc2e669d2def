"""The fields of a job line of the Standard Workload Format."""

from __future__ import annotations

from typing import Final

FIELD_NAMES: Final = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "average_cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user_id",
    "group_id",
    "executable_number",
    "queue_number",
    "swf_partition_number",
    "preceding_job_number",
    "think_time",
)
"""The 18 fields of a job line in file order."""

FIELD_COUNT: Final = len(FIELD_NAMES)
