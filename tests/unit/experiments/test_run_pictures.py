"""The pictures of one run."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from click.testing import CliRunner

from ramp.errors import ConfigurationError
from simulation.cli.simulate import simulate
from simulation.plots import one_run
from tests.queue_runs import write_log

pytestmark = pytest.mark.loops


def jobs_of_a_minute(path: Path, count: int) -> Path:
    return write_log(path, *((60 * number, 60, 16, 60) for number in range(1, count + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [10, one_run.BARS_DRAWN_MAX + 100])
def test_few_and_many_jobs_are_drawn_over_the_half_that_they_held(jobs: int, tmp_path: Path) -> None:
    """Half of a machine, always busy: half of the field is of the jobs' colour, half is white."""
    log = jobs_of_a_minute(tmp_path / "log.swf", jobs)
    gantt, timeline = tmp_path / "gantt.png", tmp_path / "timeline.png"
    arguments = ["--machine", "flat:32", "--log", str(log), "--scheduler", "easy", "--gantt", str(gantt)]
    result = CliRunner().invoke(simulate, [*arguments, "--timeline", str(timeline)], catch_exceptions=False)
    assert result.exit_code == 0
    pixels = matplotlib.image.imread(gantt)[..., :3]
    middle = pixels[:, pixels.shape[1] // 2]
    busy = (middle < 0.9).all(axis=1)
    assert busy[int(len(middle) * 0.6) : int(len(middle) * 0.85)].mean() > 0.9
    assert not busy[int(len(middle) * 0.1) : int(len(middle) * 0.4)].any()
    assert timeline.read_bytes().startswith(b"\x89PNG")


def test_points_take_the_share_that_rectangles_cover() -> None:
    """A rectangle from (0.5, 0.25) to (2, 1.5): worked out by hand."""
    target = np.zeros((3, 3))
    column = lambda value: np.array([value])  # noqa: E731
    one_run._add_areas(target, column(0.5), column(2.0), column(0.25), column(1.5), column(2.0))
    assert target.tolist() == [[0.75, 1.5, 0], [0.5, 1.0, 0], [0, 0, 0]]


def test_sizes_on_the_scale() -> None:
    assert one_run._sizes_to_name(1, 306) == [1, 2, 8, 32, 128, 306]
    assert one_run._sizes_to_name(8, 8) == [8]


def test_pictures_are_checked_before_the_simulation(tmp_path: Path) -> None:
    log = jobs_of_a_minute(tmp_path / "log.swf", 2)
    arguments = ["--machine", "flat:32", "--log", str(log), "--scheduler", "easy"]
    for options, words in (
        (["--gantt", str(tmp_path / "none" / "g.png")], "gantt: cannot be written: there is no such folder"),
        (["--gantt", str(log)], "gantt: is the log that is read"),
        (["--gantt", str(tmp_path / "a"), "--timeline", str(tmp_path / "a")], "timeline: is also the file of --gantt"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            CliRunner().invoke(simulate, [*arguments, *options], catch_exceptions=False)
