"""The headline of each paper: the smallest part of its experiment that gives the numbers of README's table.

Cases, seeds and definitions are those of the whole experiments, so the numbers are theirs too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.experiments.angara import study as angara
from simulation.experiments.angara.runs import BASE_NO_WRAP, MSS
from simulation.experiments.angara.study import gains_over
from simulation.experiments.bluegene import study as bluegene
from simulation.experiments.bluegene.runs import MULTI_TOROIDAL, PLAIN
from simulation.experiments.bluegene.statements import headline, percent
from simulation.experiments.comparison import Comparison, Verdict
from simulation.experiments.figures import Figure
from simulation.experiments.koala import study as malleable
from simulation.experiments.koala.study import PWA, of_pwa
from simulation.experiments.market import rounds, workloads
from simulation.experiments.market.rounds import EXP1, of_request, prices_of
from simulation.experiments.market.statements import medians, prices_and_sales
from simulation.experiments.market.workloads import TABLE3_PART
from simulation.experiments.study import Found, Run, Study

Compare = Callable[[Found], Sequence[Comparison]]


def _part_of(
    study: Study, about: str, part: str, comparisons: Compare, figures: Mapping[str, Figure], *,
    wanted: Callable[[Any], bool] = lambda _: True, tables: Iterable[str],
) -> Study:  # fmt: skip
    """Take some cases of one part of a study, the tables that its pictures need, and some comparisons."""

    def cases(run: Run) -> Mapping[str, Sequence[Any]]:
        whole = study.cases(run)
        assert isinstance(whole, Mapping)
        return {part: [case for case in whole[part] if wanted(case)]}

    assert isinstance(study.tables, Mapping)
    return replace(
        study,
        about=about,
        cases=cases,
        tables={name: study.tables[name] for name in tables},
        figures=figures,
        comparisons=comparisons,
        shown=(),
        findings={},
        notes=(),
    )


def _of_bluegene(found: Found) -> Sequence[Comparison]:
    return [
        headline("CTC", machine, percent(found["figure7"], machine=machine)[1.0]) for machine in (MULTI_TOROIDAL, PLAIN)
    ]


def _of_angara(found: Found) -> Sequence[Comparison]:
    utilisation, _, wait = gains_over(BASE_NO_WRAP.label, found.answers["main"])
    return [utilisation, wait]


def _of_malleable(found: Found) -> Sequence[Comparison]:
    return of_pwa([result.row for result in found.answers["main"]])[1:2]


def _of_rounds(found: Found) -> Sequence[Comparison]:
    rows = of_request(EXP1.label, prices_of(found["table4"], EXP1.label))
    return [row for row in rows if "price falls from" in row.what]


def _of_workloads(found: Found) -> Sequence[Comparison]:
    requests = found["requests"]
    return prices_and_sales(requests, medians(requests, found["offers"]), found["figure9a"])[:1]


HEADLINES: Final = (
    _part_of(
        bluegene.EXPERIMENTS[0],
        "Blue Gene/L and plain torus, fat torus jobs, full load: utilisation",
        "figure7",
        _of_bluegene,
        {"figure7.png": replace(bluegene.EXPERIMENTS[0].figures["figure7.png"], size=(7, 5))},
        wanted=lambda case: (case.log, case.fat_probability, case.torus_probability) == ("CTC", 1.0, 1.0),
        tables=("figure7",),
    ),
    _part_of(
        angara.EXPERIMENTS[0],
        "Angara, MSS method against `base`: utilisation, waiting time",
        "main",
        _of_angara,
        {name: angara.EXPERIMENTS[0].figures[name] for name in ("figure5.png", "figure6.png")},
        wanted=lambda case: case.variant in (BASE_NO_WRAP, MSS),
        tables=("figure5", "figure6"),
    ),
    _part_of(
        malleable.EXPERIMENTS[0],
        "KOALA under PWA, EGS with malleable jobs only against the worst of the others: response time",
        "main",
        _of_malleable,
        {"figure8.png": malleable.EXPERIMENTS[0].figures["figure8.png"]},
        wanted=lambda case: case.workload in PWA,
        tables=[f"figure8{letter}" for letter in "abcdef"],
    ),
    _part_of(
        rounds.EXPERIMENTS[0],
        "RAMP, Table 4, price fall from one to ten rounds",
        EXP1.label,
        _of_rounds,
        rounds.EXPERIMENTS[0].figures,
        tables=("auctions", "table4", "series"),
    ),
    _part_of(
        workloads.EXPERIMENTS[0],
        "RAMP, median of last offers over asked price",
        TABLE3_PART,
        _of_workloads,
        {"figure8a.png": workloads.EXPERIMENTS[0].figures["figure8a.png"]},
        tables=("requests", "offers", "figure8a", "figure9a"),
    ),
)


def as_row(about: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A headline's line of the table: what it is of, the paper's numbers, ours, and agrees if all of them do.

    Args:
        about: the headline.
        rows: of its comparison, as in `summary.json`.
    """
    verdicts = [row["verdict"] for row in rows]
    verdict = next((one for one in verdicts if one.startswith(Verdict.DIFFERS)), verdicts[0])
    paper = [row["paper"] if isinstance(row["paper"], str) else f"{row['paper']:g} {row['unit']}" for row in rows]
    here = [f"{row['ours']:.1f} {row['unit']}" for row in rows]
    return about, *(", ".join(map(str.strip, cells)) for cells in (paper, here)), verdict
