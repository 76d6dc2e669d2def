"""What all pictures promise: a title that says what they are, nothing that covers another thing, no impossible bars."""

from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb

from simulation.experiments.angara.pictures import interval
from simulation.experiments.bluegene.pictures import apart_at_full_load
from simulation.plots import style
from simulation.plots.style import footnote, legend_below, new_figure, save_figure


@pytest.mark.parametrize(
    ("quick", "mode", "told"),
    [
        (False, "", "Figure 8 of the paper"),
        (True, "", "Figure 8 of the paper (quick)"),
        (True, "xmpp", "Figure 8 of the paper (xmpp, quick)"),
    ],
)
def test_a_title_says_where_it_is_small_and_how_it_was_run(quick: bool, mode: str, told: str) -> None:
    figure = new_figure(5, 3, "Figure 8 of the paper", quick=quick, mode=mode)
    assert figure.get_suptitle() == told


@pytest.mark.parametrize("width", [5.0, 12.0])
def test_small_print_and_legend_cover_neither_each_other_nor_the_panels(width: float, tmp_path: Path) -> None:
    figure = new_figure(width, 4, "a picture", quick=False)
    panels = figure.subplots(1, 2)
    for axes in panels:
        for name in ("one series", "another series", "the paper"):
            axes.plot([0, 1], [0, 1], label=name)
        axes.set_xlabel("a label below the panel")
    legend_below(figure, *panels, columns=2)
    footnote(figure, "small print that is long enough to need another line, " * 4)
    save_figure(figure, tmp_path / "picture.png")
    renderer = figure.canvas.get_renderer()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one series", "another series", "the paper"]
    (small_print,) = (text for text in figure.texts if text.get_text().startswith("small print"))
    boxes = [artist.get_tightbbox(renderer) for artist in (*panels, legend, small_print)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 for box in boxes)


def test_series_can_be_told_apart_by_colour_blind_eyes() -> None:
    """By the matrices of Machado and others (2009) for people without one kind of cone, and in the paper's black."""
    without_green = ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969))
    without_red = ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052))
    for matrix in (without_green, without_red):
        seen = [
            tuple(sum(weight * part for weight, part in zip(row, to_rgb(colour), strict=True)) for row in matrix)
            for colour in (style.PAPER, style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.SKY)
        ]
        for one, other in combinations(seen, 2):
            assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.15


def test_intervals_that_cannot_be_are_not_drawn() -> None:
    def row(measure: str, mean: float, half: float, seeds: int = 4) -> dict[str, object]:
        return {"measure": measure, "mean": mean, "ci95_half_width": half, "seeds": seeds}

    assert interval(row("utilisation", 60, 5)) == 5
    assert interval(row("utilisation", 60, 45)) is None  # 105 %
    assert interval(row("relative_wait", 600, 45)) == 45
    assert interval(row("relative_wait", 600, 700)) is None  # a wait below 0
    assert interval(row("utilisation", 60, 5, seeds=2)) is None


def test_the_slim_panels_tell_how_far_the_papers_four_curves_lie_apart() -> None:
    """Two further curves, which the paper does not have, do not count."""
    shares = {("bgl", 0.0): 0.80, ("bgl", 0.5): 0.79, ("bgl", 1.0): 0.78, ("torus3d", 1.0): 0.77}
    shares |= {("torus3d", 0.0): 0.10, ("torus3d", 0.5): 0.10}
    rows = [
        {"log": "CTC", "machine": machine, "fat_probability": 0.0, "torus_probability": torus, "load": load,
         "utilisation": share if load == 1.0 else 0.2}
        for (machine, torus), share in shares.items()
        for load in (0.2, 1.0)
    ]  # fmt: skip
    assert apart_at_full_load(rows, "CTC") == pytest.approx(3)
