"""Words for what went wrong."""

import inspect
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.base import errors
from tfrctrace.base.errors import (
    InputError,
    OutputError,
    TfrctraceError,
    describe,
    input_problem,
    printable,
    without_secrets,
)


def problem(**facts):
    return input_problem("link.pcapng", "corrupt", "block length 3, expected at least 12") | facts


def test_a_message_says_what_where_what_was_done_and_what_to_do_next():
    message = describe(
        problem(packet=4812, byte=7340032, packets_before=4811, hint="look at it with `capinfos`")
    )
    assert message.lines() == [
        "error: `link.pcapng` packet 4812 at byte 7340032: block length 3, expected at least 12",
        "       4811 packets before it were analysed",
        "hint:  look at it with `capinfos`",
    ]


def test_the_lines_of_a_warning_are_aligned_too():
    message = describe(problem(severity="warning", packets_before=1, hint="wait"))
    assert message.lines() == [
        "warning: `link.pcapng`: block length 3, expected at least 12",
        "         1 packet before it was analysed",
        "hint:    wait",
    ]


@pytest.mark.parametrize(
    ("flows", "words"),
    [([3], " (flow 3)"), ([1, 2], " (flows 1, 2)"), (range(7), " (flows 0, 1, 2, 3, 4 and 2 more)")],
)
def test_a_message_names_the_first_flows_that_it_is_about(flows, words):
    assert describe(problem(flows=list(flows))).text.endswith(f"at least 12{words}")


def test_standard_input_is_called_by_its_name():
    assert describe(problem(source="-")).text.startswith("standard input: ")


def test_an_input_error_has_a_message_for_each_problem():
    error = InputError([problem(), problem(source="b.pcap")])
    assert [message.text.split(":")[0] for message in error.messages()] == ["`link.pcapng`", "`b.pcap`"]
    assert str(error).count("\n") == 1


def test_an_output_error_says_which_file_and_why():
    assert (
        str(OutputError("x.html", "no space left on device"))
        == "cannot write `x.html`: no space left on device"
    )


def exception_classes():
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }


def test_the_tree_at_the_top_names_every_exception():
    assert set(re.findall(r"\w+(?:Error|Warning)\b", errors.__doc__)) >= set(exception_classes())


@pytest.mark.parametrize("name", sorted(set(exception_classes()) - {"TfrctraceWarning"}))
def test_every_error_is_below_one_root(name):
    assert issubclass(exception_classes()[name], TfrctraceError)


@pytest.mark.parametrize(
    "error",
    [
        InputError([problem(packet=3)]),
        errors.FilterError("tcp.port == 80", "syntax error", "tcp port 80"),
        errors.UsageError("no", hint="yes"),
        errors.ReadOnceError("rtt"),
        OutputError("x.html", "is a directory"),
        errors.SpoolError("spool", "no space left on device"),
        errors.NotBuiltError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_worker_says_the_same_in_its_parent(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.messages()) == (type(error), str(error), error.messages())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 日本", "plain äöü 日本"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("two\nlines\ttab", r"two\nlines\ttab"),
        ("abc\u202efcap.exe", r"abc\u202efcap.exe"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_could_disturb_a_terminal_is_written_out(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_nothing_unprintable_is_left(text):
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", printable(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`https://host/a@b.pcap?sig=1&x=2`: no", "`https://host/a@b.pcap`: no"),
        ("`s3://bucket/x#part` and https://b:c@host:80/y", "`s3://bucket/x` and https://host:80/y"),
        ("`https://bob:pass/word@host/x`", "`https://host/x`"),
        ("`https://bob:pass?word@host/x`", "`https://...`"),
        ("`http://[2001:db8::1]:80/x`", "`http://[2001:db8::1]:80/x`"),
        ("`https:/bob:word@host/x`", "`https:/host/x`"),
        ("`C:/x?y` 10:/5 a:b@c", "`C:/x` 10:/5 a:b@c"),
    ],
)
def test_urls_are_shown_without_what_gives_access(text, shown):
    assert without_secrets(text) == shown
    assert str(errors.UsageError(text)) == shown
    assert input_problem("x", "kind", text)["message"] == shown
    assert errors.Message("note", text).lines() == [f"note: {shown}"]
