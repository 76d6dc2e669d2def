"""Who has changed what: lines that are only ever added, with the name that the kernel tells."""

import getpass
import socket
from pathlib import Path

from ramp.model.instant import SECOND
from ramp.runtime.configuration_changes.audit_log import add_line, lines_of, own_name, peer_name
from ramp.runtime.state_folder import StateFolder

NOW = 1_790_000_000 * SECOND


def test_lines_are_read_back_in_their_order_and_from_a_moment_on(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert list(lines_of(state)) == []
    first = add_line(state, NOW, "root", "user add", "carol", "user carol is added: Grüße\nand a line break")
    second = add_line(state, NOW + SECOND, "anna", "restart", "curie1", "curie1 is restarted")
    assert list(lines_of(state)) == [first, second]
    assert list(lines_of(state, NOW + SECOND)) == [second]
    assert state.audit_log.read_text().count("\n") == 2
    assert state.audit_log.stat().st_mode & 0o077 == 0


def test_a_line_that_was_cut_short_hides_no_other(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    line = add_line(state, NOW, "root", "restart", "a", "a is restarted")
    with state.audit_log.open("a") as log:
        log.write('{"time": "2026-\n[]\n{"time": "never", "who": "", "what": "", "verb": "", "name": ""}\n')
    assert list(lines_of(state)) == [line]


def test_who_asks_is_what_the_kernel_says() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_name(one) == own_name() == getpass.getuser()
