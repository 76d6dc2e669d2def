"""A package as a site outside the project would bring it: a plug-in and a price strategy that misbehave when told to.

What they shall do is read from a file before every call, so a test can break and mend them while they run.
"""

import json
from pathlib import Path

from tests.packages import install

NAME = "moody-site"
MODULE = "moody_site"

SOURCE = '''
"""A machine that keeps its book properly, and does what the file of moods says."""

import json, mmap, os, subprocess, sys, time
from dataclasses import replace
from pathlib import Path

from ramp.errors import ConfigurationError, PluginError
from simulation.resource.steady import SteadyMachine

MOODS = Path(os.environ["MOODY_MOODS"])
KEPT = []

def note(text):
    with MOODS.with_suffix(".notes").open("a") as notes:
        notes.write(text + "\\n")

def mood(call):
    moods = json.loads(MOODS.read_text())
    return moods.get(call, "")

def act(how, resource=""):
    """What happens instead of an answer, or what is answered instead of the right one."""
    if how == "raise":
        raise ValueError("the parser of sinfo broke")
    if how == "transient":
        raise PluginError("moody", "the batch system is away", transient=True)
    if how == "lasting":
        raise PluginError("moody", "that partition is gone")
    if how == "unspeakable":
        class Unspeakable(Exception):
            def __str__(self):
                raise RuntimeError("no words")
        raise Unspeakable
    if how == "hang":
        time.sleep(3600)
    if how.startswith("slow "):
        time.sleep(float(how.split()[1]))
    if how.startswith("gate "):  # until a file is there; that it waits is noted
        note(f"waits {resource}")
        while not os.path.exists(how.removeprefix("gate ")):
            time.sleep(0.05)
    if how == "grow":
        kept = []
        while True:
            kept.append(bytearray(2**20))
    if how == "grow and keep":
        while True:
            KEPT.append(bytearray(2**20))
    if how == "share":  # memory that is no private data of any process
        while True:
            KEPT.append(mmap.mmap(-1, 2**24))
            KEPT[-1].write(b"x" * 2**24)
            time.sleep(0.01)
    if how == "family":  # each of its processes stays below the limit
        for _ in range(8):
            if os.fork() == 0:
                KEPT.append(bytearray(b"x" * (40 * 2**20)))
                time.sleep(3600)
        time.sleep(3600)
    if how == "escape":  # a process in a session of its own survives, and the warden does not
        escaping, escaped = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(escaped, b"x")
                time.sleep(3600)
            os._exit(0)
        os.read(escaping, 1)
        os.kill(os.getppid(), 9)
        time.sleep(3600)
    if how == "exit":
        sys.exit(3)
    if how == "die":
        os._exit(7)
    if how == "print":
        print("{}" * 5000)
        print("a line of garbage\\x1b[2J", flush=True)
        sys.stderr.write("and one on the other stream\\n" * 100)
    if how == "scribble":
        for number in map(int, os.listdir("/proc/self/fd")):  # the channel has the number that it has in the agent
            if number > 2:
                try:
                    os.write(number, b"\\xff" * 64)
                except OSError:
                    pass
    if how == "fork":
        children = [subprocess.Popen(["sleep", "3600"], start_new_session=True) for _ in range(2)]
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(3600)
            os._exit(0)
        note("children " + " ".join(str(child.pid) for child in children))
        time.sleep(3600)
    if how == "stubborn":
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)

class Moody(SteadyMachine):
    def __init__(self, settings):
        note(f"opened {os.getpid()}")
        act(mood("open"))
        if set(settings.options) - {"load"}:
            raise ConfigurationError("is unknown; there is load", key=sorted(settings.options)[0])
        super().__init__(settings.resource, settings.cores, 0.0, settings.state_dir)
        self.source, self._named = "live", settings.resource

    def _do(self, call, right, spoil):
        how = mood(call)
        if how.startswith("after "):
            right()
            act(how.removeprefix("after "))
        act(how, self._named)
        answer = right()
        if how == "none":
            return None
        if how == "text":
            return "yes"
        if how == "huge":
            return spoil(answer, "x" * 100_000_000)
        if how == "backwards":
            return replace(answer, end=answer.start)
        if how == "few":
            return replace(answer, cores=1)
        if how == "nul":
            return spoil(answer, "\\0")
        return answer

    def quote(self, unit, now):
        right = lambda: super(Moody, self).quote(unit, now)
        return self._do("quote", right, lambda slot, text: replace(slot, placement=text))

    def hold(self, key, unit, slot, until, now):
        return self._do("hold", lambda: super(Moody, self).hold(key, unit, slot, until, now), renamed)

    def confirm(self, key, now):
        return self._do("confirm", lambda: super(Moody, self).confirm(key, now), renamed)

    def reservation(self, key, now):
        return self._do("reservation", lambda: super(Moody, self).reservation(key, now), renamed)

    def release(self, key, now):
        return self._do("release", lambda: super(Moody, self).release(key, now), None)

    def snapshot(self, now, horizon):
        right = lambda: super(Moody, self).snapshot(now, horizon)
        return self._do("snapshot", right, lambda picture, text: {**picture, "user": text})

def renamed(held, text):
    return replace(held, reservation_id=text)

def price(question):
    how = mood("price")
    act(how)
    if how == "word":
        return "cheap"
    if how == "negative":
        return -7
    return question.minimum_price
'''


ENTRIES = f"""
[ramp.resource_plugins]
moody = {MODULE}:Moody
absent = moody_absent:Moody
[ramp.pricing]
moody = {MODULE}:price
"""


class MoodyPackage:
    """The package, installed in a folder that goes onto PYTHONPATH.

    Args:
        folder: where; made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        install(folder, NAME, ENTRIES)
        (folder / f"{MODULE}.py").write_text(SOURCE, "utf-8")
        self._moods = folder / "moods.json"
        self.be()

    @property
    def environment(self) -> dict[str, str]:
        """What makes it found, and its moods."""
        return {"PYTHONPATH": str(self.folder), "MOODY_MOODS": str(self._moods)}

    def be(self, **moods: str) -> None:
        """From now on, do this at those calls, and what is right at all others."""
        whole = self._moods.with_suffix(".new")
        whole.write_text(json.dumps({call: how for call, how in moods.items() if how}), "utf-8")
        whole.replace(self._moods)

    def notes(self) -> list[list[str]]:
        """What the guests have noted: words of each line."""
        path = self._moods.with_suffix(".notes")
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []
