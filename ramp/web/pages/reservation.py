"""One reservation: its agreement, changes of its size, cancelling, and jobs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nicegui import run, ui

from ramp.client.results import Reservation
from ramp.errors import ConfigurationError, RampError
from ramp.model.instant import to_datetime
from ramp.rfql.signing.verification import Chain, chains_of, verify_file
from ramp.runtime.clock import SystemClock
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.state_folder import StateFolder
from ramp.web.pages import frame
from ramp.web.pages.numbers import amount, credits_named
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.reservations import standing
from ramp.web.pages.resizing import SizeCard
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

OUTPUT_SHOWN: Final = 20_000
"""Last characters of a job's output that are shown."""

DOWNLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest file that the page downloads; it passes through the page's memory."""

JOBS_S: Final = 5.0
"""Seconds between two queries for jobs."""


class ReservationPage:
    """The open page of a reservation."""

    def __init__(self, visit: Visit, bought: Reservation) -> None:
        self._visit = visit
        self._bought = bought

    async def build(self) -> None:
        each = self._bought
        frame.heading(f"Reservation {each.reservation_id} on {each.resource}")
        with frame.card():
            self._facts = ui.element("dl").classes("ramp-facts")
            with ui.element("div").classes("row q-mt-md").style("gap: .6rem"):
                self._cancel = ui.button("Cancel reservation", on_click=self._ask_cancel).props("outline no-caps")
                for path, name in ((each.file, "Agreement"), (self._payment(), "Proof of payment")):
                    if path is not None:
                        ui.button(f"Download {name.lower()}", on_click=lambda path=path: ui.download.file(path)).props(
                            "flat no-caps"
                        )
        self._draw_facts()
        with frame.card():
            self._size = SizeCard(self._visit, each, self._look_again)
            self._size.build()
        with frame.card():
            frame.subheading("Agreement")
            self._checks = ui.element("div").classes("column full-width")
            await self._draw_checks()
        with frame.card():
            frame.subheading("Jobs")
            self._build_jobs()
        await self._look_at_jobs()

    def _payment(self) -> Path | None:
        file = self._bought.standing.payment_file
        return None if file is None else Path(file)

    def _draw_facts(self) -> None:
        each = self._bought
        now = to_datetime(SystemClock().now())
        agreement = each.standing.agreement
        bought = agreement.offer.cores
        when = "" if each.cores == bought else f" of the original {bought} cores"
        facts = (
            ("State", standing(each, now) + (f": {each.standing.doubt}" if each.standing.doubt else "")),
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
        self._facts.clear()
        with self._facts:
            given = [(name, value) for name, value in facts if value]
            frame.draw_facts(self._visit, given, {"Request": f"/requests/{each.request_id}"})
        self._cancel.set_visibility(each.state == "active" and now < each.start)

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
            if found.failure:
                ui.label(f"Not valid: {found.failure}").classes("ramp-bad").props('role="alert"')
                return
            what = f"Valid: {len(found.passed)} checks passed offline."
            ui.label(what).classes("ramp-good text-weight-medium")
            if found.chain is not None:
                ui.label(_chain_text(found.chain)).classes("ramp-good")
            with ui.expansion("Checks").classes("full-width"), ui.element("ul"):
                for sentence in found.passed:
                    with ui.element("li"):
                        ui.label(sentence)

    # -- giving it back ------------------------------------------------------------------------------------------

    def _ask_cancel(self) -> None:
        each = self._bought
        with ui.dialog(value=True) as dialog, ui.card().classes("ramp-card"):
            frame.subheading(f"Cancel {each.reservation_id}?")
            ui.label(f"Full refund before the start: {credits_named(each.cost)}.")
            ui.label("You keep the other units of the request.").classes("ramp-quiet")
            with ui.element("div").classes("row").style("gap: .6rem"):
                ui.button("Cancel reservation", on_click=lambda: self._do_cancel(dialog)).props("no-caps")
                ui.button("Keep reservation", on_click=dialog.close).props("outline no-caps")

    async def _do_cancel(self, dialog: ui.dialog) -> None:
        dialog.close()
        try:
            (ended,) = await self._visit.market().cancel(self._bought.agreement_id, "cancelled in the browser")
        except RampError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        if ended.done and ended.code:
            ui.notify(f"Already cancelled: {ended.detail}", type="info", multi_line=True)
        elif ended.done:
            ui.notify(f"Cancelled; {credits_named(ended.refund)} refunded.", type="positive")
        else:
            ui.notify(f"Not cancelled: {ended.detail or ended.code}", type="negative", multi_line=True)
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
        self._jobs = table(
            (
                Column("Job", lambda job: self._visit.short_id(job.job_id)),
                Column("Command", lambda job: shlex.join(job.command)),
                Column("State", lambda job: f"{job.state}: {job.detail}" if job.detail else job.state),
                Column("Started", lambda job: job.started, Kind.TIME),
                Column("Exit code", lambda job: job.exit_code, Kind.NUMBER),
                Column("Slot", lambda job: job.delivery.replace("_", " ")),
            ),
            key=lambda job: job.job_id,
            empty="No jobs yet.",
        )
        self._jobs.drawn.on("rowClick", lambda event: self._show_output(str(event.args[1]["id"])))
        self._output = ui.element("div").classes("full-width")
        ui.timer(JOBS_S, Refresher(self._look_at_jobs).changed)

    async def _launch(self, command: str) -> None:
        try:
            words = shlex.split(command)
            if not words:
                raise ConfigurationError("missing command, for example hostname")
            await self._visit.market().launch(self._bought.agreement_id, words)
        except (RampError, ValueError) as error:
            ui.notify(f"Job not started: {error}", type="negative", multi_line=True)
            return
        await self._look_at_jobs()

    async def _look_at_jobs(self) -> None:
        found = await self._visit.market().jobs()
        self._jobs.show(job for job in found if job.agreement_id == self._bought.agreement_id)

    async def _show_output(self, job_id: str) -> None:
        try:
            data = await self._visit.market().job_output(job_id)
            files = await self._visit.market().job_files(job_id)
        except RampError as error:
            self._complain(error)
            return
        text = data.decode("utf-8", errors="replace")
        self._output.clear()
        with self._output:
            ui.label(f"Output of {self._visit.short_id(job_id)}, {len(data)} bytes").classes("text-weight-medium")
            with ui.element("pre").classes("ramp-output").props("tabindex=0"):
                ui.label(text[-OUTPUT_SHOWN:])
            ui.label("Files of the job; click one to download it").classes("text-weight-medium")
            sizes = {each.path: each.size for each in files}
            listed = table(
                (
                    Column("File", lambda each: each.path),
                    Column("Bytes", lambda each: each.size, Kind.NUMBER),
                    Column("Changed", lambda each: each.changed, Kind.TIME),
                ),
                files,
                key=lambda each: each.path,
                empty="No files.",
            )
            listed.drawn.on("rowClick", lambda event: self._download(job_id, str(event.args[1]["id"]), sizes))

    async def _download(self, job_id: str, path: str, sizes: Mapping[str, int]) -> None:
        try:
            if sizes.get(path, 0) > DOWNLOAD_BYTES_MAX:
                right = f"at most {DOWNLOAD_BYTES_MAX} bytes here; use `ramp jobs {job_id} --fetch FOLDER`"
                raise ConfigurationError(f"{path} is too large: expected {right}")
            data = await self._visit.market().job_output(job_id, path)
        except RampError as error:
            self._complain(error)
            return
        with self._output:
            ui.download.content(data, path.rpartition("/")[2], "application/octet-stream")

    def _complain(self, error: RampError) -> None:
        with self._output:
            ui.notify(str(error), type="negative", multi_line=True)


def _sum(amounts: Iterable[int]) -> str:
    found = sum(amounts)
    return f"{credits_named(found)}" if found else ""


def _chain_text(chain: Chain) -> str:
    number = len(chain.amendments)
    what = "its amendment" if number == 1 else f"its {number} amendments"
    back, paid = amount(chain.given_back), amount(chain.agreement.cost + chain.charged)
    return f"The agreement and {what} form one chain: {back} of {paid} credits refunded."


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking an agreement and its amendments as `ramp verify` does.

    Attributes:
        failure: why they are invalid, or empty.
        passed: the checks that passed.
        chain: the agreement with its amendments; None without amendments.
    """

    failure: str = ""
    passed: tuple[str, ...] = ()
    chain: Chain | None = None


def checked(bought: Reservation, state: StateFolder) -> Checked:
    """Verify a stored agreement and its amendments in effect."""
    assert bought.file is not None
    numbers = [each.number for each in bought.standing.amendments]
    files = [bought.file, *(bought.file.with_stem(f"{bought.file.stem}.amendment-{each}") for each in numbers)]
    store, now = KeyStore(state.keys), SystemClock().now()
    try:
        reports = [
            verify_file(
                file,
                store.ca_certificates(),
                now,
                pins=store.certificate_on_file,
                revoked=store.is_revoked,
            )
            for file in files
        ]
    except (RampError, OSError):
        return Checked("the file cannot be read")
    failure = next((f"{each.failure}" for each in reports if not each.holds), "")
    chain = next(iter(chains_of(reports)), None)
    if not failure and chain is not None:
        failure = chain.failure
    return Checked(failure, tuple(sentence for each in reports for sentence in each.passed), chain)


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
