"""Readers of Grid Engine's answers, against recorded outputs of the real commands."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.batch.gridengine import questions
from ramp.model.instant import MINUTE, SECOND, from_iso

OUTPUTS = Path(__file__).parent / "outputs"


def test_queue_instances_with_their_slots_and_states(recorded):
    report = questions.read_queues(recorded("qstat_f_xml"))
    instances = {each.name.removeprefix("all.q@"): each for each in report.instances}
    slots = {host: (each.slots_reserved, each.slots_used, each.slots_total) for host, each in instances.items()}
    assert slots["localhost"] == (0, 24, 64)
    assert slots["sim7"] == (16, 12, 16)  # an advance reservation of 16 slots has begun there; `qstat -f` says 16/12/16
    assert slots["sim8"] == (4, 0, 16)
    assert [host for host, each in instances.items() if each.states] == ["sim5"]
    assert sum(each.slots_total for each in report.instances) == 192  # TOTAL of `qstat -g c`
    assert {each.architecture for each in report.instances} == {"lx-amd64", ""}


def test_jobs_with_limits_and_what_waits(recorded):
    jobs = {job.number: job for job in questions.read_queues(recorded("qstat_r_xml")).jobs}
    assert sorted(jobs) == [22, 23, 24, 25, 26, 27, 28]
    fixed, nolimit, held, toobig = jobs[22], jobs[23], jobs[25], jobs[27]
    assert (fixed.owner, fixed.slots, fixed.run_limit) == ("buyer2", 20, 600 * SECOND)
    assert fixed.started == from_iso("2026-11-21T23:23:23Z")
    assert fixed.submitted is None
    assert nolimit.run_limit is None  # asked for no h_rt
    assert not held.running
    assert (held.state, held.run_limit) == ("hqw", MINUTE)
    assert (toobig.slots, toobig.environment, toobig.slot_range) == (500, "mpi", "500")
    assert toobig.submitted == from_iso("2026-11-21T23:23:24Z")


def test_a_job_on_several_queue_instances_is_one_job(recorded):
    text = recorded("qstat_f_xml")
    element = text[text.index('      <job_list state="running">') : text.index("    </Queue-List>")]
    first = element[: element.index("</job_list>") + len("</job_list>\n")]
    on_two = text.replace("      <slots_total>16</slots_total>\n", "      <slots_total>16</slots_total>\n" + first, 1)
    (job,) = [each for each in questions.read_queues(on_two).jobs if each.number == 22]
    assert job.slots == 40
    assert dict(job.slots_at) == {"all.q@localhost": 20, "all.q@sim1": 20}


def test_reservations(recorded):
    hold, firm = questions.read_reservations(recorded("qrstat_xml"))
    assert (hold.number, hold.name, hold.state) == (62, "ramp_hold1", "w")
    assert (firm.start, firm.end) == (from_iso("2026-11-21T23:23:25Z"), from_iso("2026-11-21T23:53:25Z"))
    (full,) = questions.read_reservations(recorded("qrstat_ar_xml"))
    assert (full.slots_at, full.slots) == ((("all.q@sim7", 16), ("all.q@sim8", 4)), 20)
    assert (full.users, full.account, full.environment) == (("buyer1",), "ramp.k2", "mpi")


def test_jobs_that_were_there_before_qmaster_was_killed_and_started_again(recorded):
    # 8.1.9, with a shorter PATH among the variables: the job's task is called <JATASK:       1.>
    assert questions.read_reservation_of_jobs(recorded("qstat_j_restarted_xml")) == {1: 1}


def test_no_reservations_at_all():
    assert questions.read_reservations("<?xml version='1.0'?>\n<qrstat>\n</qrstat>\n") == ()
    unknown = "<?xml version='1.0'?>\n<qrstat>\n   <ar_unknown>\n      <id>77</id>\n   </ar_unknown>\n</qrstat>\n"
    assert questions.read_reservations(unknown) == ()  # recorded for `qrstat -ar 77 -xml`


def test_settings(recorded):
    assert questions.read_settings(recorded("ssconf"))["default_duration"] == "INFINITY"
    assert questions.read_settings(recorded("pe"))["allocation_rule"] == "$fill_up"
    assert questions.read_settings(recorded("sq"))["slots"] == "16,[localhost=64]"
    # goes over two lines, the first of which ends with a backslash
    assert questions.read_settings(recorded("sconf"))["reporting_params"].split()[-1] == "sharelog=00:00:00"


def test_words_of_qrsub():
    assert questions.granted_number("Your advance reservation 15 has been granted\n") == 15
    assert questions.granted_number("advance_reservation: no suitable queues\n") is None
    assert questions.granted_number("") is None  # a name with a space: exit code 0 and not a word
    assert questions.verified_slots("verification: found possible assignment with 100 slots\n") == 100
    none = 'Your job cannot run in PE "mpi" because it only offers 0 slots\nverification: no suitable queues\n'
    assert questions.verified_slots(none) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600", 600),
        ("1:00:00", 3600),
        ("0:10:00", 600),
        ("INFINITY", None),
        ("infinity", None),
        ("", None),
        ("x", None),
    ],
)
def test_limits_of_time(text, seconds):
    assert questions.limit_of(text) == (None if seconds is None else seconds * SECOND)


@pytest.mark.parametrize(("text", "count"), [("", 1), ("3", 1), ("1-5:1", 5), ("1-9:4", 3), ("4,5", 2), ("1-3:1,7", 4)])
def test_tasks(text, count):
    assert questions.task_count(text) == count


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a%lt;b&amp;c&quot;", 'a<b&c"'),  # recorded: how qstat writes the name a<b&c"
        ("a<b", "a<b"),
        ("a&b", "a&b"),
        ("</JB_name><slots>1</slots><JB_name>", "</JB_name><slots>1</slots><JB_name>"),
        ("<!DOCTYPE x>", "<!DOCTYPE x>"),
        ("<?x?>&e;", "<?x?>&e;"),
        ("\x07", "\ufffd"),
        ("\ud800", "\ufffd"),
    ],
)
def test_whatever_a_job_is_called_is_text(recorded, written, read):
    jobs = questions.read_queues(recorded("qstat_r_xml").replace(">fixed<", f">{written}<")).jobs
    assert jobs[0].name == read
    assert [job.slots for job in jobs] == [20, 4, 12, 500, 150, 2, 1]


@given(name=st.text(st.characters(exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")))
def test_no_name_changes_what_else_is_read(name):
    text = (OUTPUTS / "ge_qrstat_ar_xml.txt").read_text(encoding="utf-8").replace("ramp.k2", name)
    (found,) = questions.read_reservations(text)
    assert (found.number, found.name, found.users, found.slots) == (63, "ramp_firm2", ("buyer1",), 20)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("", "not well-formed"),
        ("error: commlib error: got select error (Connection refused)", "not well-formed"),
        ("<qhost>\n</qhost>\n", "got 'qhost', expected 'job_info'"),
        ("<!DOCTYPE a>\n<job_info/>", "DOCTYPE"),
        ('<!DOCTYPE a [\n<!ENTITY e SYSTEM "file:///etc/passwd">\n]>\n<job_info/>', "DOCTYPE"),
        ("<job_info>\n" * 40 + "</job_info>\n" * 40, "deeper than"),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_so(wrong, words):
    with pytest.raises(ValueError, match=words):
        questions.read_queues(wrong)


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("<slots>20</slots>", "<slots>-1</slots>", "slots of job 22: got '-1'"),
        ("<slots>20</slots>", "<slots>99999999999</slots>", "up to 1000000000"),
        ("<slots>20</slots>", "<slots>\u0662</slots>", "slots of job 22"),
        ("<slots>20</slots>", "", "has no 'slots'"),
        ("2026-11-21T23:23:23", "yesterday", "JAT_start_time of job 22: got 'yesterday'"),
        ("<JB_job_number>22<", "<JB_job_number>x<", "JB_job_number: got 'x'"),
    ],
)
def test_what_cannot_be_is_named(recorded, was, becomes, words):
    with pytest.raises(ValueError, match=words):
        questions.read_queues(recorded("qstat_r_xml").replace(was, becomes, 1))


def test_a_reservation_that_ends_before_it_begins_is_none(recorded):
    wrong = recorded("qrstat_xml").replace("2026-11-22T02:23:24", "2026-11-20T02:23:24")
    with pytest.raises(ValueError, match="end of advance reservation 62 lies before its start"):
        questions.read_reservations(wrong)
