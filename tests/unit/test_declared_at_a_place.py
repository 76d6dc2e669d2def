"""What a message about a place offers: what the file itself defines, of the sort that was asked for."""

from pathlib import Path

import pytest

from ramp.errors import ConfigurationError
from ramp.runtime.auction_rules import RULES
from simulation.schedulers.declaration import SCHEDULERS

SCHEDULER_FILE = """
from dataclasses import dataclass
from simulation import Job, Site
from simulation.schedulers.policies.easy import EasyBackfill


@dataclass
class Notes:
    job: Job


def order(job):
    return job.submit_time


class BigFirst:
    def submit(self, job): ...
    def released(self): ...
    def waiting(self): ...
    def decide(self, site): ...
"""
RULE_FILE = """
from ramp import AuctionRule, Bidding


class Divides(AuctionRule):
    about = "Divides by nothing."


class Helper: ...
"""


@pytest.mark.parametrize(
    ("declared", "text", "names"), [(SCHEDULERS, SCHEDULER_FILE, "BigFirst"), (RULES, RULE_FILE, "Divides")]
)
def test_only_what_the_file_itself_declares_is_offered(declared, text, names, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        declared.find(f"{path}:Nobody")
    assert caught.value.reason.endswith(f"has no 'Nobody': expected one of {names}")


def test_a_file_that_declares_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "nothing.py").write_text("from ramp import AuctionRule\n")
    with pytest.raises(ConfigurationError, match="has no 'Nobody'; it defines no auction rule"):
        RULES.find(f"{tmp_path / 'nothing.py'}:Nobody")


def test_a_neighbour_that_is_not_found_is_told_with_a_way(tmp_path: Path) -> None:
    """A module that is nowhere is told as before: there is no way to name."""
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "asks.py").write_text("import beside\n")
    (tmp_path / "lost.py").write_text("import beside_nobody\n")
    with pytest.raises(ConfigurationError, match=f"No module named 'beside'.*PYTHONPATH={tmp_path}"):
        SCHEDULERS.find(f"{tmp_path / 'asks.py'}:Asks")
    with pytest.raises(ConfigurationError, match=r"No module named 'beside_nobody'$"):
        SCHEDULERS.find(f"{tmp_path / 'lost.py'}:Lost")


def test_a_file_that_is_named_by_half_is_told_how_to_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big_first.py").write_text(SCHEDULER_FILE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"big_first\.py:NAME, with a name that it defines"):
        SCHEDULERS.find("big_first.py")
    with pytest.raises(ConfigurationError, match=r"No module named 'big_first'; the file is big_first\.py:NAME$"):
        SCHEDULERS.find("big_first:BigFirst")
    with pytest.raises(ConfigurationError, match=r"FILE\.py:NAME\)$"):
        SCHEDULERS.find("small_first.py")
