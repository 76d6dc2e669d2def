"""A purchase across two real systems, and jobs on what was bought: what the tests of this folder do."""

import contextlib
from functools import partial

import ramp
from tests.e2e.swarm.swarm_market import unit, until

CORES = (8, 100)
"""Of the units of a purchase; the cheapest sellers of them are Grid Engine and Slurm."""

JOB = """\
#!/bin/sh
echo run >> runs
echo "$RAMP_UNIT of $RAMP_UNITS: $RAMP_PEERS"
echo "${SLURM_JOB_RESERVATION:-$JOB_ID}"
cat runs words
sleep 3
"""


def purchase(market, request_id, begin):
    """Buy both units; the outcome."""
    return market.buy("alice", request_id, [unit(number, cores, begin) for number, cores in enumerate(CORES, 1)])


def sellers(outcome):
    """Who has sold the units of an outcome, in their order."""
    sold = {each["offer"]["unit"]: each["offer"]["resource"].partition("@")[0] for each in outcome["units"]}
    return [sold[number] for number in sorted(sold)]


def both_sell(market, *asked):
    """Wait until both systems sell: whose answer comes late, or who has just died, is passed over for a dearer one."""

    def quoted():
        with contextlib.suppress(ramp.RampError), ramp.connect(market.state.path, user="alice") as client:
            found = [each.resource for each in client.quote(*asked, rounds=2).units]
            return found == ["site1", "site2"]
        return False

    until(quoted, lambda: f"both systems quote again\n{market.logs()}")


def launched(market, slots, folder):
    """Launch a job on each slot, whoever dies meanwhile; the jobs, by their slots."""
    (folder / "job.sh").write_text(JOB)
    (folder / "words").write_text("staged\n")
    before = {each.job_id for each in until(lambda: _jobs(market), "the jobs are told")[1]}
    with contextlib.suppress(ramp.RampError), ramp.connect(market.state.path, user="alice") as client:
        client.launch(slots.request_id, script=folder / "job.sh", inputs=[folder / "words"])

    def ordered():
        jobs = _jobs(market)
        new = [] if jobs is None else [each for each in jobs[1] if each.job_id not in before]
        return sorted(new, key=lambda each: each.unit) if len(new) == len(slots.units) else None

    return until(ordered, lambda: f"a job is ordered on each slot\n{market.logs()}")


def _jobs(market):
    """All jobs, behind a word that is true; None while the agent is away."""
    with contextlib.suppress(ramp.RampError), ramp.connect(market.state.path, user="alice") as client:
        return "told", client.jobs()
    return None


def run_once_in_both(market, slots, jobs, gridengine):
    """See that the jobs end well, that each ran once, in its reservation, and knew of the other."""
    peers = " ".join(f"{each.number}={each.resource}@localhost/{each.reservation_id}" for each in slots.units)
    for number, (job, slot) in enumerate(zip(jobs, slots.units, strict=True), 1):
        found, said = until(lambda job=job: _ended(market, job), lambda job=job: f"{job} ends\n{market.logs()}")
        assert (found.state, found.exit_code, found.cores) == ("done", 0, slot.cores), found.detail
        here = slot.reservation_id
        if slot.resource == "site1":  # Grid Engine does not tell a job its reservation
            here = found.standing.status.native_id
            _is_accounted(gridengine, here, slot.reservation_id)
        assert said == f"{number} of 2: {peers}\n{here}\nrun\nstaged\n"


def _is_accounted(gridengine, native_id, reservation):
    """Wait until Grid Engine has a job that has ended in its accounts, and see that it ran in a reservation."""
    accounted = partial(gridengine, "qacct", "-j", native_id, status=None)
    until(lambda: ["arid", reservation] in map(str.split, accounted().splitlines()), accounted)


def _ended(market, job):
    """A job and what it has printed once it has ended; None before, and while its agent is away."""
    with contextlib.suppress(ramp.RampError), ramp.connect(market.state.path, user="alice") as client:
        found = client.job(job.job_id)
        return (found, client.job_output(job.job_id).decode()) if found.has_ended else None
    return None
