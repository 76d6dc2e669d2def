"""`ramp keys` and `ramp config`."""

import json
from dataclasses import replace

import pytest

from ramp.cli.main import main
from ramp.cli.verbs.launch import up_text
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.runtime.configuration.file import load_config
from ramp.shipped_files import find_config, shipped_directory, swarms_dir


@pytest.fixture
def keys(tmp_path, capsys):
    """Runs `ramp keys` on one store: exit code, and what --json printed."""

    def run(*arguments):
        code = main(["keys", *arguments, "--state-dir", str(tmp_path), "--json"])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else said.err

    return run


def test_keys_from_init_to_revocation(keys):
    code, made = keys("init", "--market", "Test market")
    assert (code, made["created"]) == (0, True)
    assert "Test market" in made["subject"]
    assert keys("init")[1] == {**made, "created": False}
    names = ["carol@localhost", "dave@localhost"]
    assert [entry["name"] for entry in keys("issue", *names, "--role", "user")[1]] == names
    assert [entry["name"] for entry in keys("show")[1]] == names
    (before,) = keys("show", "carol")[1]
    assert (before["state"], before["current"], before["role"]) == ("valid", True, "user")
    renewed = keys("renew", "carol", "--days", "10")[1]
    assert [entry["current"] for entry in renewed if entry["serial"] == before["serial"]] == [False]
    assert {line["name"] for line in keys("revoke", "carol", "--reason", "lost")[1]} == {"carol@localhost"}
    assert {entry["state"] for entry in keys("show", "carol")[1]} == {"revoked"}
    code, said = keys("renew", "carol")
    assert code == 2
    assert "new key" in said
    (fresh,) = [entry for entry in keys("renew", "carol", "--new-key")[1] if entry["current"]]
    assert (fresh["state"], fresh["role"]) == ("valid", "user")


def test_the_new_certificate_is_shown_first_and_the_old_one_is_called_replaced(keys, tmp_path, ramp):
    keys("init")
    (old,) = keys("issue", "carol@localhost", "--role", "user")[1]
    first, _, shown = ramp("keys", "renew", "carol", "--state-dir", str(tmp_path)).out.partition("\n")
    assert first == "carol@localhost has a new certificate"
    now, before = shown.strip().split("\n\n")
    assert old["serial"] in before
    assert old["serial"] not in now
    stated = [next(line.split() for line in part.splitlines() if line.startswith("State")) for part in (now, before)]
    assert stated == [["State", "valid"], ["State", "replaced"]]
    assert [entry["current"] for entry in keys("show", "carol")[1]] == [True, False]


def test_keys_in_each_role(keys, tmp_path, ramp):
    keys("init")
    for role in ("user", "resource", "bank", "directory", "keeper"):
        (issued,) = keys("issue", f"{role}1@localhost", "--role", role)[1]
        assert (issued["name"], issued["role"]) == (f"{role}1@localhost", role)
    rows = [line.split() for line in ramp("keys", "show", "--state-dir", str(tmp_path)).out.splitlines()]
    assert rows[0][:2] == ["Name", "Role"]
    assert ["keeper1@localhost", "keeper"] in [row[:2] for row in rows]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("issue", "carol@localhost", "--role", "user"), "ramp keys init"),
        (("issue", "carol", "--role", "user"), "such as carol@localhost"),
        (("issue", "carol@localhost"), "--role"),
        (("issue", "carol@localhost", "--role", "cashier"), "'cashier' is not one of"),
        (("show", "nobody"), "no certificate was issued for 'nobody'"),
        (("revoke", "nobody"), "no certificate was issued for 'nobody'"),
        (("issue", "carol@localhost", "--role", "user", "--days", "0"), "0 is not in the range"),
    ],
)
def test_keys_bad_input(keys, arguments, told):
    code, said = keys(*arguments)
    assert code == 2
    assert told in said


def test_shipped_configurations_are_right(ramp):
    assert {path.stem for path in swarms_dir().glob("*.toml")} == {"quickstart", "table2", "torus", "real"}
    found = json.loads(ramp("config", "--check", "quickstart", "table2", "torus", "--json").out)
    assert all(each["valid"] for each in found)
    assert [each["resources"] for each in found] == [24, 20, 5]  # Table 2 has twenty


def test_the_first_market_is_table_2_and_four_live_tori():
    quickstart, table2, torus = (load_config(find_config(name)) for name in ("quickstart", "table2", "torus"))
    assert tuple(replace(each, launching=None) for each in quickstart.resources[:20]) == table2.resources
    assert not any(each.terms.torus for each in table2.resources)
    tori = quickstart.resources[20:]
    assert all(each.terms.torus and each.plugin == "modelled" for each in (*tori, *torus.resources))
    # the machines that the roadmap names, at the prices of the market of tori
    assert [each.options["machine"] for each in tori] == ["bgl", "torus3d", "angara-4x4x2", "angara-desmos"]
    prices = {each.name: each.prices for each in torus.resources}
    assert {each.name: each.prices for each in tori} == {each.name: prices[each.name] for each in tori}
    assert quickstart.resources_per_process == 20, "the tori start beside the others, in a process of their own"


def test_config_check_tells_every_finding(tmp_path, ramp):
    path = tmp_path / "bad.toml"
    path.write_text('[market]\ndomian = "x"\n[[users]]\nname = "Alice"\n')
    said = ramp("config", "--check", str(path), code=2).err
    for part in (str(path), "did you mean 'domain'?", "'Alice'", "[[resources]]"):
        assert part in said
    printed = ramp("config", "--check", str(path), "quickstart", "--json", code=2)
    assert [entry["valid"] for entry in json.loads(printed.out)] == [False, True]


def test_a_configuration_that_is_nowhere(ramp):
    said = ramp("config", "--check", "quickstrat", code=2).err
    assert "expected a file or one of " in said
    assert "quickstart" in said.partition("expected a file or one of ")[2]


def test_config_show_has_the_prices_of_table_2(ramp, tmp_path):
    shown = json.loads(ramp("config", "--json", "--state-dir", str(tmp_path)).out)
    prices = {entry["name"]: (entry["start_price"], entry["minimum_price"]) for entry in shown["resources"]}
    assert prices["atlas1"] == (33, 25)  # Table 2 of the paper
    assert prices["thunder2"] == (75, 60)
    text = ramp("config", "quickstart").out
    assert "credits per core-hour" in text
    assert "hold_time_s 120" in text


def test_config_check_tells_of_machines_that_nobody_has(tmp_path, ramp):
    text = (shipped_directory("agents_config/swarms") / "torus.toml").read_text("utf-8")
    path = tmp_path / "torus.toml"
    path.write_text(text + '\n[machines.never]\ncores = 5\nplugin = "steady"\n')
    assert "warning: no resource has the machine 'never'" in ramp("config", "--check", str(path)).err
    printed = ramp("config", "--check", str(path), "torus", "--json")
    assert [each["unused_machines"] for each in json.loads(printed.out)] == [["never"], []]


def test_verifying_a_request_names_the_verb_that_does_it(ramp):
    example = shipped_directory("schemas") / "examples" / "valid" / "rfq-smallest.xml"
    told = "is a request for quotation, which has no signature; check it with `ramp rfq validate`"
    assert told in ramp("verify", str(example), code=2).err


def test_a_market_of_which_not_all_is_up_does_not_say_that_it_is(capsys):
    server = ServerStatus("external", "192.0.2.1", 5222, None)
    agents = (
        AgentStatus("alice", "user", 2, "ready", "", 0, "", is_up=True),
        AgentStatus("curie1", "resource", 3, "starting", "", 0, ""),
    )
    found = SwarmStatus("up", "2026-12-01T10:00:00Z", 1, "swarm.toml", server, agents)
    assert up_text(found).startswith("The market is degraded: curie1 (resource) is starting; 1 resource, 1 user")
    assert up_text(replace(found, agents=agents[:1])).startswith("The market is up: 0 resources, 1 user")


def test_a_number_that_is_not_whole_is_told_in_words(ramp):
    printed = ramp("rfq", "new", "--cores", "4", "--walltime", "1h", "--price", "3.5", code=2)
    assert "'3.5' is not a valid whole number" in printed.err
