"""Every script under scripts/ is played and compared with its transcript (see conftest for the language)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, scripts: Any, request: pytest.FixtureRequest) -> None:
    played = scripts.play(path)
    if request.config.getoption("--rewrite", default=False):
        scripts.write(path, played)
        return
    for expected, happened in zip(scripts.expected(path), played, strict=True):
        assert happened.expected == expected.expected, "\n".join(expected.commands)


def test_there_are_scripts() -> None:
    assert len(list(FOLDER.glob("*.txt"))) >= 30
