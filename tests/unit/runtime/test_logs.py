"""Events are kept, one line each, read back by time from all processes, followed as they come, and rotated."""

import json
import logging
from pathlib import Path

import pytest

from ramp.runtime.logs import JsonLines, follow_events, keep_events, read_events, record, rotate, rotate_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "events"


def test_what_is_recorded_is_read_back(folder: Path) -> None:
    end = keep_events(folder / "users.jsonl", rotate_bytes=1 << 20, keep=2)
    try:
        record("alice@localhost", "request", "request-1 committed: Grüße\nin two lines", cost=5)
        record("curie1", "sale", "sold", buyer="alice@localhost")
    finally:
        end()
    record("curie1", "sale", "after the end")
    found = read_events(folder)
    assert [(each.agent, each.event, dict(each.fields)) for each in found] == [
        ("alice", "request", {"cost": 5}),
        ("curie1", "sale", {"buyer": "alice@localhost"}),
    ]
    assert (folder / "users.jsonl").read_text().count("\n") == 2
    assert [each.text for each in read_events(folder, "curie1")] == ["sold"]
    assert read_events(folder, since=found[1].at) == found[1:]


def test_events_of_all_processes_are_in_the_order_of_time(folder: Path) -> None:
    folder.mkdir()
    for name, seconds in (("a", (1, 4)), ("b", (2, 3)), ("b.jsonl.1", (0,))):
        path = folder / (name if "jsonl" in name else f"{name}.jsonl")
        lines = [
            json.dumps({"time": f"2026-11-21T08:00:0{s}Z", "agent": "x", "event": "e", "text": str(s)}) for s in seconds
        ]
        path.write_text("\n".join([*lines, '{"time": "2026-', "[]", ""]))
    assert [each.text for each in read_events(folder)] == ["0", "1", "2", "3", "4"]


def test_new_events_are_followed_also_when_their_file_has_begun_anew(folder: Path) -> None:
    folder.mkdir()
    path = folder / "users.jsonl"

    def line(text: str) -> str:
        return json.dumps({"time": "2026-11-21T08:00:00Z", "agent": "alice", "event": "e", "text": text}) + "\n"

    path.write_text(line("old and long enough to be longer than the next"))
    following = follow_events(folder, "alice", wait=lambda _: None)
    assert next(following) is None
    with path.open("a") as file:
        file.write(line("second") + '{"time": "2026-11')
    event = next(following)
    assert event.text == "second"
    assert next(following) is None
    path.write_text(line("anew"))
    (folder / "late.jsonl").write_text(line("of a new process").replace("alice", "bob") + line("late"))
    texts = {event.text for event in (next(following), next(following)) if event is not None}
    assert texts == {"anew", "late"}


def test_files_of_events_do_not_grow_without_end(folder: Path) -> None:
    end = keep_events(folder / "users.jsonl", rotate_bytes=2_000, keep=2)
    try:
        for number in range(200):
            record("alice", "request", f"number {number}")
    finally:
        end()
    assert sorted(path.name for path in folder.iterdir()) == ["users.jsonl", "users.jsonl.1", "users.jsonl.2"]
    assert all(path.stat().st_size <= 2_000 for path in folder.iterdir())
    assert read_events(folder)[-1].text == "number 199"


def test_a_log_of_json_lines_has_the_event_and_the_exception() -> None:
    entry = logging.LogRecord("ramp.agents.group", logging.ERROR, "", 0, "agent %s failed", ("curie1",), None)
    line = json.loads(JsonLines().format(entry))
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "ramp.agents.group", "agent curie1 failed")
    assert line["time"].endswith("Z")


def test_a_log_that_is_written_at_its_end_is_copied_aside_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "users.log"
    with path.open("ab") as writer:
        for number in range(4):
            writer.write(f"life {number}\n".encode() * 100)
            writer.flush()
            assert rotate(path, rotate_bytes=500, keep=2)
        writer.write(b"last\n")
        writer.flush()
        assert not rotate(path, rotate_bytes=500, keep=2)
    assert path.read_bytes() == b"last\n"
    kept = {each.name: each.read_text()[:6] for each in tmp_path.iterdir() if each != path}
    assert kept == {"users.log.1": "life 3", "users.log.2": "life 2"}
    rotate_all(tmp_path, rotate_bytes=1, keep=1)
    assert (tmp_path / "users.log.1").read_bytes() == b"last\n"
    assert not rotate(tmp_path / "never.log", rotate_bytes=1, keep=1)
