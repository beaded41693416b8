"""Manual pages, in the macros of man(7), from the commands themselves."""

from __future__ import annotations

import re

from command_list import EXIT_STATUS, Command, Parameter, commands

from tfrctrace import __version__
from tfrctrace.commands.options.grouped_help import in_order

ENVIRONMENT = {
    "NO_COLOR": "If set, a terminal is shown no colour.",
    "TFRCTRACE_DEBUG": "If 1, a bug is printed with its traceback.",
}


def program_page() -> str:
    """Return the page of the program, which names those of its commands."""
    listed = [
        _entry(f"\\fB{_escaped(f'tfrctrace-{one.name}')}\\fR(1)", _first_sentence(one)) for one in commands()
    ]
    statuses = [
        _entry(str(status), f"{meaning[0].upper()}{meaning[1:]}.") for status, meaning in EXIT_STATUS.items()
    ]
    return (
        _head("tfrctrace", "analyse traces of TCP and TFRC after the fact")
        + _section("SYNOPSIS", "\\fBtfrctrace\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] \\fITRACE\\fR...")
        + _section(
            "DESCRIPTION",
            _text(
                "Read packet captures and traces of simulators, and report their flows, links and rate "
                "algorithms. Results go to standard output or the file that -o names, everything else to "
                "standard error."
            ),
        )
        + _section("COMMANDS", *listed)
        + _section("EXIT STATUS", *statuses)
        + _section("ENVIRONMENT", *(_entry(name, meaning) for name, meaning in ENVIRONMENT.items()))
    )


def manual_page(command: Command) -> str:
    """Return the page of one command."""
    name = f"tfrctrace-{command.name}"
    arguments = " ".join(f"\\fI{_escaped(part.value)}\\fR" for part in command.arguments)
    paragraphs = command.help.split("\n\n")
    groups = [
        f".SS {_escaped(heading)}\n" + "\n".join(map(_option, _options(command, heading)))
        for heading in in_order(option.heading for option in command.options)
    ]
    return (
        _head(name, _first_sentence(command))
        + _section("SYNOPSIS", f"\\fBtfrctrace {command.name}\\fR [\\fIOPTIONS\\fR] {arguments}".rstrip())
        + _section("DESCRIPTION", "\n.PP\n".join(map(_text, paragraphs)))
        + (_section("ARGUMENTS", *map(_argument, command.arguments)) if command.arguments else "")
        + _section("OPTIONS", *groups)
        + _section("EXAMPLE", f".nf\n{_escaped(command.example)}\n.fi")
        + _section("SEE ALSO", "\\fBtfrctrace\\fR(1), which lists exit statuses")
    )


def _head(name: str, purpose: str) -> str:
    title = _escaped(name).upper()
    purpose = purpose[0].lower() + purpose[1:].rstrip(".")
    head = (
        f'.\\" Made by docs/generate.py.\n.TH {title} 1 "" "tfrctrace {__version__}" "User Commands"\n.ad l\n'
    )
    return head + _section("NAME", f"{_escaped(name)} \\- {_escaped(purpose)}")


def _section(title: str, *parts: str) -> str:
    return f".SH {title}\n" + "".join(f"{part}\n" for part in parts)


def _options(command: Command, heading: str) -> list[Parameter]:
    return [option for option in command.options if option.heading == heading]


def _option(option: Parameter) -> str:
    names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in option.names)
    value = f" \\fI{_escaped(_plain(option.value))}\\fR" if option.value else ""
    default = f" Default: {_plain(option.default)}." if option.default not in {"", "required"} else ""
    return _entry(names + value, option.help + default)


def _argument(argument: Parameter) -> str:
    return _entry(f"\\fI{_escaped(argument.value)}\\fR", argument.help)


def _entry(term: str, meaning: str) -> str:
    return f".TP\n{term}\n{_text(meaning)}"


def _first_sentence(command: Command) -> str:
    return command.help.split("\n")[0]


def _plain(text: str) -> str:
    """Return text without the marks of Markdown; choices are joined by bars."""
    return text.replace("` `", "|").replace("`", "")


def _text(paragraph: str) -> str:
    return _escaped(" ".join(_plain(paragraph).split()))


def _escaped(text: str) -> str:
    """Return text that roff prints as it is: a hyphen stays one, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", escaped, flags=re.MULTILINE)
