"""Following a request through deaths of the User Agent, approval, Ctrl-C and the cancelling of its slots."""

import asyncio
import signal

import pytest

import ramp
from ramp.client import access
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.jobs import deliveries, job_of
from ramp.client.request import request
from ramp.control.events import Done, JobStanding, MarketRefusalCode, Refused
from ramp.control.requests import Submit, Watch
from ramp.errors import MarketRefused, NoMarket
from ramp.model.contents import JobOrder, JobRefused, JobStatus
from ramp.model.contents.jobs import Delivery, JobState
from ramp.protocol.events import OffersApproved, RequestWithdrawn
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RequestEnded, RoundClosed, RoundOpened

WANTED = request(cores=64, wall_time="1h", price=70)


def test_every_event_is_told_and_the_purchase_returned(agent, script):
    fake, market = agent([script.submitted, script.opened, script.closed, script.ended()])
    told = []
    bought = market.submit(WANTED, rounds=2, on_event=told.append)
    assert (bought.status, bought.committed, bought.cost) == ("committed", True, 192_000)  # 30 x 64 x 1 h in hundredths
    assert bought.units[0].start.isoformat() == "2026-12-01T10:00:00+00:00"
    assert (bought.units[0].resource, bought.units[0].reservation_id) == ("thunder1", "thunder1-7")
    assert [type(event) for event in told] == [ramp.Submitted, ramp.RoundOpened, ramp.RoundClosed, ramp.RequestEnded]
    (submitted,) = fake.heard
    assert isinstance(submitted, Submit)
    assert submitted.options.rounds == 2
    assert "<TotalCores>64</TotalCores>" in submitted.document.replace("rfq:", "")


def test_an_agent_that_dies_is_asked_again_what_became_of_the_request(agent, script):
    fake, market = agent([script.submitted, script.opened], [script.ended()])
    assert market.submit(WANTED).committed
    submission, watch = fake.heard
    assert watch == Watch(submission.request_id)


def test_a_request_that_died_unwritten_is_submitted_again_under_the_same_id(agent, script):
    fake, market = agent([], [script.unknown], [script.submitted, script.ended()])
    assert market.submit(WANTED).committed
    first, watch, second = fake.heard
    assert isinstance(watch, Watch)
    assert first == second
    assert first.request_id


def test_a_refusal_at_submission_is_raised_with_its_code(agent):
    _, market = agent([Refused(MarketRefusalCode.BAD_DOCUMENT, "line 3: senseless")])
    with pytest.raises(MarketRefused, match="line 3: senseless") as raised:
        market.submit(WANTED)
    assert (raised.value.code, raised.value.exit_code) == ("bad_document", 2)


def test_a_market_that_has_ended_ends_the_wait(agent, script, monkeypatch):
    def gone():
        market.access.state.socket("alice").unlink()
        monkeypatch.setattr(access, "status", lambda _: None)

    _, market = agent([script.submitted, gone])
    with pytest.raises(NoMarket, match="the market has stopped"):
        market.submit(WANTED)


@pytest.mark.parametrize("answer", [True, False])
def test_offers_are_put_to_the_owner(agent, script, answer):
    shown = []

    def approve(asked):
        shown.append((asked.offers[0].resource, asked.meets, asked.costs))
        return answer

    fake, market = agent([script.submitted, script.asked, script.ended()])
    market.submit(WANTED, approve=approve)
    assert shown == [("thunder1@localhost", (True,), (960_000,))]
    assert fake.heard[0].options.approval == "ask"
    assert fake.heard[1] == OffersApproved("request-1", answer)


def test_nobody_asked_means_no(agent, script):
    fake, market = agent([script.submitted, script.asked, script.ended()])
    market.submit(WANTED)
    assert fake.heard[1] == OffersApproved("request-1", approved=False)


def test_bad_arguments_are_refused_before_anything_is_sent(agent):
    _, market = agent()
    for options in ({"max_cost": "much"}, {"prefer": "best"}, {"round_time": "soon"}, {"approve": "perhaps"}):
        with pytest.raises(Exception, match=f"{next(iter(options.values()))}"):
            market.submit(WANTED, **options)


def interrupting(*kinds):
    def told(event):
        if isinstance(event, kinds):
            signal.raise_signal(signal.SIGINT)

    return told


def test_ctrl_c_withdraws_waits_for_the_end_and_is_raised(agent, script):
    ended = script.ended(RequestStatus.REJECTED, "the user withdrew the request")
    fake, market = agent([script.submitted, script.opened], [Done()], [ended])
    with pytest.raises(KeyboardInterrupt):
        market.submit(WANTED, on_event=interrupting(RoundOpened))
    submission, withdrawal, watch = fake.heard
    assert withdrawal == RequestWithdrawn(submission.request_id)
    assert watch == Watch(submission.request_id)


def test_ctrl_c_that_comes_too_late_returns_what_was_bought(agent, script):
    _, market = agent([script.submitted, script.opened], [Done()], [script.ended()])
    assert market.submit(WANTED, on_event=interrupting(RoundOpened)).committed


def test_a_second_ctrl_c_stops_waiting(agent, script):
    fake, market = agent([script.submitted, script.opened], [Done()], [script.closed, script.ended()])
    with pytest.raises(KeyboardInterrupt):
        market.submit(WANTED, on_event=interrupting(RoundOpened, RoundClosed))
    assert len(fake.heard) == 3


def test_a_cancelled_task_withdraws(agent, script):
    ended = script.ended(RequestStatus.REJECTED, "the user withdrew the request")
    fake, market = agent([script.submitted, script.opened], [Done()], [ended])

    async def cancelled():
        opened = asyncio.Event()

        def told(event):
            if isinstance(event, RoundOpened):
                opened.set()

        task = asyncio.create_task(AsyncMarket(market.access).submit(WANTED, on_event=told))
        await opened.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert fake.heard[1] == RequestWithdrawn(fake.heard[0].request_id)


def test_watching_ends_with_the_request(agent, script):
    fake, market = agent([script.closed, script.ended()])
    *_, last = market.watch("request-1")
    assert isinstance(last, RequestEnded)
    assert fake.heard == [Watch("request-1")]


def test_watching_what_is_not_known_is_refused(agent, script):
    _, market = agent([script.unknown])
    with pytest.raises(MarketRefused, match="no request"):
        list(market.watch("request-1"))


ORDER = JobOrder("job-1", "agreement-1", 8, 1, 0, ("hostname",))


def status(state: JobState, delivery: Delivery = Delivery.PENDING) -> JobStatus:
    return JobStatus("job-1", "agreement-1", state, "slurm", "ann", 10, delivery)


@pytest.mark.parametrize(
    ("said", "slot", "expected"),
    [
        (status(JobState.TAKEN), "active", ("taken", "pending")),
        (status(JobState.TAKEN), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.QUEUED), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.CANCELLED), "cancelled", ("cancelled", "cancelled")),
        (status(JobState.CANCELLED), "active", ("cancelled", "cancelled")),
        (status(JobState.FAILED, Delivery.UNDELIVERED), "cancelled", ("failed", "undelivered")),
        (status(JobState.DONE, Delivery.LATE), "active", ("done", "late")),
        (status(JobState.FAILED), "active", ("failed", "unknown")),
        (None, "active", ("unanswered", "pending")),
        (None, "cancelled", ("cancelled", "cancelled")),
        (JobRefused("job-1", "agreement-1", "no_account", "none"), "active", ("refused", "cancelled")),
    ],
)
def test_a_delivery_is_pending_only_while_the_job_may_start(
    said: JobStatus | JobRefused | None, slot: str, expected: tuple[str, str]
) -> None:
    known = (said, None) if not isinstance(said, JobRefused) else (None, said)
    job = job_of(JobStanding(ORDER, "request-1", "res@localhost", 0, *known, slot=slot), "localhost")
    assert (job.state, job.delivery) == expected
    assert job.has_ended == (expected[0] not in ("taken", "unanswered"))


def test_a_job_that_was_cancelled_does_not_hide_the_one_that_measured() -> None:
    first, second = (
        job_of(JobStanding(ORDER, "request-1", "res@localhost", 0, said), "localhost")
        for said in (status(JobState.CANCELLED), status(JobState.DONE, Delivery.ON_TIME))
    )
    assert deliveries([first, second])["agreement-1"] is second
    assert deliveries([second, first])["agreement-1"] is second
