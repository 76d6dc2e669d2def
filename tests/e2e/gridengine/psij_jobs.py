"""Jobs through PSI/J inside an advance reservation, as a user runs them: what became of each is printed as JSON."""

import datetime
import json
import sys
import time
from pathlib import Path

import psij
from ramp_psij_gridengine.executor import GridEngineExecutorConfig

RESERVATION, FOLDER = sys.argv[1], Path(sys.argv[2])
LIMIT = datetime.timedelta(seconds=120)


def job(name: str, command: str, processes: int = 2, **changes: object) -> psij.Job:
    attributes = psij.JobAttributes(reservation_id=RESERVATION, **changes)
    return psij.Job(
        psij.JobSpec(
            executable="/bin/sh",
            arguments=["-c", command],
            name=name,
            directory=FOLDER,
            stdout_path=FOLDER / f"{name}.out",
            environment={"WORDS": "two 'words'; $HOME"},
            launcher="single",
            resources=psij.ResourceSpecV1(process_count=processes),
            attributes=attributes,
        )
    )


def told(done: psij.JobStatus) -> dict[str, object]:
    return {"state": done.state.name, "exit_code": done.exit_code, "message": done.message}


executor = psij.JobExecutor.get_instance("gridengine", config=GridEngineExecutorConfig(work_directory=FOLDER / "work"))
minute = datetime.timedelta(minutes=1)
ends = job("ends", 'echo "$NSLOTS $WORDS"; wc -l < "$PSIJ_NODEFILE"; exit 5', duration=minute)
fine = job("9fine", "true", duration=minute)
cancelled = job("cancelled", "sleep 300")
killed = job("killed", "sleep 300", processes=1, duration=datetime.timedelta(seconds=3))
for each in (ends, fine, cancelled, killed):
    executor.submit(each)
found = {"ends": told(ends.wait(LIMIT)), "fine": told(fine.wait(LIMIT))}
cancelled.wait(LIMIT, target_states=[psij.JobState.ACTIVE])
assert cancelled.native_id in executor.list()
cancelled.cancel()
found |= {"cancelled": told(cancelled.wait(LIMIT)), "killed": told(killed.wait(LIMIT))}
try:
    executor.submit(job("wide", "true", processes=500))
except psij.SubmitException as refused:
    found["wide"] = str(refused)
until = time.monotonic() + 60
while not (FOLDER / "ends.out").read_text().endswith("\n") and time.monotonic() < until:
    time.sleep(0.2)
print(json.dumps(found | {"output": (FOLDER / "ends.out").read_text()}))
