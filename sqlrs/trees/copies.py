"""A tree once more, in half the time of sqlglot's own copy.

That one copies what is known of a word, its place and the like, with the general ``deepcopy``.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

_Tree = TypeVar("_Tree", bound=exp.Expr)


def copied(tree: _Tree) -> _Tree:
    """A copy of a tree that nobody gave types, standing alone."""
    root = type(tree)()
    pending: list[tuple[exp.Expr, exp.Expr]] = [(tree, root)]

    def part(value: object, parent: exp.Expr, name: str, place: int | None = None) -> object:
        if not isinstance(value, exp.Expr):
            return value
        made = type(value)()
        made.parent, made.arg_key, made.index = parent, name, place
        pending.append((value, made))
        return made

    while pending:
        node, made = pending.pop()
        if node.comments is not None:
            made.comments = [*node.comments]
        if meta := node.meta:
            made.meta.update(meta)
        for name, value in node.args.items():
            if type(value) is list:
                made.args[name] = [part(one, made, name, at) for at, one in enumerate(value)]
            else:
                made.args[name] = part(value, made, name)
    return root
