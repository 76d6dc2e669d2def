"""A user's jobs: ordered once, ordered again until answered, and known again after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.contents.jobs import Delivery, JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.records import JobHeard, JobOrdered


def order(agreement_id: str, job_id: str = "job-1") -> c.JobOrder:
    return c.JobOrder(job_id, agreement_id, 16, 1, HOUR, ("run",))


def status(agreement_id: str, state: JobState, job_id: str = "job-1") -> c.JobStatus:
    return c.JobStatus(job_id, agreement_id, state, "local", "alice1", HOUR, Delivery.PENDING)


def sent(effects: list[fx.Effect]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, fx.Send)]


@pytest.fixture
def answer(seal_message: Any) -> Any:
    """What a resource says to a message of alice's."""

    def say(alice: Any, asked: Message, content: Any, *, by: str = "res1") -> list[fx.Effect]:
        message = Message(
            Performative.INFORM, by, "alice", asked.conversation_id, content, in_reply_to=asked.reply_with
        )
        return list(alice.take(seal_message(message)))

    return say


def test_an_order_is_on_record_before_it_leaves_for_whoever_sold_the_slot(alice: Any) -> None:
    bought = alice.bought()
    effects = alice.command(ev.JobSubmitted(order(bought)))
    assert [type(each) for each in effects] == [fx.Persist, fx.Send]
    (message,) = sent(effects)
    assert (message.receiver, message.performative, message.content) == ("res1", Performative.REQUEST, order(bought))
    assert alice.command(ev.JobSubmitted(order(bought))) == []  # it is on its way


def test_inputs_go_to_the_seller_of_the_slot_before_the_order(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    effects = alice.command(ev.JobInputSent("q1", "job-1", bought, 0, "YQ=="))
    (message,) = sent(effects)
    assert (message.receiver, message.content) == ("res1", c.JobInputPiece("job-1", bought, 0, "YQ=="))
    kept = c.JobOutput("job-1", bought, "inputs", 0, 1, False, "")
    (told,) = answer(alice, message, kept)
    assert told.progress.answer == kept
    (told,) = alice.command(ev.JobInputSent("q2", "job-1", "agreement-7", 0, "YQ=="))
    assert told.progress.answer.code == "not_active"


@pytest.mark.parametrize("by_itself", [False, True])
def test_a_question_that_cannot_be_read_or_sent_ends_at_once(alice: Any, by_itself: bool) -> None:
    bought = alice.bought()
    alice.command(ev.JobSubmitted(order(bought)))
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought, "job-2"))))
    complaint = c.NotUnderstood("line 1: JobOrder")
    message = sent(alice.command(ev.JobAsked("q1", "job-1")))[0] if by_itself else message
    speaker = "alice" if by_itself else "res1"
    for sender, ends in (("res2", False), (speaker, True), (speaker, False)):
        effects = alice.take(
            Message(
                Performative.NOT_UNDERSTOOD,
                sender,
                "alice",
                message.conversation_id,
                complaint,
                in_reply_to=message.reply_with,
            )
        )
        assert [each.progress.answer for each in effects] == ([complaint] if ends else [])


def test_nothing_is_ordered_on_what_one_does_not_have(alice: Any) -> None:
    (told,) = alice.command(ev.JobSubmitted(order("agreement-7")))
    assert told.progress.answer.code == "not_active"
    bought = alice.bought()
    alice.command(ev.AgreementCancelled(bought, ""))
    (told,) = alice.command(ev.JobSubmitted(order(bought)))
    assert told.progress.answer.code == "not_active"
    assert alice.party.jobs.known == ()


def test_the_answer_is_told_and_kept(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    effects = answer(alice, message, status(bought, JobState.QUEUED))
    assert [type(each) for each in effects] == [fx.Persist, fx.Report]
    (told,) = alice.command(ev.JobSubmitted(order(bought)))
    assert told.progress.answer.state is JobState.QUEUED
    (job,) = alice.party.jobs.known
    assert (job.resource, job.word.state) == ("res1", JobState.QUEUED)


def test_nobody_else_speaks_for_the_resource(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    with pytest.raises(RemoteProtocolError, match="res2 may not speak for res1"):
        answer(alice, message, status(bought, JobState.DONE), by="res2")
    assert alice.party.jobs.known[0].word is None


def test_only_the_resources_sealed_word_is_believed(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (order_sent,) = sent(alice.command(ev.JobSubmitted(order(bought))))

    def unsealed(asked: Message, content: Any) -> Message:
        return Message(
            Performative.INFORM, "res1", "alice", asked.conversation_id, content, in_reply_to=asked.reply_with
        )

    with pytest.raises(RemoteProtocolError):
        alice.take(unsealed(order_sent, status(bought, JobState.DONE)))
    answer(alice, order_sent, status(bought, JobState.RUNNING))
    (asked,) = sent(alice.command(ev.JobAsked("q", "job-1")))
    with pytest.raises(RemoteProtocolError):
        alice.take(unsealed(asked, status(bought, JobState.DONE)))
    assert alice.party.jobs.known[0].word.state is JobState.RUNNING


def test_an_order_that_was_given_up_leaves_again_when_it_is_given_again(alice: Any) -> None:
    bought = alice.bought()
    alice.command(ev.JobSubmitted(order(bought)))
    while "order/job-1" in alice.party._questions:
        alice.tick(alice.party.deadline)
    (again,) = sent(alice.command(ev.JobSubmitted(order(bought)), MINUTE))
    assert again.content == order(bought)


def test_every_unanswered_order_leaves_again_after_a_restart(alice: Any, restarted_user: Any) -> None:
    bought = alice.bought()
    orders = [order(bought, "job-1"), order(bought, "job-2")]
    for each in orders:
        alice.command(ev.JobSubmitted(each))
    _, effects = restarted_user(alice.journal, SECOND)
    assert [each.content for each in sent(effects) if isinstance(each.content, c.JobOrder)] == orders


def test_what_is_final_stays(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    answer(alice, message, status(bought, JobState.DONE))
    (asked,) = sent(alice.command(ev.JobAsked("q", "job-1")))
    effects = answer(alice, asked, c.JobRefused("job-1", bought, "unknown_job"))
    assert [type(each) for each in effects] == [fx.Report]
    assert alice.party.jobs.known[0].word.state is JobState.DONE


REFUSED = c.JobRefused("job-1", "agreement-alice-1", "not_active", "the slot is released, expected sold")


def test_an_order_that_was_refused_stays_so(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    assert [type(each) for each in answer(alice, message, REFUSED)] == [fx.Persist, fx.Report]
    (asked,) = sent(alice.command(ev.JobAsked("q", "job-1")))
    assert [type(each) for each in answer(alice, asked, status(bought, JobState.RUNNING))] == [fx.Report]
    assert alice.party.jobs.known[0].word == REFUSED


def test_a_question_that_is_refused_says_nothing_about_a_job_that_runs(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    answer(alice, message, status(bought, JobState.RUNNING))
    (asked,) = sent(alice.command(ev.JobAsked("q", "job-1")))
    assert [type(each) for each in answer(alice, asked, REFUSED)] == [fx.Report]
    assert alice.party.jobs.known[0].word == status(bought, JobState.RUNNING)
    (asked,) = sent(alice.command(ev.JobAsked("q2", "job-1")))
    assert [type(each) for each in answer(alice, asked, status(bought, JobState.QUEUED))] == [fx.Report]
    assert alice.party.jobs.known[0].word == status(bought, JobState.QUEUED)


def test_questions_go_to_the_resource_and_unknown_jobs_nowhere(alice: Any, answer: Any) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    answer(alice, message, status(bought, JobState.RUNNING))
    for command, kind, performative in (
        (ev.JobAsked("q1", "job-1"), c.JobQuery, Performative.QUERY_REF),
        (ev.JobCancelled("q2", "job-1"), c.JobCancellation, Performative.CANCEL),
        (ev.JobOutputAsked("q3", "job-1", "stdout", 7), c.JobOutputQuery, Performative.QUERY_REF),
    ):
        (asked,) = sent(alice.command(command))
        assert (type(asked.content), asked.performative, asked.receiver) == (kind, performative, "res1")
    (told,) = alice.command(ev.JobAsked("q4", "job-9"))
    assert told.progress.answer == c.JobRefused("job-9", "", "unknown_job", "no job of this name has been ordered")


@pytest.mark.parametrize("answered", [False, True])
def test_after_a_restart_jobs_are_known_and_unanswered_orders_leave_again(
    alice: Any, answer: Any, restarted_user: Any, answered: bool
) -> None:
    bought = alice.bought()
    (message,) = sent(alice.command(ev.JobSubmitted(order(bought))))
    if answered:
        answer(alice, message, status(bought, JobState.QUEUED))
    kinds = [type(each) for each in alice.journal if isinstance(each, JobOrdered | JobHeard)]
    assert kinds == [JobOrdered, JobHeard][: 1 + answered]
    again, effects = restarted_user(alice.journal, SECOND)
    assert [each.content for each in sent(effects) if isinstance(each.content, c.JobOrder)] == (
        [] if answered else [order(bought)]
    )
    assert len(again.party.jobs.known) == 1
    _, effects = restarted_user(alice.journal, 2 * HOUR)  # the slot is over
    assert not [each for each in sent(effects) if isinstance(each.content, c.JobOrder)]


def test_jobs_go_to_the_archive_with_their_request(alice: Any) -> None:
    bought = alice.bought()
    alice.command(ev.JobSubmitted(order(bought)))
    effects = alice.tick(4 * HOUR)
    (archived,) = [each for each in effects if isinstance(each, fx.Archive)]
    assert "r1" in archived.references
    assert alice.party.jobs.known == ()
