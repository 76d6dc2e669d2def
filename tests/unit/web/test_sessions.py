"""Login links and sessions: once, for a time, and over restarts."""

import sqlite3

import pytest

from ramp.errors import StateDamaged, WrongVersion
from ramp.model.instant import DAY, HOUR, MINUTE
from ramp.model.seal import Role
from ramp.web.security.sessions import LinkRefused, Sessions


class Clock:
    def __init__(self):
        self.at = 10**15

    def __call__(self):
        return self.at


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(tmp_path, clock):
    found = Sessions(tmp_path / "sessions.sqlite", clock)
    yield found
    found.close()


def refusal(sessions, secret):
    with pytest.raises(LinkRefused) as caught:
        sessions.redeem(secret)
    return str(caught.value)


def test_a_link_signs_in_once(sessions):
    secret = sessions.issue_link("alice", Role.USER)
    assert sessions.owner_of_link(secret) == ("alice", Role.USER)  # looking uses nothing up
    token, session = sessions.redeem(secret)
    assert (session.name, session.role) == ("alice", Role.USER)
    assert sessions.find(token) == session
    assert refusal(sessions, secret) == "This login link has been used. Each link works once."
    assert refusal(sessions, secret[:-1]) == "This login link is unknown."
    assert refusal(sessions, token) == "This login link is unknown."  # a session's secret is no link's
    assert sessions.find(secret) is None


def test_a_link_ends_after_a_quarter_of_an_hour(sessions, clock):
    secret = sessions.issue_link("alice", Role.USER)
    clock.at += 15 * MINUTE
    assert refusal(sessions, secret) == "This login link has expired."


def test_sessions_outlive_the_server_and_no_secret_is_on_disk(tmp_path, clock):
    path = tmp_path / "sessions.sqlite"
    first = Sessions(path, clock)
    link = first.issue_link("keeper", Role.KEEPER)
    token, session = first.redeem(link)
    first.close()
    again = Sessions(path, clock)
    assert again.find(token) == session
    assert refusal(again, link) == "This login link has been used. Each link works once."
    again.close()
    stored = path.read_bytes()
    assert token.encode() not in stored
    assert link.encode() not in stored
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_session_ends_when_unused_and_after_a_week(sessions, clock):
    token, _ = sessions.redeem(sessions.issue_link("alice", Role.USER))
    for _ in range(13):
        clock.at += 12 * HOUR - 1
        assert sessions.find(token) is not None
    clock.at += 12 * HOUR  # 7 days, less than a minute ago in use
    assert sessions.find(token) is None
    token, _ = sessions.redeem(sessions.issue_link("alice", Role.USER))
    clock.at += 12 * HOUR
    assert sessions.find(token) is None
    clock.at -= 12 * HOUR
    assert sessions.find(token) is None  # ended is ended, also with a clock that is set back


def test_two_sessions_of_one_user_end_apart(sessions):
    one, first = sessions.redeem(sessions.issue_link("alice", Role.USER))
    two, _ = sessions.redeem(sessions.issue_link("alice", Role.USER))
    sessions.end(first.key)
    assert sessions.find(one) is None
    assert sessions.find(two) is not None


def test_old_rows_leave_the_file(sessions, clock):
    for _ in range(5):
        sessions.redeem(sessions.issue_link("alice", Role.USER))
    clock.at += 8 * DAY
    sessions.issue_link("alice", Role.USER)
    counts = [sessions._file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("links", "sessions")]
    assert counts == [1, 0]


def test_a_file_of_another_kind_or_version_is_named(tmp_path):
    path = tmp_path / "sessions.sqlite"
    path.write_text("no database" * 100)
    with pytest.raises(StateDamaged, match=r"sessions\.sqlite"):
        Sessions(path)
    another = tmp_path / "another.sqlite"
    with sqlite3.connect(another) as file:
        file.execute("PRAGMA user_version = 2")
    with pytest.raises(WrongVersion, match="wrong version of this file of sessions: got 2, expected 1"):
        Sessions(another)
