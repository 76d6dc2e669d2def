"""Write docs/design/state-machines.md: one diagram per table of the protocol."""

from pathlib import Path

from ramp.protocol.transition_tables import TABLES

DOCUMENT = Path(__file__).parents[2] / "docs" / "design" / "state-machines.md"
HEAD = """# State machines

The diagrams come from the tables in `ramp/protocol/transition_tables.py`. To change this page, run
`python tests/architecture/update_diagrams.py`.
"""


def page() -> str:
    """Return the text of the page."""
    sections = [f"\n## {_title(name)}\n\n```mermaid\n{mermaid(name)}\n```\n" for name in sorted(TABLES)]
    return HEAD + "".join(sections)


def mermaid(name: str) -> str:
    """Draw a table as a Mermaid state diagram, parallel edges merged, in a fixed order."""
    edges: dict[tuple[str, str], list[str]] = {}
    order = {state: index for index, state in enumerate(type(next(iter(TABLES[name])).state))}
    moves = sorted(TABLES[name], key=lambda move: (order[move.state], order[move.next_state], move.stimulus))
    for move in moves:
        edges.setdefault((move.state.value, move.next_state.value), []).append(move.stimulus)
    lines = ["stateDiagram-v2"]
    lines += [f"    {source} --> {target}: {' / '.join(labels)}" for (source, target), labels in edges.items()]
    return "\n".join(lines)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


if __name__ == "__main__":
    DOCUMENT.write_text(page(), "utf-8")
