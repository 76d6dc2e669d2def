"""Beyond Aridor and others 2005: what broken cables cost, and what sets of midplanes with gaps gain.

The paper has one sentence on each: its extra cables are redundancy, and should help sets that are not contiguous.

ramp experiment run examples/studies/blue_gene.py:FAILED_LINKS --out results --quick
ramp experiment run examples/studies/blue_gene.py:NONCONTIGUOUS --out results --quick
"""

from simulation.experiments.bluegene.pictures import COLOURS, MACHINE_TITLES
from simulation.experiments.bluegene.runs import (
    FIRST_FIT,
    LOGS,
    MULTI_TOROIDAL,
    PLAIN,
    RUN_COLUMNS,
    Setting,
    run_setting,
)
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Means
from simulation.experiments.study import Comparison, Shown, Study, rows_of

CASE = ("log", "machine", "fat_probability", "torus_probability")
LEAST_POINTS = 1.0  # that the one machine must be better by
SHAPES = {0.0: "slim", 0.5: "half of them fat", 1.0: "fat"}
CONNECTIONS = {0.0: "meshes", 1.0: "tori"}


def workload(panel):
    """A panel's title."""
    _, fat, torus = panel
    return f"{SHAPES[fat]} {CONNECTIONS[torus]}"


def machine_style(line, _):
    """Colours by machines, dashes by logs."""
    log, machine = line
    label = f"{MACHINE_TITLES[machine]}, {log}"
    return {"color": COLOURS[machine], "marker": "o", "linestyle": "-" if log == "CTC" else "--", "label": label}


# -- broken cables -----------------------------------------------------------------------------------------------------


def broken_cables(run):
    """Both machines with more and more cables out of service; starved shapes are refused."""
    shares = run.either((0.0, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.0, 0.01, 0.05, 0.2))
    jobs = run.either(20_000, 2500)
    return [
        Setting(log, machine, fat, torus, 1.0, draw, jobs, broken_share=share, scheduler=FIRST_FIT)
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 1.0)
        for torus in (0.0, 1.0)
        for share in shares
        for draw in run.seeds(3, 2)
    ]


def redundancy(found):
    """What the extra cables save of the work when 1 % of all cables are broken."""
    lost = {
        (row["log"], row["machine"], row["fat_probability"]): 100 * row["refused_work"]
        for row in found["means"]
        if row["torus_probability"] == 1.0 and row["broken_share"] == 0.01
    }
    return [
        Comparison(
            f"{log}, {SHAPES[fat]} tori: 1% of the cables broken, work that drops out, {PLAIN} less {MULTI_TOROIDAL}",
            "increased fault tolerance", lost[log, PLAIN, fat] - lost[log, MULTI_TOROIDAL, fat], "points",
            at_least=LEAST_POINTS, picture="failed_links.png",
            why="the extra cables are in x; a torus in y or z needs every cable of its lines on both machines",
        )
        for log in LOGS
        for fat in (0.0, 1.0)
    ]  # fmt: skip


FAILED_LINKS = Study(
    name="bluegene-failed-links",
    about="what broken cables cost on Blue Gene/L and on a 3D torus",
    cases=broken_cables,
    measure=run_setting,
    tables={
        "failed_links": rows_of(),
        "means": Means(
            table="failed_links",
            by=(*CASE, "broken_share"),
            of=("utilisation_while_arriving", "refused_work"),
            digits=5,
            spread="_sd",
        ),
    },
    columns={
        **RUN_COLUMNS,
        "utilisation_while_arriving_sd": Column("share", "standard deviation over the draws of broken cables"),
        "refused_work_sd": Column("share", "standard deviation over the draws of broken cables"),
    },
    figures={
        "failed_links.png": Figure(
            title="Beyond Aridor and others 2005: broken cables, full load",
            size=(13, 6.6),
            draw=Curves(
                table="means",
                x=Axis("broken_share", "broken cables (% of all)", 100),
                y=(
                    Axis("utilisation_while_arriving", "utilisation (%) by the jobs\nthat still fit somewhere", 100),
                    Axis("refused_work", "work that drops out (%)", 100),
                ),
                panels=("fat_probability", "torus_probability"),
                lines=("log", "machine"),
                style=machine_style,
                title=workload,
            ),
            legend=4,
            note="Jobs whose shape fits nowhere drop out, and those that are left may use the machine better.",
        )
    },
    comparisons=redundancy,
    shown=(Shown("means", f"{' '.join(CASE)} broken_share utilisation_while_arriving refused_work"),),
    parameters={"load": 1.0, "scheduler": "first-fit over the whole queue; jobs run as long as the log says"},
)

# -- sets with gaps ----------------------------------------------------------------------------------------------------


def with_and_without_gaps(run):
    """The same jobs with contiguous sets of midplanes, and with any sets."""
    return [
        Setting(
            log, machine, fat, torus, load, run.seed, run.either(None, 3000), allocator=allocator, scheduler=FIRST_FIT
        )
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 0.5, 1.0)
        for torus in (0.0, 1.0)
        for load in run.either((0.7, 1.0), (1.0,))
        for allocator in ("two-phase", "noncontiguous")
    ]


def gains(found):
    """Utilisation of both allocators in per cent, and what gaps gain in points."""
    of = {}
    for row in found["noncontiguous"]:
        case = tuple(row[column] for column in (*CASE, "load"))
        of.setdefault(case, {})[row["allocator"]] = 100 * row["utilisation"]
    return [
        {
            **dict(zip((*CASE, "load"), case, strict=True)),
            "contiguous_percent": round(both["two-phase"], 2),
            "noncontiguous_percent": round(both["noncontiguous"], 2),
            "gain_points": round(both["noncontiguous"] - both["two-phase"], 2),
        }
        for case, both in of.items()
    ]


def suggested(found):
    """Whether gaps gain more on the machine with the extra cables: tori at full load, mean over the shapes."""
    rows = [row for row in found["gains"] if (row["load"], row["torus_probability"]) == (1.0, 1.0)]
    mean = {
        (row["log"], row["machine"]): row["gain_points"]
        for row in Means(by=("log", "machine"), of=("gain_points",), digits=6).over(rows)
    }
    return [
        Comparison(
            f"{log}: gain of tori by gaps at full load, {MULTI_TOROIDAL} beyond {PLAIN}", "suggests advantages",
            mean[log, MULTI_TOROIDAL] - mean[log, PLAIN], "points", at_least=LEAST_POINTS,
            picture="noncontiguous.png",
            why="gaps gain room, on both machines alike; the cables that are short are those of y and z",
        )
        for log in LOGS
    ]  # fmt: skip


NONCONTIGUOUS = Study(
    name="bluegene-noncontiguous",
    about="what sets of midplanes with gaps gain on Blue Gene/L and a 3D torus",
    cases=with_and_without_gaps,
    measure=run_setting,
    tables={"noncontiguous": rows_of(), "gains": gains},
    columns={
        **RUN_COLUMNS,
        "contiguous_percent": Column("%", "utilisation with sets without gaps"),
        "noncontiguous_percent": Column("%", "utilisation with any sets"),
        "gain_points": Column("points", "the second less the first"),
    },
    figures={
        "noncontiguous.png": Figure(
            title="Beyond Aridor and others 2005: sets of midplanes with gaps, full load",
            size=(11, 4.2),
            draw=Curves(
                table="gains",
                x=Axis("fat_probability", "share of fat jobs"),
                y=(Axis("gain_points", "utilisation gained by gaps (points)"),),
                panels=("torus_probability",),
                lines=("log", "machine"),
                style=machine_style,
                where=lambda row: row["load"] == 1.0,
                title=lambda panel: CONNECTIONS[panel[0]],
                bottom=None,
            ),
            legend=4,
        )
    },
    comparisons=suggested,
    shown=(Shown("gains", f"{' '.join(CASE)} load contiguous_percent noncontiguous_percent gain_points"),),
    parameters={"scheduler": "first-fit over the whole queue; jobs run as long as the log says"},
)
