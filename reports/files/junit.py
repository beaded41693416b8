"""Verdicts as JUnit's XML, which programs for continuous integration show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from tfrctrace.base.errors import describe
from tfrctrace.reports.printers.gate import detail_lines, value_words, words
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from xml.etree.ElementTree import Element

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone


def write_junit(
    file: BinaryIO,
    verdicts: Sequence[Mapping[str, Any]],
    problems: Sequence[Problem],
    zone: TimeZone | None = None,
) -> None:
    """Write a test case for each verdict, and an error for each input that could not be read.

    A warning is a case that passes and says why it warns. There is no time in it: the same runs give the
    same bytes.
    """
    from xml.etree import ElementTree as ET

    unread = [problem for problem in problems if problem["severity"] == "error"]
    failed = sum(one["effect"] == "fail" for one in verdicts)
    suite = ET.Element(
        "testsuite",
        name="tfrctrace check",
        tests=str(len(verdicts) + len(unread)),
        failures=str(failed),
        errors=str(len(unread)),
    )
    for one in verdicts:
        case = _case(suite, f"tfrctrace.{one['kind']}", one["name"] or one["check"])
        if one["effect"] == "fail":
            failure = ET.SubElement(case, "failure", type=one["outcome"], message=plain_text(words(one)))
            lines = (one["check"], value_words(one), one["reason"], *detail_lines(one, zone))
            failure.text = "\n".join(map(plain_text, lines))
        elif one["effect"] == "warn":
            ET.SubElement(case, "system-out").text = plain_text(f"warning: {words(one)}")
        elif one["flows_left_out"] or one["sparse_flows"]:
            ET.SubElement(case, "system-out").text = plain_text(words(one))
    for problem in unread:
        case = _case(suite, "tfrctrace.input", problem["source"])
        ET.SubElement(case, "error", type=problem["kind"], message=plain_text(describe(problem).text))
    ET.ElementTree(suite).write(file, encoding="utf-8", xml_declaration=True)


def _case(suite: Element, class_name: str, name: str) -> Element:
    from xml.etree import ElementTree as ET

    return ET.SubElement(suite, "testcase", classname=class_name, name=plain_text(name))
