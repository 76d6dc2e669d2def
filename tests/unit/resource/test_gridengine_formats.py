"""What is printed as Grid Engine prints it is letter by letter what the real commands printed of the same jobs."""

from pathlib import Path

import pytest

from ramp.batch.gridengine.questions import read_queues, read_reservations
from simulation.resource.gridengine import formats

OUTPUTS = Path(__file__).parents[1] / "batch" / "gridengine" / "outputs"


def _recorded(name):
    return (OUTPUTS / f"ge_{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "source", "printed"),
    [
        ("qstat_xml", "qstat_r_xml", formats.queue_document),
        ("qstat_r_xml", "qstat_r_xml", lambda report: formats.queue_document(report, requests=True)),
        ("qstat_f_xml", "qstat_f_xml", lambda report: formats.queue_document(report, full=True)),
        ("qstat", "qstat_r_xml", formats.job_table),
        ("qstat_r", "qstat_r_xml", lambda report: formats.job_table(report, requests=True)),
        ("qstat_f", "qstat_f_xml", formats.queue_table),
    ],
)
def test_queues(name, source, printed):
    assert printed(read_queues(_recorded(source))) == _recorded(name)


def test_reservations():
    listed = read_reservations(_recorded("qrstat_xml"))
    assert formats.reservation_document(listed) == _recorded("qrstat_xml")
    assert formats.reservation_table(listed) == _recorded("qrstat")
    full = read_reservations(_recorded("qrstat_ar_xml"))
    assert formats.reservation_document(full, detailed=True) == _recorded("qrstat_ar_xml")


def test_one_reservation_as_text():
    # recorded on 2026-11-23 of `qrstat -ar 1`
    text = formats.reservation_text(read_reservations(_recorded("qrstat_ar_xml"))[0])
    assert text.startswith(
        "-" * 80 + "\nid                             63\nname                           ramp_firm2\n"
    )
    assert "granted_slots_list             all.q@sim7=16,all.q@sim8=4\n" in text
    assert text.endswith("granted_parallel_environment   mpi slots 20\nacl_list                       buyer1\n")


def test_nothing_at_all():
    empty = read_queues("<job_info>\n</job_info>")
    assert formats.job_table(empty) == ""
    assert formats.reservation_table(()) == ""
