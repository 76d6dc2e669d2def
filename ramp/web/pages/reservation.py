"""One reservation: its agreement, changes of its size, cancelling, and jobs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from nicegui import run, ui

from ramp.client.jobs import Job
from ramp.client.results import Reservation
from ramp.errors import ConfigurationError, RampError
from ramp.model.contents.jobs import STREAMS
from ramp.model.instant import to_datetime
from ramp.rfql.signing.verification import Chain, FileReport, chains_of, verify_file
from ramp.runtime.clock import SystemClock
from ramp.runtime.keys.store import KeyStore, trust_of
from ramp.runtime.state_folder import StateFolder
from ramp.text import visible
from ramp.web.pages import frame
from ramp.web.pages.charts import Options, Taken, draw_chart, redraw_rows, row_chart
from ramp.web.pages.dialogs import complain, complaining, confirmed
from ramp.web.pages.frame import Refresher, Visit, amount, credits_named
from ramp.web.pages.reservations import LONGEST, standing
from ramp.web.pages.resizing import SizeCard
from ramp.web.pages.row_tables import Column, Kind, RowTable

OUTPUT_SHOWN: Final = 20_000
"""Last characters of a job's output that are shown."""

DOWNLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest file that the page downloads; it passes through the page's memory."""

DELIVERIES: Final = {
    "reservation": "#4e79a7",
    "pending": "#8a97a3",
    "on time": "#59a14f",
    "late": "#b8860b",
    "undelivered": "#e15759",
    "unknown": "#9c755f",
    "cancelled": "#b07aa1",
}
"""Colours of the slot and of jobs by their delivery."""

JOBS_S: Final = 3.0
"""Seconds between two queries for jobs."""

_TERMINAL_CODE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
"""Colours, movements of the cursor and titles in a job's output (ECMA-48)."""


class ReservationPage:
    """The open page of a reservation."""

    def __init__(self, visit: Visit, bought: Reservation) -> None:
        self._visit = visit
        self._bought = bought

    async def build(self) -> None:
        each = self._bought
        frame.heading(f"Reservation {each.reservation_id} on {each.resource}")
        with frame.card():
            self._countdown = ui.label().props('role="timer"').classes("text-weight-medium ramp-number")
            self._facts = ui.element("dl").classes("ramp-facts")
            with ui.element("div").classes("row q-mt-md").style("gap: .6rem"):
                self._cancel = ui.button("Cancel reservation", on_click=self._ask_cancel).props("outline no-caps")
                for path, name in ((each.file, "Agreement"), (each.standing.payment_file, "Proof of payment")):
                    if path is not None:
                        ui.button(f"Download {name.lower()}", on_click=lambda path=path: ui.download.file(path)).props(
                            "flat no-caps"
                        )
        self._draw_facts()
        ui.timer(1.0, self._count)
        with frame.card("In a terminal"):
            self._draw_command("launch", each.agreement_id, "--", "hostname")
            self._draw_command("jobs")
            if each.file is not None:
                self._draw_command("verify", str(each.file))
        with frame.card():
            self._size = SizeCard(self._visit, each, self._look_again)
            self._size.build()
        with frame.card("Agreement"):
            self._checks = ui.element("div").classes("column full-width")
            await self._draw_checks()
        with frame.card("Jobs"):
            self._build_jobs()
        await self._look_at_jobs()

    def _draw_facts(self) -> None:
        each = self._bought
        now = to_datetime(SystemClock().now())
        self._standing = standing(each, now)
        agreement = each.standing.agreement
        bought = agreement.offer.cores
        when = "" if each.cores == bought else f" of the original {bought} cores"
        facts = (
            ("State", self._visit.sentence(": ".join(filter(None, (self._standing, each.standing.doubt))))),
            ("Start", each.start),
            ("End", each.end),
            ("Cores", str(each.cores)),
            ("Price", f"{agreement.offer.cpu_hour_cost} credits/core-hour"),
            ("Cost", f"{credits_named(each.cost)}"),
            ("Returned", _sum([each.returned])),
            ("Refunds for released cores", _sum(amendment.refund for amendment in each.standing.amendments)),
            ("Cost of added cores", _sum(amendment.charge for amendment in each.standing.amendments)),
            (f"Place on the machine{when}", agreement.offer.placement),
            ("Lost by the seller", each.standing.cause),
            ("New place", "" if each.standing.moved is None else each.standing.moved.placement),
            ("Request", each.request_id),
            ("Agreement", each.agreement_id),
        )
        given = [(name, value) for name, value in facts if value]
        frame.draw_facts(self._visit, self._facts, given, {"Request": f"/requests/{each.request_id}"})
        self._cancel.set_visibility(each.state == "active" and now < each.start)

    def _draw_command(self, *words: str) -> None:
        command = shlex.join(("ramp", *words))
        with ui.element("div").classes("row items-center full-width").style("gap: .6rem"):
            with ui.element("code").style("overflow-wrap: anywhere"):
                ui.label(command)
            copy = ui.button(icon="content_copy", on_click=lambda: ui.clipboard.write(command))
            copy.props('flat round dense size=sm aria-label="Copy the command"')

    def _count(self) -> None:
        each, now = self._bought, to_datetime(SystemClock().now())
        if standing(each, now) != self._standing:
            self._draw_facts()
        text = ""
        if each.state == "active" and now < each.end:
            until, what = (each.start, "Starts in") if now < each.start else (each.end, "Ends in")
            text = f"{what} {str(until - now).partition('.')[0]}"
        self._countdown.set_text(text)
        self._countdown.set_visibility(bool(text))

    async def _look_again(self) -> None:
        self._bought = await find(self._visit, self._bought.agreement_id)
        self._draw_facts()
        self._size.show(self._bought)
        await self._draw_checks()

    async def _draw_checks(self) -> None:
        self._checks.clear()
        with self._checks:
            if self._bought.file is None:
                ui.label("No signed agreement on file.").classes("ramp-quiet")
                return
            checking = frame.waiting("Checking the agreement…")
        found = await run.io_bound(checked, self._bought, self._visit.site.state)
        if found is None:
            return  # the server stops
        checking.delete()
        with self._checks:
            failure, reports = found
            if failure:
                ui.label(f"Not valid: {failure}").classes("ramp-bad").props('role="alert"')
                return
            passed = [sentence for each in reports for sentence in each.passed]
            ui.label(f"Valid: {len(passed)} checks passed offline.").classes("ramp-good text-weight-medium")
            for chain in chains_of(reports):
                ui.label(_chain_text(chain)).classes("ramp-good")
            with ui.expansion("Checks").classes("full-width"), ui.element("ul"):
                for sentence in passed:
                    with ui.element("li"):
                        ui.label(sentence)

    # -- giving it back ------------------------------------------------------------------------------------------

    async def _ask_cancel(self) -> None:
        each = self._bought
        text = f"Full refund before the start: {credits_named(each.cost)}. You keep the other units of the request."
        if not await confirmed(f"Cancel {each.reservation_id}?", text, "Cancel reservation", "Keep reservation"):
            return
        with complaining(self._visit):
            (ended,) = await self._visit.market().cancel(self._bought.agreement_id, "cancelled in the browser")
            if ended.done and ended.code:
                ui.notify(f"Already cancelled: {self._visit.sentence(ended.detail)}", type="info", multi_line=True)
            elif ended.done:
                ui.notify(f"Cancelled; {credits_named(ended.refund)} refunded.", type="positive")
            else:
                complain(self._visit, f"Not cancelled: {ended.detail or ended.code}")
            self._bought = await find(self._visit, self._bought.agreement_id)
            self._draw_facts()

    # -- jobs ----------------------------------------------------------------------------------------------------

    def _build_jobs(self) -> None:
        with ui.element("div").classes("row items-end full-width").style("gap: .6rem"):
            command = ui.input("Command", placeholder="hostname").classes("col-grow")
            ui.button("Run job", on_click=lambda: self._launch(str(command.value or ""))).props("no-caps")
        ui.label("The job starts with the reservation, under your account at the site.").classes(
            "ramp-quiet text-caption"
        )
        self._jobs = RowTable(
            (
                Column("Job", lambda job: self._visit.short_id(job.job_id)),
                Column("Command", lambda job: shlex.join(job.command)),
                Column("State", lambda job: self._visit.sentence(": ".join(filter(None, (job.state, job.detail))))),
                Column("Started", lambda job: job.started, Kind.TIME),
                Column("Exit code", lambda job: job.exit_code, Kind.NUMBER),
                Column("Slot", lambda job: job.delivery.replace("_", " ")),
                Column("Output", lambda _: "Show", picks=True),
            ),
            key=lambda job: job.job_id,
            empty="No jobs yet.",
            name="Jobs",
            on_pick=self._show_output,
        )
        frame.subheading("Delivery")
        self._delivered = draw_chart({}, "The slot and its jobs over time, as in the table above")
        self._output = ui.element("div").classes("full-width")
        self._shown: JobOutput | None = None
        Refresher(self._look_at_jobs, every=JOBS_S)

    async def _launch(self, command: str) -> None:
        with complaining(self._visit, "Job not started: "):
            await self._visit.market().launch(self._bought.agreement_id, command)
            await self._look_at_jobs()

    async def _look_at_jobs(self) -> None:
        found = [each for each in await self._visit.market().jobs() if each.agreement_id == self._bought.agreement_id]
        self._jobs.show(found)
        redraw_rows(self._delivered, self._delivery(found))
        if self._shown is not None:
            await self._shown.look()

    def _delivery(self, jobs: Iterable[Job]) -> Options:
        each, now = self._bought, to_datetime(SystemClock().now())
        rows = {"Reservation": [Taken(each.reservation_id, "reservation", each.cores, each.start, each.end)]}
        for job in jobs:
            name = self._visit.short_id(job.job_id)
            kind = job.delivery.replace("_", " ")
            run = [] if job.started is None else [Taken(name, kind, job.cores, job.started, job.ended or now)]
            rows[name] = run
        return row_chart(rows, now, LONGEST, DELIVERIES)

    async def _show_output(self, job_id: str) -> None:
        self._output.clear()
        with self._output, complaining(self._visit):
            self._shown = JobOutput(self._visit, job_id)
            await self._shown.look()
            await self._list_files(job_id)

    async def _list_files(self, job_id: str) -> None:
        files = await self._visit.market().job_files(job_id)
        sizes = {each.path: each.size for each in files}
        ui.label("Files of the job").classes("text-weight-medium")
        RowTable(
            (
                Column("Download", lambda each: each.path, picks=True),
                Column("Bytes", lambda each: each.size, Kind.NUMBER),
                Column("Changed", lambda each: each.changed, Kind.TIME),
            ),
            files,
            key=lambda each: each.path,
            empty="No files.",
            name="Files of the job",
            on_pick=lambda path: self._download(job_id, path, sizes),
        )

    async def _download(self, job_id: str, path: str, sizes: Mapping[str, int]) -> None:
        with self._output, complaining(self._visit):
            if sizes.get(path, 0) > DOWNLOAD_BYTES_MAX:
                right = f"at most {DOWNLOAD_BYTES_MAX} bytes here; use `ramp jobs {job_id} --fetch FOLDER`"
                raise ConfigurationError(f"{path} is too large: expected {right}")
            data = await self._visit.market().job_output(job_id, path)
            ui.download.content(data, path.rpartition("/")[2], "application/octet-stream")


class JobOutput:
    """Both output streams of a job, which grow while it runs, and a button that stops it."""

    def __init__(self, visit: Visit, job_id: str) -> None:
        self._visit = visit
        self._job_id = job_id
        self._read = dict.fromkeys(STREAMS, 0)
        self._texts: dict[str, str] = dict.fromkeys(STREAMS, "")
        self._shown: dict[str, ui.label] = {}
        self._over = False
        with ui.element("div").classes("row items-center").style("gap: .6rem"):
            ui.label(f"Job {visit.short_id(job_id)}").classes("text-weight-medium")
            self._stop = ui.button("Stop the job", on_click=self._ask_stop).props("outline no-caps dense")
        for name, title in zip(STREAMS, ("Standard output", "Standard error"), strict=True):
            ui.label(title).classes("ramp-quiet")
            pre = ui.element("pre").classes("ramp-output").props('tabindex=0 role="region"')
            pre.props["aria-label"] = title
            with pre:
                self._shown[name] = ui.label("")

    async def look(self) -> None:
        """Read what has been added, until the job is over and everything is read."""
        if self._over:
            return
        market = self._visit.market()
        job = await market.job(self._job_id)
        for name in STREAMS:
            added = await market.job_output(self._job_id, name, self._read[name])
            self._read[name] += len(added)
            text = self._texts[name] + visible(_TERMINAL_CODE.sub("", added.decode("utf-8", errors="replace")))
            self._texts[name] = text[-OUTPUT_SHOWN:]
            self._shown[name].set_text(self._texts[name] or "(empty)")
        self._over = job.has_ended
        self._stop.set_visibility(not job.has_ended)

    async def _ask_stop(self) -> None:
        if await confirmed("Stop the job?", "It ends at once; the reservation stays.", "Stop the job", "Let it run"):
            with complaining(self._visit):
                await self._visit.market().cancel_job(self._job_id)
                await self.look()


def _sum(amounts: Iterable[int]) -> str:
    found = sum(amounts)
    return f"{credits_named(found)}" if found else ""


def _chain_text(chain: Chain) -> str:
    number = len(chain.amendments)
    what = "its amendment" if number == 1 else f"its {number} amendments"
    back, paid = amount(chain.given_back), amount(chain.agreement.cost + chain.charged)
    return f"The agreement and {what} form one chain: {back} of {paid} credits refunded."


def checked(bought: Reservation, state: StateFolder) -> tuple[str, list[FileReport]]:
    """Verify a stored agreement and its amendments in effect; return why they are invalid, or "", and all reports."""
    assert bought.file is not None
    numbers = [each.number for each in bought.standing.amendments]
    files = [bought.file, *(bought.file.with_stem(f"{bought.file.stem}.amendment-{each}") for each in numbers)]
    store, now = KeyStore(state.keys), SystemClock().now()
    try:
        trust = trust_of(store)
        reports = [verify_file(file, trust, now) for file in files]
    except (RampError, OSError):
        return "the file cannot be read", []
    failures = [f"{each.failure}" for each in reports if not each.holds]
    return next(filter(None, (*failures, *(each.failure for each in chains_of(reports)))), ""), reports


async def find(visit: Visit, agreement_id: str) -> Reservation:
    """Return a reservation of the signed-in user.

    Raises:
        ConfigurationError: if the user has no such reservation.
    """
    for each in await visit.market().reservations(everything=True):
        if each.agreement_id == agreement_id:
            return each
    raise ConfigurationError(f"{visit.session.name} has no reservation with the id {agreement_id}")


async def build(visit: Visit) -> None:
    """Fill the page."""
    await ReservationPage(visit, await find(visit, visit.request.path_params["agreement_id"])).build()
