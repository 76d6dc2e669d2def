"""Setting the clocks that the preloaded library of `stepped_clock.c` shows."""

from pathlib import Path


class SteppedClock:
    """The clocks of all processes that are started from now on.

    Args:
        path: the file that the preloaded library reads.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def set(self, by_s: int, *, suspended_s: int = 0, pid: int | None = None) -> None:
        """Set the wall clock, of all processes or of one that goes its own way from then on.

        Args:
            by_s: how far it is from the true time, in seconds.
            suspended_s: how long the machine has been suspended so far, in seconds.
            pid: of the process.
        """
        path = self._path if pid is None else self._path.with_name(f"{self._path.name}.{pid}")
        whole = path.with_name(f"{path.name}.new")  # never read half-written
        whole.write_text(f"{by_s} {suspended_s}")
        whole.rename(path)

    def join(self, pid: int) -> None:
        """Let a process go with all others again."""
        self._path.with_name(f"{self._path.name}.{pid}").unlink()
