"""Slurm's Blue Gene options and the request they make."""

import shlex

import pytest

from ramp.errors import ConfigurationError
from simulation.machines.interface import Connection, JobRequest
from simulation.machines.slurm_options import NodeUse, SlurmOptions, parse_options

MESH, TORUS, NAV = Connection.MESH, Connection.TORUS, Connection.NAV


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--geometry=2x2x4", SlurmOptions(geometry=(2, 2, 4))),
        ("-g 2x2x4 -R", SlurmOptions(geometry=(2, 2, 4), rotate=False)),
        ("--geometry 1,4,4 --no-rotate", SlurmOptions(geometry=(1, 4, 4), rotate=False)),
        ("-g 2x2x4 --conn-type=torus", SlurmOptions(geometry=(2, 2, 4), connection=TORUS)),
        ("-g 2x2x4 --conn-type MESH", SlurmOptions(geometry=(2, 2, 4), connection=MESH)),
        ("-g 2x2x4 --comm-type=NAV", SlurmOptions(geometry=(2, 2, 4))),
        ("-g 2x2x4 --conn-type=TMN", SlurmOptions(geometry=(2, 2, 4), connection=(TORUS, MESH, NAV))),
        ("-g 2x2 --conn-type=T", SlurmOptions(geometry=(2, 2), connection=TORUS)),
        ("-N 512 --node-use=VIRTUAL", SlurmOptions(cnodes=512, node_use=NodeUse.VIRTUAL)),
        ("--nodes=2k", SlurmOptions(cnodes=2048)),
        ("--nodes=1m", SlurmOptions(cnodes=1024 * 1024)),
        ("--nodes=512-2k", SlurmOptions(cnodes=512)),
    ],
)
def test_options(line, expected):
    assert parse_options(shlex.split(line)) == expected


def test_the_environment_stands_in_for_what_is_not_said():
    environment = {"SLURM_GEOMETRY": "2x2x2", "SLURM_CONN_TYPE": "TORUS", "SLURM_NO_ROTATE": "", "HOME": "/"}
    assert parse_options([], environment) == SlurmOptions(geometry=(2, 2, 2), rotate=False, connection=TORUS)
    assert parse_options(["--geometry=1x1x4"], environment).geometry == (1, 1, 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--geometry=2x0x4", "--geometry: invalid geometry '2x0x4'"),
        ("--geometry=two", "invalid geometry"),
        ("--geometry", "option --geometry requires argument; expected one of"),
        ("--no-rotate=yes", "option --no-rotate must not have an argument"),
        ("--conn-type=RING", "--conn-type: got 'RING', expected MESH, TORUS, NAV"),
        ("-g 2x2x2 --conn-type=TT", "got 2 connections, expected 3"),
        ("--node-use=BOTH", "must be VIRTUAL or COPROCESSOR"),
        ("--nodes=0", "--nodes: invalid number of nodes '0'"),
        ("--nodes=2k-512", "the maximum is below the minimum"),
        ("--nodes=many", "invalid number of nodes"),
        ("-g 2x2x2 hostname", "unknown option 'hostname'; expected one of --conn-type"),
        ("--reboot", "option --reboot not recognized; expected one of --conn-type"),
    ],
)
def test_what_is_wrong_is_named(line, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_options(shlex.split(line))


def test_requests():
    assert parse_options(["-g", "2x2x4", "-R"]).request(7) == JobRequest(7, 16, (2, 2, 4), False, NAV)
    assert parse_options(["-N", "1025"]).request(7) == JobRequest(7, 3, None, True, NAV)
    assert parse_options(["-N", "1025"]).request(7, cnodes_per_midplane=1024) == JobRequest(7, 2, None, True, NAV)
    assert parse_options(["-N", "1k", "-g", "2x2x2"]).request(7).size == 8
    with pytest.raises(ConfigurationError, match="8192 nodes need 16 midplanes, but the geometry has 8"):
        parse_options(["-N", "8k", "-g", "2x2x2"]).request(7)
    with pytest.raises(ConfigurationError, match="give --geometry or --nodes"):
        parse_options([]).request(7)
