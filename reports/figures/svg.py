"""Matplotlib's document of a drawing as an element of a page, coloured by the page's style sheet.

Matplotlib draws in fixed colours that stand for roles (`ROLES`). Afterwards each is replaced by a class of
`style.css` (`s-` for strokes, `f-` for fills), so that one drawing serves light, dark and print, and no
style attribute is left that a strict content security policy would have to allow. Text stays text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from tfrctrace.reports.elements import STYLES
from tfrctrace.reports.figures.charts import ChartStyle
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Figure
    from tfrctrace.reports.figures.charts import Chart

_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"

# Colours only mark roles here; what they look like stands in style.css.
_INK: Final = "#000001"
_GRID: Final = "#000002"
_PAPER: Final = "#000003"
_BAD: Final = "#000004"
_OTHER: Final = "#000010"
_CURVES: Final = tuple(f"#00001{style}" for style in range(1, STYLES + 1))
ROLES: Final = {
    _INK: "ink",
    _GRID: "grid",
    _PAPER: "paper",
    _BAD: "bad",
    _OTHER: "other",
    **{colour: f"c{style}" for style, colour in enumerate(_CURVES, start=1)},
}

PAGE: Final = ChartStyle(
    ink=_INK, grid=_GRID, paper=_PAPER, colours=_CURVES, rest=_OTHER, bad=_BAD, text_pt=8.5, line_pt=1.4
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a drawing stands in a page.

    The size sets the proportions and how large the text is beside the drawing; how wide the element is drawn
    is up to the page. `key` is unique in the page and prefixes the identifiers; `css` are classes.
    """

    width_px: int
    height_px: int
    key: str
    css: str = ""


def page_element(document: bytes, drawn: Figure | Chart, place: Place) -> str:
    """Return matplotlib's document as an element for a page: named, without styles, identifiers unique."""
    root = ElementTree.fromstring(document)
    for tag in ("metadata", "defs/style"):
        _remove(root, tag)
    _own_identifiers(root, place.key)
    for element in root.iter():
        _classes_for_styles(element)
        element.tag = element.tag.removeprefix(_SVG)
    _describe(root, drawn, place.key)
    if place.css:
        root.set("class", place.css)
    _trim(root)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _remove(root: ElementTree.Element, path: str) -> None:
    """Remove the elements at `path` wherever the first of its tags occurs."""
    *above, last = (f"{_SVG}{tag}" for tag in path.split("/"))
    for parent in list(root.iter(above[0])) if above else [root]:
        for child in parent.findall(last):
            parent.remove(child)


_LEFT_TO_THE_PAGE: Final = frozenset({"font-family"})

_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")


def _own_identifiers(root: ElementTree.Element, key: str) -> None:
    """Keep identifiers that are referred to, with `key` before them; two figures may use the same ones."""
    referred: set[str] = set()
    for element in root.iter():
        if _HREF in element.attrib:
            target = element.attrib.pop(_HREF).removeprefix("#")
            referred.add(target)
            element.set("href", f"#{key}-{target}")
        for name, value in element.attrib.items():
            referred.update(_REFERENCE.findall(value))
            element.set(name, _REFERENCE.sub(rf"url(#{key}-\1)", value))
    for element in root.iter():
        identifier = element.attrib.pop("id", None)
        if identifier in referred:
            element.set("id", f"{key}-{identifier}")


def _classes_for_styles(element: ElementTree.Element) -> None:
    """Replace the style attribute by classes for colours and by presentation attributes for the rest."""
    classes: list[str] = []
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, value = (part.strip() for part in declaration.split(":", 1))
        if value.lower() in ROLES:
            classes.append(f"{name[0]}-{ROLES[value.lower()]}")
        elif name == "font":
            # `8.5px 'DejaVu Sans', ...`: the page has its own font
            element.set("font-size", value.split(maxsplit=1)[0])
        elif name not in _LEFT_TO_THE_PAGE:
            element.set(name, value)
    for name in ("fill", "stroke"):
        if (value := element.get(name, "")) in ROLES:
            classes.append(f"{name[0]}-{ROLES[value]}")
            del element.attrib[name]
    if classes:
        element.set("class", " ".join(classes))


def _describe(root: ElementTree.Element, drawn: Figure | Chart, key: str) -> None:
    """Give the drawing a name and a description for those who do not see it; its size is up to the page."""
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{key}-title {key}-desc")
    for place, (tag, text) in enumerate((("title", drawn.title), ("desc", drawn.description))):
        described = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
        described.text = plain_text(text)
        root.insert(place, described)


def _trim(root: ElementTree.Element) -> None:
    """Drop the line breaks between elements, which only cost bytes."""
    for element in root.iter():
        if element.text is not None and not element.text.strip():
            element.text = None
        element.tail = None
        if "d" in element.attrib:
            element.set("d", " ".join(element.attrib["d"].split()))
