"""One page of everything that was run: every picture beside the paper's values and the verdicts on ours.

It is written as Markdown, which is rendered to HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt

from simulation.experiments.comparison import Verdict
from simulation.experiments.result import DICTIONARY_FILE, SUMMARY_FILE
from simulation.experiments.study import Study

PAGE: Final = "index.html"
MARKDOWN: Final = "report.md"
_TITLE: Final = "Experiments beside the papers"
_HEADINGS: Final = ("statement", "paper", "ours", "agrees if", "verdict", "why")
_NOTHING_TOLD: Final = "No paper states a number of what this shows."
_ABOUT: Final = (
    "Every number or sentence of a paper stands beside ours and ends with *agrees*, *DIFFERS* or *no number*. In "
    "brackets is what a verdict must be read with: *quick* is a small version of a study, *stand-ins* are synthetic "
    "workloads in place of logs that are not at hand."
)
_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; color: #222 }
table { border-collapse: collapse; font-size: 13px } th, td { text-align: left; padding: 2px 8px; vertical-align: top }
th { border-bottom: 1px solid #888 } tr:nth-child(even) td { background: #f6f6f6 } td strong { color: #b04000 }
img { float: left; width: 720px; max-width: 100%; margin: 0 1.5em 1em 0 } h2, p:has(img) { clear: both }
"""

Summary = Mapping[str, Any]


def write_report(out: Path, experiments: Sequence[Study], not_run: Mapping[str, str] | None = None) -> Path:
    """Write `index.html` and `report.md` about all results in a directory.

    Args:
        out: directory with a folder for each experiment that was run.
        experiments: in the order of the page; those without results are left out.
        not_run: why experiments could not be run, by name.

    Returns:
        The page.
    """
    found = []
    for experiment in experiments:
        path = out / experiment.name / SUMMARY_FILE
        if path.is_file():
            found.append((experiment, json.loads(path.read_text("utf-8"))))
    failures = dict(not_run or {})
    text = _markdown(found, failures)
    (out / MARKDOWN).write_text(text, encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    head = f"<meta charset='utf-8'><title>{_TITLE}</title><style>{_STYLE}</style>"
    page = f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>\n"
    (out / PAGE).write_text(page, encoding="utf-8")
    return out / PAGE


def overview(found: Sequence[tuple[Study, Summary]]) -> list[tuple[str, ...]]:
    """A row for each experiment: its name, how many rows end with each verdict, and its time."""
    return [
        (
            experiment.name,
            *(str(summary["verdicts"][verdict]) for verdict in Verdict),
            f"{summary['wall_s']:.0f} s" + (" (quick)" if summary["quick"] else ""),
        )
        for experiment, summary in found
    ]


def _parts(summary: Summary) -> list[tuple[str | None, list[Mapping[str, Any]]]]:
    pictures = [name for name in summary["files"] if name.endswith(".png")]
    parts: list[tuple[str | None, list[Mapping[str, Any]]]] = [
        (name, [row for row in summary["comparison"] if row["picture"] == name]) for name in pictures
    ]
    rest = [row for row in summary["comparison"] if row["picture"] not in pictures]
    return [*parts, (None, rest)] if rest else parts


def _facts(summary: Summary) -> str:
    told = f"seed {summary['seed']}, {summary['wall_s']:.0f} s"
    mode = summary["parameters"].get("mode")
    return ", ".join([*(["small version (quick)"] if summary["quick"] else []), *([mode] if mode else []), told])


def _notes(summary: Summary) -> list[str]:
    return [*summary.get("notes", []), *([summary["note"]] if "note" in summary else [])]


def _paper(row: Mapping[str, Any]) -> str:
    return row["paper"] if isinstance(row["paper"], str) else f"{row['paper']} {row['unit']}".strip()


def _markdown(found: Sequence[tuple[Study, Summary]], not_run: Mapping[str, str]) -> str:
    lines = [f"# {_TITLE}", "", _ABOUT, ""]
    lines += _markdown_table(("experiment", *Verdict, "time"), overview(found))
    lines += [line for name, reason in not_run.items() for line in ("", f"**{name} was not run:** {reason}")]
    for experiment, summary in found:
        lines += ["", f"## {experiment.name}: {experiment.about}", "", f"{_facts(summary)}.", ""]
        lines += [line for note in _notes(summary) for line in (note, "")]
        for picture, rows in _parts(summary):
            if picture is not None:
                lines += [f"![{picture}]({experiment.name}/{picture})", ""]
            lines += _markdown_rows(rows) if rows else [_NOTHING_TOLD]
            lines.append("")
        lines.append(f"Tables: {', '.join(f'[{name}]({experiment.name}/{name})' for name in _tables(summary))}")
    return "\n".join(lines) + "\n"


def _markdown_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return _markdown_table(
        _HEADINGS,
        [
            (
                row["what"],
                _paper(row),
                f"{row['ours']:.2f} {row['unit']}".strip(),
                row["agrees_if"],
                f"**{row['verdict']}**" if row["verdict"].startswith(Verdict.DIFFERS) else row["verdict"],
                row["why"],
            )
            for row in rows
        ],
    )


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, ["---"] * len(headings), *rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _tables(summary: Summary) -> list[str]:
    return [*(name for name in summary["files"] if name.endswith(".csv")), DICTIONARY_FILE, SUMMARY_FILE]
