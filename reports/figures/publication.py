"""Charts and figures as files for a paper: as wide as its column, readable without colour.

Colours are those of M. Okabe and K. Ito, which colour-blind people can distinguish; dashes, marks and hatches
differ in grey. Fonts are embedded as outlines or TrueType, as publishers ask for.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tfrctrace.base.errors import TfrctraceWarning, UsageError, input_problem
from tfrctrace.reports.elements import Report, Section
from tfrctrace.reports.figures.charts import ChartStyle, draw
from tfrctrace.reports.output import open_output
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.typing import RcKeyType

    from tfrctrace.reports.elements import Figure
    from tfrctrace.reports.figures.charts import Chart

PaperStyle = Literal["ieee", "acm", "plain"]
Width = Literal["single", "double"]
ImageForm = Literal["svg", "pdf", "png"]

COLUMN_IN: Final = 3.5
"""Width of a column in IEEE's and ACM's journals, in inch."""
HEIGHT_IN: Final = 2.3
_PNG_DOTS_PER_IN: Final = 300

_LOOK: Final = ChartStyle(
    ink="#000000",
    grid="#d9d9d9",
    paper="#ffffff",
    colours=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    rest="#7f7f7f",
    text_pt=8.0,
    line_pt=1.1,
)


@dataclass(frozen=True, slots=True)
class _Paper:
    """Widths of one and of two columns in inch, a font family that matplotlib ships, text size in pt."""

    width_in: Mapping[Width, float]
    family: str
    text_pt: float


_PAPERS: Final[Mapping[PaperStyle, _Paper]] = {
    # IEEEtran: 21 pc and 43 pc; figures in Times or the like
    "ieee": _Paper({"single": 3.5, "double": 7.16}, "STIXGeneral", 8.0),
    # acmart, sigconf: 241 pt and 506 pt
    "acm": _Paper({"single": 3.33, "double": 7.0}, "sans-serif", 7.5),
    "plain": _Paper({"single": 5.0, "double": 10.0}, "sans-serif", 10.0),
}
_LONGEST_LABEL: Final = 48

_SETTINGS: Final[dict[RcKeyType, Any]] = {
    "font.family": "sans-serif",
    "font.size": _LOOK.text_pt,
    # TrueType: Type 3 fonts are refused by IEEE's checker
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "tfrctrace",
    # a name from a trace must not be read as a formula
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "hatch.linewidth": 0.5,
    "hatch.color": "#ffffff",
    "axes.formatter.useoffset": False,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """Figures of one kind, of which the first is drawn; notebooks show it as it would be written."""

    figures: tuple[Figure, ...]
    """All figures of the kind, of the first trace and the largest flow first."""
    style: PaperStyle = "ieee"
    width: Width = "single"
    left_out: tuple[str, ...] = ()
    """Which flows have no figure, a line for each reason."""

    def __repr__(self) -> str:
        return f"<Drawing of {self.figures[0].title}>"

    def content(self, form: ImageForm) -> bytes:
        """Return the first figure as the content of a file."""
        return figure_file(self.figures[0], form, style=self.style, width=self.width)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the first figure as SVG, PDF or PNG, or all as a page, by the suffix of the file."""
        place = os.fspath(path)
        form = plot_form(place)
        if form == "html":
            from tfrctrace.reports.page.html import write_page

            section = Section("figures", "Figures", figures=self.figures)
            write_page(place, Report(self.figures[0].title, (section,), kind="Figures of a trace"))
            return
        content = self.content(form)
        with open_output(place) as file:
            file.write(content)

    def _repr_svg_(self) -> str:
        return self.content("svg").decode()


def plot_form(path: str) -> ImageForm | Literal["html"]:
    """Return the format of a page or an image. Raises `UsageError` for other suffixes."""
    return "html" if path.lower().endswith(".html") else image_form(path)


def image_form(path: str) -> ImageForm:
    """Return the format for the suffix of a file. Raises `UsageError` for other suffixes."""
    suffix = os.path.splitext(path)[1].lower().removeprefix(".")
    if suffix not in _NO_DATE:
        raise UsageError(
            f"`{path}` does not say what image it is", hint="name a file that ends in .svg, .pdf or .png"
        )
    return suffix


def chart_files(chart: Chart, forms: Sequence[ImageForm]) -> Iterator[tuple[ImageForm, bytes]]:
    """Give a chart as the content of a file of each form; the same chart gives the same bytes."""
    size_in = (COLUMN_IN, HEIGHT_IN)
    yield from _files(lambda axes: draw(axes, chart, _LOOK), size_in, forms, chart.title)


def chart_file(chart: Chart, form: ImageForm) -> bytes:
    """Return a chart as the content of one file."""
    ((_, content),) = chart_files(chart, [form])
    return content


def figure_file(
    figure: Figure, form: ImageForm, *, style: PaperStyle = "ieee", width: Width = "single"
) -> bytes:
    """Return a figure of a report as the content of a file, with a legend if it has several curves."""
    from tfrctrace.reports.figures.drawing import draw_figure

    paper = _PAPERS[style]
    look = replace(_LOOK, text_pt=paper.text_pt)

    def fill(axes: Axes) -> None:
        draw_figure(axes, figure, look)
        _name_curves(axes, figure, look)

    size = (paper.width_in[width], HEIGHT_IN * paper.width_in["single"] / COLUMN_IN)
    fonts: dict[RcKeyType, Any] = {"font.family": paper.family, "font.size": paper.text_pt}
    ((_, content),) = _files(fill, size, [form], figure.title, fonts)
    return content


def _name_curves(axes: Axes, figure: Figure, look: ChartStyle) -> None:
    """Name curves above the axes, and spans beside them; a page has its own legend."""
    from matplotlib.lines import Line2D

    from tfrctrace.reports.figures.drawing import DASHES, colour_of

    if figure.spans:
        axes.set_yticks(range(len(figure.spans)), [_label(span.label) for span in figure.spans])
        return
    if len(figure.curves) == 1:
        return
    lines = [
        Line2D(
            [],
            [],
            color=colour_of(curve.style, look),
            linewidth=look.line_pt,
            label=_label(curve.label),
            dashes=DASHES.get(curve.style, (None, None)),
        )
        for curve in figure.curves
    ]
    axes.figure.legend(
        handles=lines, loc="outside upper left", fontsize=look.text_pt - 1, frameon=False, labelcolor=look.ink
    )


def _label(text: str) -> str:
    """Return a name from a trace as far as there is room."""
    shown = plain_text(text)
    return shown if len(shown) <= _LONGEST_LABEL else f"{shown[: _LONGEST_LABEL - 1]}…"


def _files(
    fill: Callable[[Axes], None],
    size_in: tuple[float, float],
    forms: Sequence[ImageForm],
    title: str,
    settings: Mapping[RcKeyType, Any] | None = None,
) -> list[tuple[ImageForm, bytes]]:
    """Return a file of each form of what `fill` draws; warn of characters that the font has not.

    Drawing and finding room for names take longer than writing, and are done once.
    """
    import matplotlib as mpl
    from matplotlib.backend_bases import get_registered_canvas_class
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mpl.rcdefaults()
        mpl.rcParams.update({**_SETTINGS, **(settings or {})})
        figure = Figure(figsize=size_in, dpi=_PNG_DOTS_PER_IN)
        # text is measured by the backend that writes the first
        get_registered_canvas_class(forms[0])(figure)
        fill(figure.add_subplot())
        # a layout engine of the figure would make `savefig` draw everything twice
        ConstrainedLayoutEngine().execute(figure)
        found = [(form, _written(figure, form)) for form in forms]
    _warn_of_missing_glyphs(title, [str(one.message) for one in caught])
    return found


def _written(figure: Canvas, form: ImageForm) -> bytes:
    written = io.BytesIO()
    figure.savefig(written, format=form, metadata=_NO_DATE[form])
    return written.getvalue()


def _warn_of_missing_glyphs(title: str, messages: Iterable[str]) -> None:
    """Warn of the characters that matplotlib could only draw as boxes; its other warnings help no user."""
    codes = sorted({int(found[1]) for message in messages if (found := _MISSING_GLYPH.match(message))})
    if codes:
        shown = plain_text("".join(map(chr, codes[:_MOST_GLYPHS]))) + (
            "…" if len(codes) > _MOST_GLYPHS else ""
        )
        problem = input_problem(
            title,
            "glyphs",
            f"the font has no `{shown}`: drawn as boxes",
            severity="warning",
            hint="use other labels; the HTML page takes fonts from the browser",
        )
        warnings.warn(TfrctraceWarning(problem), stacklevel=2)


_MISSING_GLYPH: Final = re.compile(r"Glyph (\d+) ")
_MOST_GLYPHS: Final = 20

_NO_DATE: Final[dict[ImageForm, dict[str, None]]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
