"""Machines from TOML."""

import tomllib

import pytest

from ramp.errors import ConfigurationError, MachineError
from simulation.machine_files import load_machine, machine_directory
from simulation.machines.interface import Connection, JobRequest, NodeState


def test_flat_machines_need_no_file():
    assert load_machine("flat:512").capacity == 512
    for wrong in ("flat:", "flat:0", "flat:-3", "flat:1e3", "flat:²"):
        with pytest.raises(ConfigurationError, match="flat: wants a number"):
            load_machine(wrong)
    assert load_machine("flat:1000000000").capacity == 10**9
    for absurd in ("flat:1000000001", "flat:" + "9" * 5000):
        with pytest.raises(ConfigurationError, match="at most 1000000000 processors"):
            load_machine(absurd)
    with pytest.raises(ConfigurationError, match="no allocator to choose"):
        load_machine("flat:4", allocator="two-phase")


def test_names_and_paths(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text((machine_directory() / "bgl.toml").read_text().replace('name = "bgl"', 'name = "mine"'))
    assert load_machine(path).name == "mine"
    with pytest.raises(ConfigurationError, match=r"unknown machine 'bg': expected one of .*bgl.*flat:N"):
        load_machine("bg")
    with pytest.raises(ConfigurationError, match=r"none\.toml"):
        load_machine(tmp_path / "none.toml")
    path.write_text("name = ")
    with pytest.raises(ConfigurationError, match=r"mine\.toml"):
        load_machine(path)


SMALL = """
name = "small"
kind = "cabled-torus"
prefix = "s"
[[dimension]]
name = "x"
ring = [0, 1, 2]
[[dimension]]
name = "y"
width = 2
cables = ["0.2>1.5", "1.2>0.5"]
"""


def write(tmp_path, text):
    path = tmp_path / "small.toml"
    path.write_text(text)
    return path


def test_two_dimensions_and_failures_stated_in_the_file(tmp_path):
    head, body = SMALL.split("[[dimension]]", 1)
    failures = 'drained = "s00"\ndown = "s[20x21]"\nfailed_links = [{dimension = "x", line = [1], labels = [0]}]\n'
    machine = load_machine(write(tmp_path, head + failures + "[[dimension]]" + body))
    assert machine.extents == (3, 2)
    assert (machine.capacity, machine.free) == (3, 3)
    assert machine.node_state(0) is NodeState.DRAINED
    assert machine.node_state(5) is NodeState.DOWN
    # x-line at y=1 lost cable 0>1: the mesh {0, 1} goes 1>2>0
    placement = machine.place(JobRequest(1, 2, (2, 1), rotate=False))
    assert (placement.members, placement.links) == (((0, 1), (1,)), ((1, 2), ()))
    assert machine.place(JobRequest(1, 2, (2, 1), False, Connection.TORUS)) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', "", "small.toml: name: is missing"),
        (
            'kind = "cabled-torus"',
            'kind = "hypercube"',
            "small.toml:3: kind: unknown kind of machine 'hypercube': expected one of angara-torus, cabled",
        ),
        ('prefix = "s"', "prefix = 5", "small.toml:4: prefix: got 5, expected a text"),
        ('prefix = "s"', 'prefix = "s"\ncolour = "red"', "small.toml:5: colour: unknown: expected one of allocator"),
        ('prefix = "s"', 'prefix = "s"\nallocator = "luck"', "small.toml:5: allocator: unknown allocator 'luck'"),
        (
            'prefix = "s"',
            'prefix = "s"\ndrained = "t00"',
            "drained: host list: invalid name t00; expected 's' and 2 digits",
        ),
        ('prefix = "s"', 'prefix = "s"\ndown = "s55"', r"down: coordinates \[5, 5\] are outside"),
        (
            'prefix = "s"',
            'prefix = "s"\nfailed_links = [{dimension = "z", line = [0], labels = [0]}]',
            "unknown dimension 'z'",
        ),
        ('prefix = "s"', 'prefix = "s"\nfailed_links = [{dimension = "x", line = [0], labels = [3]}]', "no cable 3"),
        (
            "ring = [0, 1, 2]",
            "ring = [0, 2]",
            r"dimension\[0\]: a ring must list each switch from 0 to 1 once, got \[0, 2\]",
        ),
        ("ring = [0, 1, 2]", 'ring = ["a"]', r"small.toml:7: dimension\[0\].ring\[0\]: got 'a', expected a whole"),
        ("ring = [0, 1, 2]", "ring = [0, 1]\nwidth = 2", "`ring` excludes `cables`"),
        ("ring = [0, 1, 2]", "ring = [0, 1]\nspeed = 2", r"small.toml:8: dimension\[0\].speed: unknown"),
        ("width = 2", "width = true", "small.toml:10: dimension.1..width: got true, expected a whole number"),
        ('"1.2>0.5"]', '"1.2>7.5"]', r"dimension\[1\]: cable 1.2>7.5: switch must be .*, got 7"),
        ('"1.2>0.5"]', "5]", r"cables\[1\]: got 5, expected a text"),
        ("ring = [0, 1, 2]", "ring = []", r"dimension\[0\].ring: got \[\], expected a list of switch"),
        ("ring = [0, 1, 2]", "ring = [false, true]", r"2 errors\n  line 7: dimension.0..ring.0.: got"),
        (
            "ring = [0, 1, 2]",
            f"ring = {list(range(37))}",
            r"dimension\[0\]: a line must have at most 36 midplanes, got 37",
        ),
        ('prefix = "s"', 'prefix = "BGL"', "prefix: got 'BGL', expected a prefix of lower-case letters"),
        ('prefix = "s"', 'prefix = ""', "prefix: got '', expected a prefix of"),
        ('prefix = "s"', 'prefix = "s"\ncnodes_per_midplane = 0', "_midplane: got 0, expected a whole number from 1"),
        (
            'prefix = "s"',
            'prefix = "s"\nfailed_links = [{dimension = "x", line = [0.5], labels = [0]}]',
            r"small.toml:5: failed_links\[0\].line\[0\]: got 0.5, expected a whole number",
        ),
        (
            'prefix = "s"',
            'prefix = "s"\nfailed_links = [{dimension = "x", line = [0], labels = ["b"]}]',
            r"failed_links\[0\].labels\[0\]: got 'b', expected a whole number",
        ),
        ('name = "y"', 'name = "x"', "must have different names"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path, old, new, message):
    assert old in SMALL
    with pytest.raises((ConfigurationError, MachineError), match=message):
        load_machine(write(tmp_path, SMALL.replace(old, new, 1)))


def test_a_flat_machine_may_have_a_file(tmp_path):
    path = tmp_path / "flat.toml"
    path.write_text('name = "sp2"\nkind = "flat"\nprocessors = 430\n')
    assert (load_machine(path).name, load_machine(path).capacity) == ("sp2", 430)
    path.write_text('name = "sp2"\nkind = "flat"\nprocessors = 0\n')
    with pytest.raises(ConfigurationError, match=r"flat\.toml:3: processors: got 0, expected a whole number from 1"):
        load_machine(path)
    assert tomllib.loads(path.read_text())["kind"] == "flat"
