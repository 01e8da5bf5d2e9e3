"""Expressions over rows whose owner is known: names, subqueries, aggregates and windows inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from sqlrs.catalog import ColumnType
from sqlrs.compiler.conditions import RELATIONS, Reference
from sqlrs.compiler.flat import operand, stand_at
from sqlrs.compiler.names import Scope
from sqlrs.compiler.partitioned_nodes import AGGREGATES, BY_ORDER, check_aggregate
from sqlrs.compiler.partitioned_rows import Ownership, Witness
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import Known, kind_in
from sqlrs.effort import spend
from sqlrs.errors import QueryRefused
from sqlrs.records import dataclass

_NOT_NULL = "where it is negated, IN (SELECT …) needs columns on both sides that are never NULL"
_NOT_NULL_HINT = "write NOT EXISTS (SELECT 1 FROM … WHERE …) instead"
_NOT_BOUND = "this subquery may read rows of other units"
_TIES = "rows at the same place of this order are told apart by chance"
_TIES_HINT = "end ORDER BY with the columns of a key of the table"
_MANY_ROWS = "a subquery that stands for a value must be one aggregate without GROUP BY"


@dataclass(frozen=True, eq=False)
class Output:
    """One column of a query: its name outside, the expression, what is known of it."""

    name: str | None
    value: exp.Expr
    known: Known


@dataclass(frozen=True, eq=False)
class ReadQuery:
    """A query that was read. ``write`` makes its tree, with the id behind the outputs if asked.

    ``word`` is None where it reads no private rows, or those of the unit in sight alone, which is
    then ``bound``. Otherwise the outputs at the places ``ids`` hold the id; ``anchors`` are places
    too, and ``hidden`` is what is known of the id. ``one_row``: it has exactly one row.
    """

    write: Callable[[bool], exp.Query]
    outputs: tuple[Output, ...]
    word: str | None = None
    ids: tuple[int, ...] = ()
    anchors: tuple[tuple[tuple[str | None, str], tuple[str, ...], tuple[int, ...]], ...] = ()
    single: bool = False
    bound: bool = False
    one_row: bool = False
    witness: Witness = field(default_factory=Witness)
    hidden: Known | None = None


@dataclass(frozen=True, eq=False)
class Sight:
    """Where an expression stands. ``unit``: whose the row is, ``rows``: before any grouping.

    ``split``: the unit by which windows must be partitioned. ``own``: the relations of this FROM.
    ``unique``: sets of expressions; no two rows, or groups, are equal in all of one.
    """

    scope: Scope
    unit: Ownership | None
    rows: Ownership | None
    split: Ownership | None = None
    own: frozenset[str] = frozenset()
    aggregates: bool = False
    windows: bool = False
    subqueries: bool = True
    unique: tuple[frozenset[exp.Expr], ...] = ()


Subquery = Callable[[exp.Expr, Sight], ReadQuery]


@dataclass(frozen=True, eq=False)
class ExpressionReader:
    """Reads expressions; ``subquery`` reads the queries inside them.

    ``texts``: the plain texts met that take on the type of what they are compared with.
    """

    source: Source
    columns: Mapping[Reference, Known]
    subquery: Subquery
    texts: dict[tuple[str, ColumnType], None] = field(default_factory=dict)

    def read(self, tree: exp.Expr, sight: Sight, *, top: bool = False) -> exp.Expr:
        """A copy in which every column names a relation of the statement; or a refusal.

        ``top``: it is a condition that must be true, so NULL is as good as false.
        """
        spend()
        match tree:
            case exp.Column():
                return self._column(tree, sight)
            case exp.Paren() if top:
                return exp.Paren(this=self.read(tree.this, sight, top=True))
            case exp.In() if tree.args.get("query") is not None:
                return self._in(tree, sight, top=top)
            case exp.Exists():
                part = self.bound(tree.this, tree, sight)
                return exp.Exists(this=part.write(False))
            case exp.Subquery() | exp.Query():
                return self._scalar(tree, sight)
            case exp.Window():
                return self._window(tree, sight)
            case exp.Filter() | exp.WithinGroup():
                return self._aggregate(tree, sight)
            case _ if isinstance(tree, AGGREGATES):
                return self._aggregate(tree, sight)
            case exp.Star() | exp.Distinct() | exp.Alias():
                raise self.source.refusal("unsupported", tree)
        made = _rebuilt(tree, lambda part: self.read(part, sight))
        if isinstance(made, (*RELATIONS, exp.In, exp.Between)):
            self._keep_texts([part.unnest() for part in made.iter_expressions()])
        return made

    def _keep_texts(self, compared: Sequence[exp.Expr]) -> None:
        texts = [one for one in compared if isinstance(one, exp.Literal) and one.is_string]
        if texts and len(texts) == len(compared) - 1:
            (other,) = (one for one in compared if one not in texts)
            kind = kind_in(other, self.columns)
            if kind is not None:
                self.texts.update(((one.name, kind), None) for one in texts)

    def _column(self, column: exp.Column, sight: Sight) -> exp.Expr:
        if isinstance(column.this, exp.Star):
            raise self.source.refusal("unsupported", column)
        meaning = operand(sight.scope.column(column, self.source))
        span = self.source.span(column)
        stand_at(meaning, span.start, span.end - 1, alone=False)
        return meaning

    # Subqueries.

    def _query(self, tree: exp.Expr, place: exp.Expr, sight: Sight) -> ReadQuery:
        if not sight.subqueries:
            hint = "put the condition with the subquery into WHERE"
            raise self.source.refusal("subquery", place, hint=hint)
        return self.subquery(tree, sight)

    def bound(self, tree: exp.Expr, place: exp.Expr, sight: Sight) -> ReadQuery:
        """A query that reads public rows and those of the unit in sight; or a refusal."""
        part = self._query(tree, place, sight)
        if part.word is not None:
            raise self._unbound(part, place, sight)
        return part

    def _unbound(self, part: ReadQuery, place: exp.Expr, sight: Sight) -> QueryRefused:
        hint = "nothing around it says whose rows are meant: join with a table of the unit"
        if sight.unit is not None:
            hint = f"correlate it: WHERE {part.word} = {sight.unit.word} AND …"
        return self.source.refusal("unit_lost", place, _NOT_BOUND, hint)

    def _scalar(self, tree: exp.Expr, sight: Sight) -> exp.Expr:
        part = self.bound(tree, tree, sight)
        if not part.one_row or len(part.outputs) != 1:
            raise self.source.refusal("subquery", tree, _MANY_ROWS, "use max(…), or a JOIN")
        return exp.Subquery(this=part.write(False))

    def _in(self, tree: exp.In, sight: Sight, *, top: bool) -> exp.Expr:
        tested = tree.this.unnest()
        row = isinstance(tested, exp.Tuple)
        values = [self.read(one, sight) for one in (tested.expressions if row else [tested])]
        part = self._query(tree.args["query"], tree, sight)
        if len(values) != len(part.outputs):
            raise self.source.refusal("wrong_columns", tree)
        if part.word is None and not part.bound:
            return self._is_in(values, part, hidden=False)
        if not top:
            never = not any(kind.known.nullable for kind in part.outputs)
            if not never or not all(self._never_null(one) for one in values):
                raise self.source.refusal("negated_subquery", tree, _NOT_NULL, _NOT_NULL_HINT)
        if part.bound or self._same_unit(values, part, sight):
            return self._is_in(values, part, hidden=False)
        if sight.unit is not None and _same_key(values, part, sight.unit):
            return self._is_in([*values, sight.unit.id], part, hidden=True)
        raise self._unbound(part, tree, sight)

    def _same_unit(self, values: Sequence[exp.Expr], part: ReadQuery, sight: Sight) -> bool:
        """Whether the id is compared with the id."""
        ids = () if sight.unit is None else sight.unit.ids
        for place in part.ids:
            if place < len(values) and values[place].unnest() in ids:
                one, other = kind_in(values[place], self.columns), part.outputs[place].known.kind
                return one is not None and other is not None and one.joins_with(other)
        return False

    def _is_in(self, values: Sequence[exp.Expr], part: ReadQuery, *, hidden: bool) -> exp.Expr:
        row: exp.Expr = exp.Tuple(expressions=list(values)) if len(values) > 1 else values[0]
        return exp.In(this=row, query=exp.Subquery(this=part.write(hidden)))

    def _never_null(self, value: exp.Expr) -> bool:
        value = value.unnest()
        if isinstance(value, exp.Column):
            known = self.columns.get((value.table, value.name))
            return known is not None and not known.nullable
        return isinstance(value, exp.Literal | exp.Boolean)

    # Aggregates and windows.

    def _aggregate(self, tree: exp.Expr, sight: Sight) -> exp.Expr:
        if not sight.aggregates:
            raise self.source.refusal("aggregate", tree)
        call = tree.this if isinstance(tree, exp.Filter | exp.WithinGroup) else tree
        if isinstance(call, exp.WithinGroup):
            call = call.this
        if not isinstance(call, AGGREGATES):
            raise self.source.refusal("aggregate", tree)
        inside = replace(sight, unit=sight.rows, aggregates=False, windows=False)
        made = _rebuilt(tree, lambda part: self._argument(part, inside))
        found = _outside(made)
        if found and found.isdisjoint(sight.own):
            # PostgreSQL would take it for an aggregate of the query around this one.
            raise self.source.refusal("aggregate", tree)
        self._check(made)
        return made

    def _argument(self, tree: exp.Expr, sight: Sight) -> exp.Expr:
        """A part of an aggregate: its own forms, and values."""
        match tree:
            case exp.Star():
                return tree.copy()
            case exp.Distinct() | exp.Where() | exp.Order() | exp.Ordered():
                return _rebuilt(tree, lambda part: self._argument(part, sight))
            case exp.WithinGroup():
                return _rebuilt(tree, lambda part: self._argument(part, sight))
            case _ if isinstance(tree, AGGREGATES):
                # Inside FILTER or WITHIN GROUP: the call itself; deeper it is nested.
                if isinstance(tree.parent, exp.Filter | exp.WithinGroup):
                    return _rebuilt(tree, lambda part: self._argument(part, sight))
        return self.read(tree, sight)

    def _check(self, made: exp.Expr) -> None:
        call, read = made, None
        while isinstance(call, exp.Filter):
            call = call.this
        if isinstance(call, exp.WithinGroup):
            read = call.expression.expressions[0].this
        else:
            value = call.this
            one = isinstance(value, exp.Distinct) and len(value.expressions) == 1
            read = value.expressions[0] if one else value
        kind = None if read is None else kind_in(read, self.columns)
        check_aggregate(call, kind, self.source)

    def _window(self, tree: exp.Window, sight: Sight) -> exp.Expr:
        if not sight.windows:
            raise self.source.refusal("window", tree)
        inside = replace(sight, windows=False)
        call: exp.Expr = tree.this.this if isinstance(tree.this, exp.Filter) else tree.this
        if not isinstance(call, (*AGGREGATES, exp.Rank, exp.DenseRank, *BY_ORDER)):
            raise self.source.refusal("unit_order", tree)
        if isinstance(call.this, exp.Distinct):
            raise self.source.refusal("window", tree)
        function = _rebuilt(tree.this, lambda part: self._inside_window(part, call, inside))
        keys = [self.read(one, inside) for one in tree.args.get("partition_by") or ()]
        if sight.split is not None:
            if not sight.split.held_by(keys):
                hint = f"write PARTITION BY {sight.split.word}"
                message = "this window holds rows of several units"
                raise self.source.refusal("unit_lost", tree, message, hint)
            keys.append(sight.split.id)
        order = tree.args.get("order")
        if order is not None:
            order = _rebuilt(order, lambda part: self._order(part, inside))
        if isinstance(call, BY_ORDER):
            sorted_by = [] if order is None else [one.this for one in order.expressions]
            told = {one.unnest() for one in (*keys, *sorted_by)}
            if not any(one <= told for one in sight.unique):
                raise self.source.refusal("unit_order", tree, _TIES, _TIES_HINT)
        written = exp.Window(
            this=function,
            partition_by=keys,
            order=order,
            over="OVER",
            spec=tree.args["spec"].copy() if tree.args.get("spec") else None,
        )
        if isinstance(call, AGGREGATES):
            self._check(function)
        return written

    def _inside_window(self, part: exp.Expr, call: exp.Expr, sight: Sight) -> exp.Expr:
        if part is call or isinstance(part, exp.Where):
            return _rebuilt(part, lambda one: self._inside_window(one, call, sight))
        return part.copy() if isinstance(part, exp.Star) else self.read(part, sight)

    def _order(self, tree: exp.Expr, sight: Sight) -> exp.Expr:
        if isinstance(tree, exp.Ordered):
            return _rebuilt(tree, lambda part: self.read(part, sight))
        return self.read(tree, sight)


def _same_key(values: Sequence[exp.Expr], part: ReadQuery, unit: Ownership) -> bool:
    """Whether a key of a row with the same owner is compared."""
    for table, key, places in part.anchors:
        for anchor in unit.anchors:
            if (anchor.table, anchor.key) == (table, key) and all(
                place < len(values) and values[place].unnest() == column
                for place, column in zip(places, anchor.columns, strict=True)
            ):
                return True
    return False


def _outside(tree: exp.Expr) -> set[str]:
    """The relations that an expression reads, without those of the queries inside it."""
    inside = {one.alias for one in tree.find_all(exp.Subquery, exp.Table)}
    return {column.table for column in tree.find_all(exp.Column)} - inside


def _rebuilt(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The same node over changed parts."""

    def changed(value: object) -> object:
        if isinstance(value, list):
            return [changed(one) for one in value]
        return change(value) if isinstance(value, exp.Expr) else value

    made = type(tree)(**{name: changed(value) for name, value in tree.args.items()})
    made.meta.update(tree.meta)
    return made
