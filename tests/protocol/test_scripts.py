"""Every script under scripts/ is played and compared with its transcript (see conftest for the language)."""

from pathlib import Path

import pytest

from tests.protocol.conftest import play, read_script, write_script

FOLDER = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    script = read_script(path)
    played = play(script)
    if request.config.getoption("--rewrite", default=False):
        write_script(path, played)
        return
    for expected, happened in zip(script, played, strict=True):
        assert happened.expected == expected.expected, "\n".join(expected.commands)


def test_there_are_scripts() -> None:
    assert len(list(FOLDER.glob("*.txt"))) >= 30
