"""`tfrctrace report`: where the page goes and what it is about."""

import pytest


@pytest.fixture
def capture(write_capture, conversation):
    return write_capture("captures/link.v2.pcap.gz.pcap", conversation(data_packets=20))


def test_the_report_of_one_capture_is_named_after_it(run, capture, tmp_path):
    outcome = run("report", capture)
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "report written to `link.v2.pcap.gz.html`\n"
    assert "192.0.2.1" in (tmp_path / "link.v2.pcap.gz.html").read_text()


@pytest.mark.parametrize("arguments", [["captures"], ["captures/link.v2.pcap.gz.pcap"] * 2])
@pytest.mark.usefixtures("capture")
def test_the_report_of_more_than_one_capture_is_report_html(run, tmp_path, arguments):
    assert run("report", *arguments).status == 0
    assert (tmp_path / "report.html").is_file()


def test_the_report_of_standard_input_is_report_html(run, capture, tmp_path):
    assert run("report", "-", stdin=capture.read_bytes()).status == 0
    assert "standard input" in (tmp_path / "report.html").read_text()


def test_a_report_can_go_to_standard_output(run, capture, tmp_path):
    outcome = run("report", capture, "-o", "-")
    run("report", capture, "-o", "x.html")
    assert outcome.err == ""
    assert outcome.out == (tmp_path / "x.html").read_text()


def test_the_heading_can_be_chosen_and_is_escaped(run, capture):
    page = run("report", capture, "-o", "-", "--title", "<b>Lab & field</b>").out
    assert "&lt;b&gt;Lab &amp; field&lt;/b&gt;" in page
    assert "<b>Lab" not in page


def test_a_report_says_what_was_wrong_with_a_capture(run, write_capture, conversation):
    write_capture("cut.pcap", conversation(), cut=3)
    outcome = run("report", "cut.pcap", "-o", "-")
    assert outcome.status == 0
    assert "warning: `cut.pcap` packet 12" in outcome.err
    assert "the file ends inside a record" in outcome.out


def test_no_report_is_written_when_nothing_can_be_read(run, tmp_path):
    assert run("report", "nowhere.pcap").status == 3
    assert not list(tmp_path.iterdir())
