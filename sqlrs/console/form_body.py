"""The body of a form: of one kind, of limited size, within a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

from sqlrs.errors import UsageError

_MOST_FIELDS = 40
_KIND = "application/x-www-form-urlencoded"


async def read_form(
    kind: str, stream: AsyncIterator[bytes], most: int, seconds: float
) -> dict[str, str]:
    """The fields by their names; of one that is given twice the last. Anything else is refused."""
    if kind.partition(";")[0].strip().lower() != _KIND:
        raise UsageError("this is not a form of this page")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in stream:
                body += part
                if len(body) > most:
                    raise UsageError("the form is too long")
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except (TimeoutError, ValueError):
        raise UsageError("the form cannot be read") from None
    # Browsers end the lines of a text field with CR LF.
    return {name: value.replace("\r\n", "\n") for name, value in pairs}
