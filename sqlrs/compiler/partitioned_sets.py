"""UNION, EXCEPT and INTERSECT of rows whose owner is known."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.compiler.partitioned_expressions import Output, ReadQuery
from sqlrs.compiler.partitioned_nodes import check_kept
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import Known

_NO_ID = "equal rows of several units would be taken for one"
_ID_TYPES = "the ids have different types"
_SAME_TYPE = "let the owner store the ids in one type"


def branches_together(
    tree: exp.SetOperation, parts: Sequence[ReadQuery], source: Source
) -> ReadQuery:
    """The relation of UNION, EXCEPT or INTERSECT, or a refusal."""
    left, right = parts
    if len(left.outputs) != len(right.outputs):
        raise source.refusal("wrong_columns", tree)
    distinct = bool(tree.args.get("distinct")) or not isinstance(tree, exp.Union)
    owned = [one for one in parts if one.word is not None]
    ids = tuple(place for place in left.ids if place in right.ids)
    if owned and len(owned) < 2:
        message = "rows of a public table, or of one unit alone, are put together with private ones"
        raise source.refusal("unit_lost", tree, message, "let every branch read rows of the units")
    if owned and distinct and not ids:
        hint = f"select {owned[0].word} at the same place of both"
        raise source.refusal("unit_lost", tree, _NO_ID, hint)
    outputs = []
    for place, (one, other) in enumerate(zip(left.outputs, right.outputs, strict=True)):
        kinds = (one.known.kind, other.known.kind)
        alike = kinds[0] is not None and kinds[1] is not None and kinds[0].joins_with(kinds[1])
        same = kinds[0] == kinds[1]
        if place in ids and not alike:
            raise source.refusal("unit_lost", tree, _ID_TYPES, _SAME_TYPE)
        if distinct and place not in ids:
            check_kept(kinds[0] if same else None, tree, source)
        known = Known(
            kinds[0] if same or place in ids else None,
            one.known.nullable or other.known.nullable,
            one.known.positive and other.known.positive,
        )
        outputs.append(Output(one.name, one.value, known))

    def write(hidden: bool) -> exp.Query:
        made = type(tree)(
            this=_branch(left.write(hidden)),
            expression=_branch(right.write(hidden)),
            distinct=bool(tree.args.get("distinct")),
        )
        return made

    if not owned:
        return ReadQuery(write, tuple(outputs), bound=left.bound or right.bound)
    if not _ids_alike(left.hidden, right.hidden):
        raise source.refusal("unit_lost", tree, _ID_TYPES, _SAME_TYPE)
    kept = left if not isinstance(tree, exp.Union) else None
    return ReadQuery(
        write,
        tuple(outputs),
        left.word,
        ids,
        single=kept is not None and kept.single,
        hidden=left.hidden,
    )


def _ids_alike(one: Known | None, other: Known | None) -> bool:
    kinds = [None if known is None else known.kind for known in (one, other)]
    return kinds[0] is not None and kinds[1] is not None and kinds[0].joins_with(kinds[1])


def _branch(query: exp.Query) -> exp.Expr:
    return query if isinstance(query, exp.Select) else exp.Subquery(this=query)
