"""Changes of a running market over its file: what stands, what the file takes back, what is kept on disk."""

import json
from pathlib import Path

import pytest

from ramp.errors import ConfigurationError, StateDamaged, WrongVersion
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration_changes.overlay import (
    Overlay,
    StepKind,
    load_market,
    load_overlay,
    new_overlay,
    part_of_market,
    running_config,
    save_overlay,
    steps_between,
    waiting_steps,
)
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import tiny_market

FILE = tiny_market({"alice": 100, "bob": 10})
PATH = Path("market.toml")


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder(tmp_path / "state")
    folder.prepare()
    return folder


def users(overlay: Overlay) -> list[str]:
    return [user.name for user in overlay.config(PATH).users]


def carol() -> Overlay:
    return new_overlay(FILE, PATH).with_user("carol", {"name": "carol", "deposit": "5.00"})


def test_an_unchanged_market_is_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "market.toml"
    path.write_text(FILE)
    assert new_overlay(FILE, PATH).config(path) == load_config(path)
    assert new_overlay(FILE, PATH).standing == ()


def test_what_was_added_stands_when_the_file_is_taken_again() -> None:
    again = carol().taken(FILE + "\n# a remark\n", PATH)
    assert users(again) == ["alice", "bob", "carol"]
    assert again.config(PATH).user("carol").deposit == 500


def test_who_is_in_the_file_by_now_is_what_the_file_says() -> None:
    again = carol().taken(FILE + '\n[[users]]\nname = "carol"\ndeposit = 7\n', PATH)
    assert users(again).count("carol") == 1
    assert again.config(PATH).user("carol").deposit == 700
    assert again.standing == ()


def test_a_price_that_was_set_stands_until_the_file_says_another_one() -> None:
    set_ = new_overlay(FILE, PATH).with_settings("alpha", {"start_price": 80, "minimum_price": 30})
    assert (set_.config(PATH).resource("alpha").prices.start_price, set_.taken(FILE, PATH)) == (80, set_)
    edited = FILE.replace("start_price = 40", "start_price = 55")
    prices = set_.taken(edited, PATH).config(PATH).resource("alpha").prices
    assert (prices.start_price, prices.minimum_price) == (55, 30)


def test_what_the_file_says_no_more_is_gone_and_other_changes_stand() -> None:
    before = FILE.replace("start_price = 40", "start_price = 40\nrounds_expected = 6")
    set_ = new_overlay(before, PATH).with_settings("alpha", {"start_price": 80})
    prices = set_.taken(FILE, PATH).config(PATH).resource("alpha").prices
    assert (prices.start_price, prices.rounds_expected) == (80, 4)
    assert set_.taken(FILE, PATH).standing == ("alpha: start_price = 80",)


def test_who_was_removed_stays_so_until_the_file_is_edited_there() -> None:
    gone = new_overlay(FILE, PATH).without("bob")
    assert users(gone.taken(FILE, PATH)) == ["alice"]
    back = FILE.replace("deposit = 10\n", "deposit = 11\n")
    assert users(gone.taken(back, PATH)) == ["alice", "bob"]


def test_who_was_added_and_removed_leaves_nothing_behind() -> None:
    assert carol().without("carol") == new_overlay(FILE, PATH)


def test_who_was_removed_can_be_added_again() -> None:
    again = new_overlay(FILE, PATH).without("bob").with_user("bob", {"name": "bob", "deposit": 3})
    assert again.config(PATH).user("bob").deposit == 300
    assert again.standing == ("bob: deposit = 3",)
    assert again.taken(FILE, PATH) == again


def test_draining_lasts_whatever_becomes_of_the_file() -> None:
    drained = new_overlay(FILE, PATH).drained("alpha", True)
    assert [each.draining for each in drained.config(PATH).resources] == [True, False]
    edited = FILE.replace("start_price = 40", "start_price = 55")
    assert drained.taken(edited, PATH).config(PATH).resource("alpha").draining
    assert drained.drained("alpha", False) == new_overlay(FILE, PATH)


def test_a_price_that_cannot_be_is_refused_as_in_a_file() -> None:
    with pytest.raises(ConfigurationError, match="minimum_price: got 100, expected at most the start price 40"):
        new_overlay(FILE, PATH).with_settings("alpha", {"minimum_price": 100}).config(PATH)


def test_the_rest_of_the_file_waits_for_the_next_start() -> None:
    edited = "[timing]\nheartbeat_s = 7\n" + FILE
    taken = new_overlay(FILE, PATH).taken(edited, PATH)
    assert taken.config(PATH).timing == new_overlay(FILE, PATH).config(PATH).timing
    (step,) = waiting_steps(FILE, edited, PATH)
    assert step.kind is StepKind.LATER
    assert step.text == "[timing] heartbeat_s: at the next `ramp up`"


def test_changes_are_kept_over_a_restart(state: StateFolder, tmp_path: Path) -> None:
    path = tmp_path / "market.toml"
    path.write_text(FILE)
    assert load_overlay(state) is None
    changed = carol().without("bob").with_settings("beta", {"start_price": 70}).drained("alpha", True)
    save_overlay(state, changed)
    assert load_overlay(state) == changed
    assert load_market(path, state) == running_config(path, state)
    assert [user.name for user in load_market(path, state).users] == ["alice", "carol"]
    assert state.changes.stat().st_mode & 0o077 == 0


def test_an_edit_of_the_file_is_not_seen_by_a_market_that_runs(state: StateFolder, tmp_path: Path) -> None:
    """A process that is started again must not become another market's."""
    path = tmp_path / "market.toml"
    path.write_text("this is no TOML")
    save_overlay(state, new_overlay(FILE, PATH))
    assert [user.name for user in running_config(path, state).users] == ["alice", "bob"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 1, "frame": 3, "parties": ""}'])
def test_changes_that_cannot_be_read_are_told_with_what_to_do(state: StateFolder, text: str) -> None:
    state.changes.write_text(text)
    with pytest.raises(StateDamaged, match=r"changes\.json"):
        load_overlay(state)


def test_changes_of_another_version_are_refused(state: StateFolder) -> None:
    save_overlay(state, new_overlay(FILE, PATH))
    state.changes.write_text(json.dumps({**json.loads(state.changes.read_text()), "version": 2}))
    with pytest.raises(WrongVersion, match="wrong version of this file of changes: got 2, expected 1"):
        load_overlay(state)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (
            FILE.replace('name = "bob"', 'name = "dora"').replace("start_price = 40", "start_price = 55"),
            [("remove", "bob"), ("add", "dora"), ("update", "alpha")],
        ),
        (
            FILE.replace("cores = 64", "cores = 128").replace("deposit = 10\n", "deposit = 20\n"),
            [("rebuild", "alpha"), ("rebuild", "beta"), ("later", "bob")],
        ),
    ],
    ids=["parties and prices", "machines and deposits"],
)
def test_the_steps_between_two_markets_are_told_in_their_order(other: str, expected: list[tuple[str, str]]) -> None:
    before = new_overlay(FILE, PATH)
    steps = steps_between(before.config(PATH), before.taken(other, PATH).config(PATH))
    assert [(step.kind, step.name) for step in steps] == expected
    if steps[2].kind is StepKind.UPDATE:
        assert steps[2].text == "resource alpha: start_price 40 -> 55"


@pytest.mark.parametrize(
    "text", ["", "[[users]]\nname = 'x'", "[[resources]]\n[[resources]]\n", "resources = 3", "= ="]
)
def test_a_resource_is_added_by_one_table_of_toml(text: str) -> None:
    with pytest.raises(ConfigurationError):
        part_of_market(text, "new.toml")
    assert part_of_market('[[resources]]\nname = "x"\n[machines.m]\ncores = 4\n', "new.toml") == (
        {"name": "x"},
        {"m": {"cores": 4}},
    )


@pytest.mark.parametrize("value", ["1979-05-27", "07:32:00", "[{ at = 1979-05-27T07:32:00Z }]"])
def test_dates_of_toml_which_no_change_could_keep_are_refused_with_the_key(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"machines\.small\.options\.day.*expected a text such as"):
        new_overlay(FILE.replace("load = 0.25", f"day = {value}"), PATH)


def test_a_file_without_tables_of_users_is_told_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match=r"line 1: users: got 5, expected a list"):
        new_overlay("users = 5\n", PATH)
