"""The enrolment office and those who speak with it, as machines: limits, lost answers, forged words, pushed lists."""

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol.enrolment.applicant import Applicant
from ramp.protocol.enrolment.authority import (
    JudgeRequest,
    KeepRevocations,
    ReadRevocations,
    RequestJudged,
    RevocationsKept,
    RevocationsRead,
)
from ramp.protocol.enrolment.office import LOOK, Attempts, EnrolmentOffice
from ramp.protocol.enrolment.revocation_watch import ASK_AGAIN, RevocationWatch
from ramp.protocol.progress import EnrolmentAnswered, MembershipEnded, QueryAnswered, RevocationsFollowed
from ramp.protocol.timing import Timing
from simulation.market.virtual_notary import VirtualNotary

OFFICE = "enrolment"
REQUEST = c.EnrolmentRequest("invitation-1", "AAAA", "00" * 32)
GRANTED = c.EnrolmentGranted("invitation-1", "PEM")


def heard(
    party: Any,
    sender: str,
    content: Any,
    now: int = 0,
    *,
    performative: Performative = Performative.INFORM,
    role: Role | None = None,
) -> list[fx.Effect]:
    message = Message(performative, sender, party.name, "conversation", content)
    if role is not None:
        message = VirtualNotary(sender, role).seal(message, now)
    return list(party.handle(message, now))


def asked(office: EnrolmentOffice, sender: str, now: int = 0) -> list[fx.Effect]:
    return heard(office, sender, REQUEST, now, performative=Performative.REQUEST)


def sent(effects: list[fx.Effect]) -> list[tuple[str, Any]]:
    return [(each.message.receiver, each.message.content) for each in effects if isinstance(each, fx.Send)]


def told(effects: list[fx.Effect]) -> list[Any]:
    return [each.progress for each in effects if isinstance(each, fx.Report)]


@pytest.fixture
def office() -> EnrolmentOffice:
    one = EnrolmentOffice(OFFICE, per_sender=3, in_all=5)
    one.start(0)
    return one


def test_every_request_is_judged_by_the_authority_and_answered(office: EnrolmentOffice) -> None:
    (first,), (second,) = asked(office, "a@s"), asked(office, "b@t")
    assert isinstance(first, JudgeRequest)
    assert isinstance(second, JudgeRequest)
    assert first.request == REQUEST
    denied = c.RequestRefused("invitation-1", "other_key", "used")
    answers = office.handle(RequestJudged(second.message, denied), 0)  # answers may overtake each other
    assert sent(answers) == [("b@t", denied)]
    assert sent(office.handle(RequestJudged(first.message, GRANTED), 0)) == [("a@s", GRANTED)]


def test_a_flood_of_one_sender_is_not_looked_at(office: EnrolmentOffice) -> None:
    assert [len(asked(office, "a@s")) for _ in range(6)] == [1, 1, 1, 0, 0, 0]
    assert len(asked(office, "b@t")) == 1
    assert len(asked(office, "a@s", MINUTE - 1)) == 0
    assert len(asked(office, "a@s", MINUTE)) == 1


def test_a_flood_under_many_names_is_not_looked_at_either(office: EnrolmentOffice) -> None:
    assert sum(len(asked(office, f"name{number}@flood")) for number in range(1_000)) == 5
    assert asked(office, "honest@s", MINUTE - 1) == []
    assert len(asked(office, "honest@s", MINUTE)) == 1  # who asks again comes through
    office.clock_set(-30 * SECOND)
    assert sum(len(asked(office, f"name{number}@flood", 40 * SECOND)) for number in range(9)) == 4
    assert asked(office, "late@s", 90 * SECOND - 1) == []
    assert len(asked(office, "late@s", 90 * SECOND)) == 1  # the minute is as long as it was


def test_a_new_list_goes_to_every_member_at_once_and_says_why(office: EnrolmentOffice) -> None:
    members = ("curie@s", "ann@s")
    assert office.handle(RevocationsRead(1, "LIST 1", members), 0) == []
    assert office.deadline == LOOK
    assert office.tick(LOOK) == [ReadRevocations()]
    assert office.handle(RevocationsRead(1, "LIST 1", members), LOOK) == []
    pushed = office.handle(RevocationsRead(2, "LIST 2", members, {"curie@s": "revoked: its bill"}), LOOK)
    assert sent(pushed) == [
        ("curie@s", c.RevocationNotice("2", 2, "LIST 2", "revoked: its bill")),
        ("ann@s", c.RevocationNotice("2", 2, "LIST 2")),
    ]


def test_an_office_looks_every_other_second_by_the_clock_that_is_set_and_after_a_restart() -> None:
    office = EnrolmentOffice(OFFICE, per_sender=3, in_all=5)
    assert office.recover((), MINUTE) == [ReadRevocations()]
    for now in (MINUTE + LOOK, MINUTE + 2 * LOOK):
        assert office.deadline == now
        assert office.tick(now - 1) == []
        assert office.tick(now) == [ReadRevocations()]
    office.clock_set(-30 * SECOND)
    assert office.deadline == 30 * SECOND + 3 * LOOK


def test_the_log_tells_who_was_answered_and_how(office: EnrolmentOffice) -> None:
    for answer, code, performative in (
        (GRANTED, "", Performative.INFORM),
        (c.RequestRefused("invitation-1", "other_key", "used"), "other_key", Performative.REFUSE),
    ):
        (judge,) = asked(office, "a@s")
        assert isinstance(judge, JudgeRequest)
        answered = office.handle(RequestJudged(judge.message, answer), 0)
        assert told(answered) == [EnrolmentAnswered("a@s", "invitation-1", code)]
        assert [each.message.performative for each in answered if isinstance(each, fx.Send)] == [performative]


def test_so_many_attempts_are_allowed_of_one_sender_and_of_all() -> None:
    attempts = Attempts(per_sender=2, in_all=3)
    assert [attempts.allowed(sender, 0) for sender in "aaabb"] == [True, True, False, True, False]
    assert [attempts.allowed(sender, MINUTE) for sender in "bba"] == [True, True, True]


def test_who_asks_gets_the_list_only_if_it_is_newer(office: EnrolmentOffice) -> None:
    def query(sender: str, number: int, now: int = 0) -> Any:
        content = c.RevocationQuery("q1", number)
        return sent(heard(office, sender, content, now, performative=Performative.QUERY_REF))

    assert query("ann@s", 0) == []  # the office does not know yet
    office.handle(RevocationsRead(7, "LIST 7", ("ann@s",), {"curie@s": "left"}), 0)
    assert query("ann@s", 6) == [("ann@s", c.RevocationNotice("q1", 7, "LIST 7"))]
    assert query("ann@s", 7) == [("ann@s", c.RevocationNotice("q1", 7))]
    assert query("curie@s", 7) == [("curie@s", c.RevocationNotice("q1", 7, "", "left"))]
    assert sum(bool(query("flood@s", 0)) for _ in range(100)) == 30


def test_nothing_else_has_a_place_at_the_office(office: EnrolmentOffice) -> None:
    with pytest.raises(RemoteProtocolError, match="not a message for an enrolment office"):
        heard(office, "a@s", c.ClockQuery("q"))
    assert heard(office, "a@s", c.NotUnderstood("?")) == []


# -- who asks for a certificate --------------------------------------------------------------------------------------


@pytest.fixture
def applicant() -> Applicant:
    return Applicant("invited", office=OFFICE, request=REQUEST, timing=Timing(query_limit=2 * MINUTE))


def test_an_applicant_asks_again_until_it_is_answered(applicant: Applicant) -> None:
    assert sent(applicant.start(0)) == [(OFFICE, REQUEST)]
    assert applicant.deadline is not None
    assert sent(applicant.tick(applicant.deadline)) == [(OFFICE, REQUEST)]
    answer = heard(applicant, OFFICE, GRANTED, role=Role.ENROLMENT)
    assert told(answer) == [QueryAnswered("invitation-1", GRANTED)]
    assert applicant.deadline is None
    assert heard(applicant, OFFICE, GRANTED, role=Role.ENROLMENT) == []


def test_an_applicant_requests_and_waits_by_the_clock_that_is_set(applicant: Applicant) -> None:
    (send,) = applicant.recover((), MINUTE)
    assert isinstance(send, fx.Send)
    assert send.message.performative is Performative.REQUEST
    assert applicant.deadline == MINUTE + SECOND
    applicant.clock_set(-30 * SECOND)
    assert applicant.deadline == 31 * SECOND
    assert heard(applicant, OFFICE, c.NotUnderstood("?")) == []  # an office of another version: it is asked again
    assert sent(applicant.tick(31 * SECOND)) == [(OFFICE, REQUEST)]


def test_an_applicant_gives_up(applicant: Applicant) -> None:
    applicant.start(0)
    reports: list[Any] = []
    while applicant.deadline is not None:
        reports += told(applicant.tick(applicant.deadline))
    assert reports == [QueryAnswered("invitation-1", None)]


@pytest.mark.parametrize(
    ("sender", "role"),
    [(OFFICE, None), (OFFICE, Role.KEEPER), (OFFICE, Role.USER), ("mallory", Role.ENROLMENT), ("mallory", None)],
)
def test_only_the_offices_own_word_is_believed(applicant: Applicant, sender: str, role: Role | None) -> None:
    applicant.start(0)
    for content in (GRANTED, c.RequestRefused("invitation-1", "expired")):
        with pytest.raises(RemoteProtocolError):
            heard(applicant, sender, content, role=role)
    assert told(heard(applicant, OFFICE, GRANTED, role=Role.ENROLMENT))


# -- who follows what is revoked -------------------------------------------------------------------------------------


def watch_of(number: int = 0, expires_at: int = 0) -> RevocationWatch:
    return RevocationWatch("ann", office=OFFICE, pause=MINUTE, number=number, expires_at=expires_at)


def test_a_party_asks_at_its_start_and_every_minute() -> None:
    watch = watch_of(3, 9 * MINUTE)
    assert sent(watch.start(0)) == [(OFFICE, c.RevocationQuery("revocations-1", 3))]
    assert watch.deadline == ASK_AGAIN
    assert sent(watch.tick(ASK_AGAIN)) == [(OFFICE, c.RevocationQuery("revocations-2", 3))]
    assert heard(watch, OFFICE, c.RevocationNotice("revocations-2", 3), ASK_AGAIN, role=Role.ENROLMENT) == []
    assert watch.deadline == ASK_AGAIN + MINUTE
    watch.clock_set(-5 * SECOND)
    assert watch.deadline == ASK_AGAIN + MINUTE - 5 * SECOND


def test_a_newer_list_is_kept_and_an_older_one_is_not() -> None:
    watch = watch_of(3, 9 * MINUTE)
    watch.start(0)
    notice = c.RevocationNotice("4", 4, "LIST 4")
    assert heard(watch, OFFICE, notice, role=Role.ENROLMENT) == [KeepRevocations("LIST 4")]
    assert told(watch.handle(RevocationsKept(4, 8 * MINUTE), 0)) == [RevocationsFollowed(4, "")]
    for number in (3, 4):
        old = c.RevocationNotice("x", number, f"LIST {number}")
        assert heard(watch, OFFICE, old, role=Role.ENROLMENT) == []
    assert told(watch.handle(RevocationsKept(0, 0, "not signed"), 0)) == [RevocationsFollowed(0, "not signed")]


def test_a_revoked_party_is_told_why() -> None:
    watch = watch_of()
    watch.start(0)
    notice = c.RevocationNotice("5", 5, "LIST 5", "revoked at noon: its bill")
    effects = heard(watch, OFFICE, notice, role=Role.ENROLMENT)
    assert effects == [KeepRevocations("LIST 5"), fx.Report(MembershipEnded("revoked at noon: its bill"))]


@pytest.mark.parametrize(("sender", "role"), [(OFFICE, None), (OFFICE, Role.BANK), ("mallory", Role.ENROLMENT)])
def test_nobody_else_ends_a_membership(sender: str, role: Role | None) -> None:
    watch = watch_of()
    watch.start(0)
    with pytest.raises(RemoteProtocolError):
        heard(watch, sender, c.RevocationNotice("5", 5, "LIST 5", "you are out"), role=role)


def test_who_has_no_list_asks_and_says_of_none_that_it_has_run_out() -> None:
    watch = RevocationWatch("ann", office=OFFICE, pause=MINUTE)
    effects = watch.recover((), HOUR)
    assert (sent(effects), told(effects)) == ([(OFFICE, c.RevocationQuery("revocations-1", 0))], [])
    assert watch.deadline == HOUR + ASK_AGAIN
    assert watch.tick(HOUR + ASK_AGAIN - 1) == []
    effects = watch.tick(HOUR + ASK_AGAIN)
    assert (len(sent(effects)), told(effects)) == (1, [])


def test_a_list_may_be_relied_on_until_its_very_end() -> None:
    watch = watch_of(3, 5 * SECOND)
    assert told(watch.start(5 * SECOND)) == []
    assert watch.deadline == 5 * SECOND + 1
    assert [type(each) for each in told(watch.tick(5 * SECOND + 1))] == [RevocationsFollowed]
    assert watch.deadline == 5 * SECOND + ASK_AGAIN  # it has been told, and only the office is waited for


def test_a_list_that_has_run_out_is_told_once() -> None:
    watch = watch_of(3, 5 * SECOND)
    watch.start(0)
    assert watch.deadline == 5 * SECOND + 1
    (progress,) = told(watch.tick(5 * SECOND + 1))
    assert progress == RevocationsFollowed(3, "the list has expired and no newer one has arrived")
    assert told(watch.tick(6 * SECOND)) == []
    watch.handle(RevocationsKept(4, 20 * SECOND), 7 * SECOND)
    watch.clock_set(HOUR)  # a list runs out at its date
    assert told(watch.tick(20 * SECOND)) == []
    assert told(watch.tick(20 * SECOND + 1))
