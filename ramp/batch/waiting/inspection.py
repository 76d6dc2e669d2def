"""Checks of `ramp doctor` for sold starts in a queue: do queue, book and journal know the same jobs?"""

from __future__ import annotations

from collections.abc import Sequence

from ramp.batch.book import Entry
from ramp.batch.inspecting import Comparing, Promise, Remark, of_book
from ramp.batch.reconciling import own_prefix
from ramp.batch.waiting.job_queue import ListedQueue, OwnJob, Standing
from ramp.batch.waiting.plugin import QueueBoundOptions, open_queue
from ramp.model.instant import Instant, iso
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings


def read(settings: PluginSettings) -> Comparing | None:
    """See `ramp.batch.inspecting.Inspection`; None for a queue within its agent, such as a simulated one."""
    queue = open_queue(settings, read_options(settings.options, QueueBoundOptions, within=settings.resource))
    if not isinstance(queue, ListedQueue):
        return None
    there, resource, name = queue.own(own_prefix(settings.resource)), settings.resource, queue.name
    return lambda entries, promises, now: disagreements(resource, entries, promises, there, name, now)


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`; `read` raises whatever is wrong."""
    del settings, now
    return ()


def disagreements(
    resource: str,
    entries: Sequence[Entry],
    promises: Sequence[Promise],
    there: Sequence[tuple[str, OwnJob]],
    queue: str,
    now: Instant,
) -> tuple[Remark, ...]:
    """Return a remark for each difference between journal, book and queue.

    A started job may end at any time, so one that the book has seen start is not missed.

    Args:
        resource: the resource's name.
        entries: its book.
        promises: of its journal.
        there: names and jobs of ours in the queue.
        queue: the queue's name in messages.
        now: the present.
    """
    live = {each.name: each for each in entries if each.live(now)}
    known = {each.name for each in entries}
    found: dict[str, list[OwnJob]] = {}
    for name, job in there:
        if job.standing is not Standing.GONE:
            found.setdefault(name, []).append(job)
    remarks: list[Remark] = []

    def differs(says: str, do: str) -> None:
        remarks.append(Remark("jobs", resource, says, do))

    for name, jobs in found.items():
        ids = ", ".join(job.job_id for job in jobs if not job.ended)
        if ids and name not in live:
            why = "its hold or agreement is over" if name in known else "no agreement covers it"
            do = (
                "the resource's next hold deletes it"
                if name in known
                else "no agent tracks it: delete it by its number"
            )
            differs(f"{queue} has the job {name} ({ids}), and {why}", do)
    for name, entry in live.items():
        if entry.made and entry.started is None:
            says, do = _wrong(entry, found.get(name, ()))
            if says:
                kind = "sold" if entry.firm else "held"
                differs(f"{name} is {kind}, its latest start {_start(entry)}, and {queue} {says}", do)
    do = "restore the book from a backup: the agent no longer tracks this job"
    return (*remarks, *of_book(resource, list(live.values()), promises, now, do))


def _wrong(entry: Entry, jobs: Sequence[OwnJob]) -> tuple[str, str]:
    job = next((each for each in jobs if each.job_id == entry.reservation_id), None)
    if job is None:
        back = "it costs nothing: the agent gives it up within a minute and frees the money"
        return f"does not know its job {entry.reservation_id}", back
    if entry.firm and job.standing is Standing.HELD:
        do = "the agent releases it within a minute; check again then"
        return f"still holds its job {job.job_id}", do
    if not entry.firm and job.standing is not Standing.HELD:
        do = "it was not bought: hold it again, or let its hold expire, and the agent deletes it"
        return f"has released its job {job.job_id}", do
    return "", ""


def _start(entry: Entry) -> str:
    assert entry.slot is not None
    return iso(entry.slot.start)
