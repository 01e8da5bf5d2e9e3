"""Spark's SQL, as text: there is no engine for it yet."""

from __future__ import annotations

from sqlrs.dialects.base import Dialect


class Spark(Dialect):
    """No word tells Spark to evaluate a common table expression once."""

    name = "spark"
    title = "Spark"
    materialised = False
