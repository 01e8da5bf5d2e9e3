"""Templates to pages: what every page is given, and how numbers, times and places are written."""

from __future__ import annotations

import base64
from datetime import datetime
from decimal import Decimal
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from sqlrs.errors import Span


def number(value: object) -> str:
    """A number with thousands separators; NULL for nothing; anything else as its text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.2f}"
    if isinstance(value, int | Decimal):
        return f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}"
    return str(value)


def moment(value: datetime | None) -> Markup:
    """A moment in UTC; a script writes it in the reader's zone."""
    if value is None:
        return Markup("–")
    shown = f"{value:%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(value.isoformat(), shown)


def marked(text: str, span: Span | None) -> Markup:
    """A statement with the place that is refused marked."""
    if span is None or span.start >= len(text):
        return escape(text)
    end = max(span.end, span.start + 1)
    before, place, after = text[: span.start], text[span.start : end], text[end:]
    return Markup("{}<mark>{}</mark>{}").format(before, place, after)


def picture(svg: str) -> str:
    """A drawing as an address for an image: as such it runs nothing and styles nothing else."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


_TEMPLATES = Environment(
    loader=PackageLoader("sqlrs.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(number=number, moment=moment, marked=marked, picture=picture)


def rendered(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page or a part of one."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(**values), status)
