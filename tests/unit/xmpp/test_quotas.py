"""What an agent takes from one sender, and what it complains of."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import ConfigurationError
from ramp.model.instant import MINUTE, SECOND
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import QuotaConfig
from ramp.xmpp import quotas
from ramp.xmpp.quotas import Complaints, SenderQuota
from tests.tiny_market import tiny_market


class Bucket:
    """The textbook's token bucket, in fractions."""

    def __init__(self, rate, burst):
        self.rate, self.burst, self.tokens, self.last = rate, burst, Fraction(burst), 0

    def admits(self, now):
        self.tokens = min(Fraction(self.burst), self.tokens + Fraction((now - self.last) * self.rate, SECOND))
        self.last = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@given(
    st.integers(1, 5000),
    st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 300_000)), max_size=200),
)
def test_each_sender_has_the_bucket_of_the_textbook(rate, burst, steps):
    quota = SenderQuota(QuotaConfig(messages_per_sender_per_second=rate, burst=burst))
    buckets = {sender: Bucket(rate, burst) for sender in "abc"}
    now = 0
    for sender, pause in steps:
        now += pause
        assert quota.admits(sender, now) == buckets[sender].admits(now)


def test_senders_remembered_are_bounded_and_an_active_one_stays_among_them(monkeypatch):
    monkeypatch.setattr(quotas, "SENDERS_MAX", 100)
    quota = SenderQuota(QuotaConfig(messages_per_sender_per_second=1, burst=1))
    admitted = 0
    for number in range(10_000):
        quota.admits(f"passer-by{number}", 0)
        if number % 20 == 0:
            admitted += quota.admits("flooder", 0)
        assert len(quota._full_again) <= 101
    assert admitted == 1


def test_one_line_a_minute_and_sender():
    complaints = Complaints()
    assert [complaints.is_due("x", "a", now) for now in (0, 1, MINUTE - 1, MINUTE, MINUTE + 1)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert complaints.is_due("x", "b", MINUTE + 1)
    assert complaints.is_due("y", "a", MINUTE + 1)


def test_lines_and_memory_are_bounded_whatever_names_are_invented(monkeypatch):
    monkeypatch.setattr(quotas, "COMPLAINED_SENDERS_MAX", 10)
    complaints = Complaints()
    assert sum(complaints.is_due("x", f"name{number}", number) for number in range(1000)) == 10
    assert sum(complaints.is_due("x", f"name{number}", MINUTE + 1000) for number in range(1000)) == 10
    assert len(complaints._said) == 10


MARKET = tiny_market({"alice": 0}, prices={"small": (2, 1)})


def loaded(tmp_path, text):
    path = tmp_path / "swarm.toml"
    path.write_text(text + MARKET)
    return load_config(path)


def test_quotas_are_read_from_the_markets_file(tmp_path):
    assert loaded(tmp_path, "").quotas == QuotaConfig()
    text = "[quotas]\nmessages_per_sender_per_second = 7\nburst = 9\n"
    assert loaded(tmp_path, text).quotas == QuotaConfig(messages_per_sender_per_second=7, burst=9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[quotas]\nburst = 0\n", ["swarm.toml", "quotas.burst", "0", "a whole number from 1"]),
        ("[quotas]\nmessages_per_sender_per_second = 1.5\n", ["quotas.messages_per_sender_per_second", "1.5"]),
        ("[quotas]\nbursts = 5\n", ["quotas.bursts", "did you mean 'burst'?"]),
        ("[server]\nregister = true\n", ["server.register", "expected false", "embedded"]),
        ('[server]\naccounts = ["\uff42ank"]\n', ["server.accounts[0]", "'\uff42ank'", "lower-case"]),
        ('[server]\naccounts = ["small"]\n', ["'small' is used 2 times"]),
        ('[server]\naddresses = ["h:5222"]\naccounts = ["v"]\n', ["server.accounts", "by its owner"]),
        ('[server]\naccounts = "v"\n', ["server.accounts", "a list"]),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(tmp_path, text, words):
    with pytest.raises(ConfigurationError) as error:
        loaded(tmp_path, text)
    for word in words:
        assert word in str(error.value)
