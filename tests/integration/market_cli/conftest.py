"""The command line against a real, tiny market: three steady machines on the embedded XMPP server."""

import json

import pytest

from ramp.cli.main import main
from tests.integration.market_cli.tiny_market import CONFIG
from tests.tiny_market import launched


@pytest.fixture(scope="package")
def swarm():
    """A market that runs for all tests here: its state folder."""
    with launched(CONFIG) as state:
        yield state


@pytest.fixture
def ramp(swarm, capsys, monkeypatch):
    """Runs a verb in this market: exit code, standard output (parsed with --json), standard error."""
    monkeypatch.setenv("RAMP_STATE", str(swarm))

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, json.loads(said.out) if "--json" in arguments and said.out else said.out, said.err

    return run


@pytest.fixture
def request_file(tmp_path, capsys):
    def write(cores=8, price=70, name="job.xml", **more):
        path = tmp_path / name
        options = {"start": "+10min", "end": "+12h", "walltime": "1h", **more}
        given = [text for key, value in options.items() for text in (f"--{key.replace('_', '-')}", value)]
        assert main(["rfq", "new", "--cores", str(cores), "--price", str(price), *given, "-o", str(path)]) == 0
        capsys.readouterr()
        return path

    return write
