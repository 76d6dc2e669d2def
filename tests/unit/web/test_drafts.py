"""What is filled in is there again for the same session, whatever happens to the server and the file."""

import json

from ramp.protocol.events import Approval, Preference
from ramp.web.asking.draft import Draft, UnitDraft, Wishes
from ramp.web.asking.drafts import DRAFTS_MAX, Drafts


def filled():
    units = [UnitDraft({"cores": "64", "geometry": "8x8x8"}, rotate=False), UnitDraft({"cores": "ab"})]
    return Draft(units, "99.5", Wishes(None, Preference.SOONEST, Approval.ASK))


def test_another_server_finds_what_was_filled_in(tmp_path):
    path = tmp_path / "drafts.json"
    first = Drafts(path)
    first.replace("alice", filled())
    first.keep()
    assert path.stat().st_mode & 0o777 == 0o600
    second = Drafts(path)
    assert second.of("alice") == filled()
    assert second.of("bob") == Draft()


def test_only_what_is_different_is_written(tmp_path):
    path = tmp_path / "drafts.json"
    drafts = Drafts(path)
    drafts.of("alice").max_cost = "5"
    drafts.keep()
    path.unlink()
    drafts.keep()
    assert not path.exists()
    drafts.of("alice").max_cost = "6"
    drafts.keep()
    assert Drafts(path).of("alice").max_cost == "6"


def test_the_oldest_form_goes(tmp_path):
    drafts = Drafts(tmp_path / "drafts.json")
    for number in range(DRAFTS_MAX + 1):
        drafts.of(f"session {number}").max_cost = str(number)
    assert drafts.of("session 0").max_cost == ""
    assert drafts.of(f"session {DRAFTS_MAX}").max_cost == str(DRAFTS_MAX)


def test_a_file_that_makes_no_sense_costs_what_was_filled_in_only(tmp_path, caplog):
    path = tmp_path / "drafts.json"
    for text in ("no JSON", json.dumps({"alice": {"units": 3}}), json.dumps({"alice": {"wishes": {"prefer": "rich"}}})):
        path.write_text(text)
        caplog.clear()
        assert Drafts(path).of("alice") == Draft()
        assert str(path) in caplog.text


def test_a_file_that_cannot_be_written_is_told_once(tmp_path, caplog):
    (tmp_path / "taken").write_text("")
    drafts = Drafts(tmp_path / "taken" / "drafts.json")
    for limit in ("1", "2"):
        drafts.of("alice").max_cost = limit
        drafts.keep()
    assert caplog.text.count("cannot store drafts") == 1
