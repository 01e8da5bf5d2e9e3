"""What is made again whenever a statement runs: made once for what it is about, and written once.

Building a tree and writing it take longer than most statements over public values run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Any, TypeVar

from sqlglot import exp

from sqlrs.records import dataclass
from sqlrs.trees.copies import copied

Made = TypeVar("Made")

_TEXTS = "sqlrs_texts"
_MOST = 500


@dataclass(frozen=True)
class _Texts:
    """The texts of one tree by dialect. A copy of the tree, which may be changed, has others."""

    tree: int
    written: dict[str, str] = field(default_factory=dict)


class Kept:
    """Trees, and what leads to them, by the very objects that they were made for.

    Nobody may change them any more. The objects are held here, so that no other one takes the
    place of one of them; the oldest make room. Nothing may be kept that depends on private rows,
    but which plan is run on the very same rows: what stands for these is one of the objects then.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def of(
        self, objects: tuple[object, ...], make: Callable[[], Made], *, detail: Hashable = None
    ) -> Made:
        """What is made of these objects; ``detail`` says which of several things."""
        key = (*map(id, objects), detail)
        found = self._found.get(key)
        if found is not None:
            made: Made = found[1]
            return made
        made = make()
        if isinstance(made, exp.Expression):
            made.meta[_TEXTS] = _Texts(id(made))
        self._found[key] = (objects, made)
        # What was made for rows that have changed since is not asked for again.
        for oldest in list(self._found)[:-_MOST]:
            self._found.pop(oldest, None)
        return made


def text_of(tree: exp.Expr, dialect: str) -> str:
    """The SQL text of a tree; of one that is kept, written once."""
    texts = tree.meta_get(_TEXTS)
    if not isinstance(texts, _Texts) or texts.tree != id(tree):
        return copied(tree).sql(dialect=dialect, copy=False)
    if dialect not in texts.written:
        texts.written[dialect] = copied(tree).sql(dialect=dialect, copy=False)
    return texts.written[dialect]
