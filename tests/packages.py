"""Packages of tests, as an installer leaves them."""

from pathlib import Path


def install(folder: Path, name: str, entries: str) -> Path:
    """Put the description of a package with entry points into a folder, whole, by one move; return its path."""
    made = folder.with_name(f"{name}-unpacked")
    made.mkdir(parents=True)
    folder.mkdir(exist_ok=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(entries)
    return made.rename(folder / f"{name}-1.0.dist-info")
