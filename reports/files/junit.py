"""Verdicts as JUnit's XML, which programs for continuous integration show."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from tfrctrace.base.errors import describe
from tfrctrace.reports.printers.gate import detail_lines, value_words, words
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.verdict import Verdict


def write_junit(
    file: BinaryIO, verdicts: Sequence[Verdict], problems: Sequence[Problem], zone: TimeZone | None = None
) -> None:
    """Write a test case for each verdict, and an error for each input that could not be read.

    A warning is a case that passes and says why it warns. There is no time in it: the same runs give the
    same bytes.
    """
    from xml.etree import ElementTree as ET

    unread = [problem for problem in problems if problem["severity"] == "error"]
    failed = sum(verdict.effect == "fail" for verdict in verdicts)
    suite = ET.Element(
        "testsuite",
        name="tfrctrace check",
        tests=str(len(verdicts) + len(unread)),
        failures=str(failed),
        errors=str(len(unread)),
    )
    for verdict in verdicts:
        case = _case(suite, f"tfrctrace.{verdict.kind}", verdict.name or verdict.check)
        if verdict.effect == "fail":
            failure = ET.SubElement(case, "failure", type=verdict.outcome, message=plain_text(words(verdict)))
            lines = (verdict.check, value_words(verdict), verdict.reason, *detail_lines(verdict, zone))
            failure.text = "\n".join(map(plain_text, lines))
        elif verdict.effect == "warn":
            ET.SubElement(case, "system-out").text = plain_text(f"warning: {words(verdict)}")
        elif verdict.flows_left_out or verdict.sparse_flows:
            ET.SubElement(case, "system-out").text = plain_text(words(verdict))
    for problem in unread:
        case = _case(suite, "tfrctrace.input", problem["source"])
        ET.SubElement(case, "error", type=problem["kind"], message=plain_text(describe(problem).text))
    ET.ElementTree(suite).write(file, encoding="utf-8", xml_declaration=True)


def _case(suite: Element, class_name: str, name: str) -> Element:
    from xml.etree import ElementTree as ET

    return ET.SubElement(suite, "testcase", classname=class_name, name=plain_text(name))
