"""A user's jobs: ordered once, ordered again until answered, and known again after a restart."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import JobHeard, JobOrdered
from tests.unit.protocol.conftest import contents, messages, reports, restarted_user, sealed


def order(agreement_id: str, job_id: str = "job-1") -> c.JobOrder:
    return c.JobOrder(job_id, agreement_id, 16, 1, HOUR, ("run",))


def status(agreement_id: str, state: JobState, job_id: str = "job-1") -> c.JobStatus:
    return c.JobStatus(job_id, agreement_id, state, "local", "alice1", HOUR, Delivery.PENDING)


def answer(alice: Any, asked: Message, content: Any, *, by: str = "res1", role: Any = None) -> list[fx.Effect]:
    """Let a resource answer a message of alice's."""
    message = Message(Performative.INFORM, by, "alice", asked.conversation_id, content, in_reply_to=asked.reply_with)
    return list(alice.take(sealed(message, role)))


def test_an_order_is_on_record_before_it_leaves_for_whoever_sold_the_slot(alice: Any) -> None:
    bought = alice.bought()
    effects = alice.command(ev.JobSubmitted(order(bought)))
    assert [type(each) for each in effects] == [fx.Persist, fx.Send]
    (message,) = messages(effects)
    assert (message.receiver, message.performative, message.content) == ("res1", Performative.REQUEST, order(bought))
    assert alice.command(ev.JobSubmitted(order(bought))) == []  # it is on its way


def test_nobody_else_speaks_for_the_resource(alice: Any) -> None:
    bought = alice.bought()
    (message,) = messages(alice.command(ev.JobSubmitted(order(bought))))
    with pytest.raises(RemoteProtocolError, match="res2 may not speak for res1"):
        answer(alice, message, status(bought, JobState.DONE), by="res2")
    with pytest.raises(RemoteProtocolError, match="certified as keeper"):
        answer(alice, message, status(bought, JobState.DONE), role=Role.KEEPER)
    assert alice.party.jobs.known[0].word is None


def test_an_order_that_was_given_up_leaves_again_when_it_is_given_again(alice: Any) -> None:
    bought = alice.bought()
    alice.command(ev.JobSubmitted(order(bought)))
    while "order/job-1" in alice.party._questions:
        alice.tick(alice.party.deadline)
    (again,) = messages(alice.command(ev.JobSubmitted(order(bought)), MINUTE))
    assert again.content == order(bought)


REFUSED = c.JobRefused("job-1", "agreement-alice-1", "not_active", "the slot is released, expected sold")


def test_a_question_that_is_refused_says_nothing_about_a_job_that_runs(alice: Any) -> None:
    bought = alice.bought()
    (message,) = messages(alice.command(ev.JobSubmitted(order(bought))))
    answer(alice, message, status(bought, JobState.RUNNING))
    (asked,) = messages(alice.command(ev.JobAsked("q", c.JobQuery("job-1", ""))))
    assert [type(each) for each in answer(alice, asked, REFUSED)] == [fx.Report]
    assert alice.party.jobs.known[0].word == status(bought, JobState.RUNNING)
    (asked,) = messages(alice.command(ev.JobAsked("q2", c.JobQuery("job-1", ""))))
    assert [type(each) for each in answer(alice, asked, status(bought, JobState.QUEUED))] == [fx.Report]
    assert alice.party.jobs.known[0].word == status(bought, JobState.QUEUED)


@pytest.mark.parametrize(
    ("changes", "news"),
    [
        ({"delivery": Delivery.UNDELIVERED}, True),
        ({}, False),
        ({"delivery": Delivery.UNDELIVERED, "exit_code": 1}, False),
        ({"state": JobState.RUNNING}, False),
    ],
    ids=str,
)
def test_after_the_end_of_a_job_only_the_delivery_of_its_slot_is_news(
    alice: Any, changes: dict[str, Any], news: bool
) -> None:
    bought = alice.bought()
    known = status(bought, JobState.DONE)
    (message,) = messages(alice.command(ev.JobSubmitted(order(bought))))
    answer(alice, message, known)
    (asked,) = messages(alice.command(ev.JobAsked("q", c.JobQuery("job-1", ""))))
    later = replace(known, **changes)
    assert [type(each) for each in answer(alice, asked, later)] == [fx.Persist, fx.Report][1 - news :]
    assert alice.party.jobs.known[0].word == (later if news else known)


def test_a_job_that_was_not_ordered_is_unknown(alice: Any) -> None:
    (told,) = reports(alice.command(ev.JobAsked("q", c.JobQuery("job-9", ""))))
    assert told.answer == c.JobRefused("job-9", "", "unknown_job", "no job of this name has been ordered")


@pytest.mark.parametrize("answered", [False, True])
def test_after_a_restart_jobs_are_known_and_unanswered_orders_leave_again(alice: Any, answered: bool) -> None:
    bought = alice.bought()
    orders = [order(bought), order(bought, "job-2")]
    message, _ = (each for own in orders for each in messages(alice.command(ev.JobSubmitted(own))))
    if answered:
        answer(alice, message, status(bought, JobState.QUEUED))
    kinds = [type(each) for each in alice.journal if isinstance(each, JobOrdered | JobHeard)]
    assert kinds == [JobOrdered, JobOrdered, JobHeard][: 2 + answered]
    again, effects = restarted_user(alice.journal, SECOND)
    assert contents(effects, c.JobOrder) == orders[answered:]
    assert len(again.party.jobs.known) == 2
    _, effects = restarted_user(alice.journal, 2 * HOUR)  # the slot is over
    assert not contents(effects, c.JobOrder)


def test_jobs_go_to_the_archive_with_their_request(alice: Any) -> None:
    bought = alice.bought()
    alice.command(ev.JobSubmitted(order(bought)))
    effects = alice.tick(4 * HOUR)
    (archived,) = [each for each in effects if isinstance(each, fx.Archive)]
    assert "r1" in archived.references
    assert alice.party.jobs.known == ()
