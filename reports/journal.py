"""Charts as files for a paper: as wide as its column, in its size of text, told apart without colour.

Colours are those of M. Okabe and K. Ito, which people with colour-blindness tell apart too; dashes, marks and
hatches tell them apart in grey. Fonts are embedded as outlines or TrueType, as publishers ask for.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, Literal

from tfrctrace.reports.charts import Look, draw

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

    from tfrctrace.reports.charts import Chart

ImageForm = Literal["svg", "pdf", "png"]

COLUMN_IN: Final = 3.5
"""Width of a column in IEEE's and ACM's journals, in inch."""
HEIGHT_IN: Final = 2.3
_PNG_DOTS_PER_IN: Final = 300

_LOOK: Final = Look(
    ink="#000000",
    grid="#d9d9d9",
    paper="#ffffff",
    colours=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    text_pt=8.0,
    line_pt=1.1,
)

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


def chart_file(chart: Chart, form: ImageForm) -> bytes:
    """Return a chart as the content of a file; the same chart gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(COLUMN_IN, HEIGHT_IN), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot(), chart, _LOOK)
        written = io.BytesIO()
        figure.savefig(written, format=form, dpi=_PNG_DOTS_PER_IN, metadata=_NO_DATE[form])
    return written.getvalue()


_NO_DATE: Final[dict[ImageForm, dict[str, None]]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
