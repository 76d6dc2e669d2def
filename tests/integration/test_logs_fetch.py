"""`ramp logs` against a local HTTP server: ranges, broken transfers, wrong files."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from ramp.errors import WorkloadError
from simulation.cli import logs as cli_logs
from simulation.workload.fetch import ATTEMPTS, fetch_log
from simulation.workload.logs import KnownLog, find_log, known_logs

CONTENT = b"; Version: 2.2\n" + b"1 0 0 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n" * 20_000
PACKED = gzip.compress(CONTENT, compresslevel=0)  # stored, so that it is long enough to be cut
LOG = KnownLog(
    name="Test-2026-1",
    machine="Test",
    cores=4,
    jobs=20_000,
    start="2026-01",
    months=1,
    address="http://archive.invalid/Test-2026-1.swf.gz",
    sha256=hashlib.sha256(PACKED).hexdigest(),
    git_blob=hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest(),
)


@dataclass
class Archive:
    """What the server does: files by path, whether it knows ranges, after how many bytes it hangs up."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cut_after: int | None = None
    asked: list[str | None] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def archive() -> Iterator[Archive]:
    state = Archive(files={f"/{LOG.file_name}": PACKED})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            data = state.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and state.ranges else 0
            if start and start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            end = len(data) if state.cut_after is None else start + state.cut_after
            self.wfile.write(data[start:end])

        def log_message(self, *_args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_log_arrives_whole_with_progress(archive: Archive, tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    path = fetch_log(LOG, tmp_path / "new", source=archive.address, progress=lambda *step: steps.append(step))
    assert path.read_bytes() == PACKED
    assert steps[-1] == (len(PACKED), len(PACKED))
    assert [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")] == [LOG.file_name]


def test_a_copy_that_is_there_is_not_fetched_again(archive: Archive, tmp_path: Path) -> None:
    fetch_log(LOG, tmp_path, source=archive.address)
    fetch_log(LOG, tmp_path, source=archive.address)
    assert len(archive.asked) == 1


def test_a_cut_transfer_goes_on_where_it_ended(archive: Archive, tmp_path: Path) -> None:
    archive.cut_after = len(PACKED) // 3
    assert fetch_log(LOG, tmp_path, source=archive.address).read_bytes() == PACKED
    third = len(PACKED) // 3
    assert (
        archive.asked == [None, f"bytes={third}-", f"bytes={2 * third}-", f"bytes={3 * third}-"][: len(archive.asked)]
    )
    assert len(archive.asked) >= 3


def test_a_transfer_that_keeps_breaking_is_taken_up_by_the_next_call(archive: Archive, tmp_path: Path) -> None:
    archive.cut_after = len(PACKED) // 8
    with pytest.raises(WorkloadError, match="repeat the command to continue"):
        fetch_log(LOG, tmp_path, source=archive.address)
    assert not (tmp_path / LOG.file_name).exists()
    have = (tmp_path / f"{LOG.file_name}.part").stat().st_size
    assert have == ATTEMPTS * archive.cut_after
    archive.cut_after = None
    assert fetch_log(LOG, tmp_path, source=archive.address).read_bytes() == PACKED
    assert archive.asked[-1] == f"bytes={have}-"


@pytest.mark.parametrize(
    ("suffix", "there", "ranges"),
    [
        ("", b"damaged", True),
        (".part", PACKED[:1000], False),
        (".part", PACKED, True),
        (".part", PACKED + b"more", True),
    ],
    ids=["damaged copy", "server without ranges", "complete part", "part too long"],
)
def test_whatever_is_there_the_log_arrives_whole(
    archive: Archive, tmp_path: Path, suffix: str, there: bytes, ranges: bool
) -> None:
    archive.ranges = ranges
    (tmp_path / f"{LOG.file_name}{suffix}").write_bytes(there)
    assert fetch_log(LOG, tmp_path, source=archive.address).read_bytes() == PACKED


def test_a_wrong_file_is_refused_and_removed(archive: Archive, tmp_path: Path) -> None:
    archive.files[f"/{LOG.file_name}"] = PACKED[:-1] + b"?"
    with pytest.raises(WorkloadError, match=r"does not contain the log Test-2026-1: .*removed"):
        fetch_log(LOG, tmp_path, source=archive.address)
    assert [entry for entry in tmp_path.iterdir() if not entry.name.startswith(".")] == []


def test_the_same_log_packed_otherwise_is_accepted(archive: Archive, tmp_path: Path) -> None:
    archive.files["/mirror.gz"] = gzip.compress(CONTENT, compresslevel=9)
    path = fetch_log(LOG, tmp_path, source=f"{archive.address}/mirror.gz")
    assert gzip.decompress(path.read_bytes()) == CONTENT


def test_refusals_name_address_and_reason(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"/nothing/Test-2026-1\.swf\.gz: the server answered 404"):
        fetch_log(LOG, tmp_path, source=f"{archive.address}/nothing")
    with pytest.raises(WorkloadError, match="invalid address"):
        fetch_log(LOG, tmp_path, source="file:///etc/passwd")
    with pytest.raises(WorkloadError, match=r"127\.0\.0\.1:1/"):
        fetch_log(LOG, tmp_path, source="http://127.0.0.1:1")


def test_commands_list_and_fetch(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RAMP_LOGS", "")
    known = {"RICC-2010-2": known_logs()["RICC-2010-2"], LOG.name: LOG}
    monkeypatch.setattr(cli_logs, "known_logs", lambda: known)
    monkeypatch.setattr(cli_logs, "known_log", known.__getitem__)
    runner = CliRunner()
    before = {row["name"]: row for row in json.loads(runner.invoke(cli_logs.logs, ["--json"]).stdout)}
    assert before["RICC-2010-2"]["cores"] == 8192
    assert before[LOG.name]["source"] == "synthetic"
    told = runner.invoke(cli_logs.logs, ["--fetch"], catch_exceptions=False)
    assert told.exit_code == 0
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["RICC-2010-2", LOG.name]
    assert known["RICC-2010-2"].address in told.stdout
    assert not (tmp_path / "cache").exists()
    fetched = runner.invoke(cli_logs.logs, ["--fetch", LOG.name, "--from", archive.address], catch_exceptions=False)
    expected = tmp_path / "cache" / "ramp" / "logs" / LOG.file_name
    assert fetched.exit_code == 0
    assert fetched.stdout == f"{LOG.name}: {expected}\n"
    after = {row["name"]: row for row in json.loads(runner.invoke(cli_logs.logs, ["--json"]).stdout)}
    assert after[LOG.name] == {**before[LOG.name], "found": True, "path": str(expected), "source": "log"}
    told = runner.invoke(cli_logs.logs, ["--fetch"], catch_exceptions=False)
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["RICC-2010-2"]
    table = runner.invoke(cli_logs.logs, [])
    assert str(expected) in table.stdout
    assert [line.split()[0] for line in table.stdout.splitlines() if line.endswith("missing")] == ["RICC-2010-2"]
    assert "`ramp logs --fetch NAME` gets one that is missing" in table.stderr


def test_folders_of_the_variable_come_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    cached = tmp_path / "cache" / "ramp" / "logs"
    for folder in (first, second, cached):
        folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RAMP_LOGS", f"{first}:{second}")
    (cached / "x.swf.gz").touch()
    assert find_log("x") == cached / "x.swf.gz"
    (second / "x.swf").touch()
    assert find_log("x") == second / "x.swf"
    assert find_log(str(second / "x.swf")) == second / "x.swf"
    assert find_log(str(second / "y.swf")) is None
    assert find_log("y") is None
