"""What a SELECT makes of rows whose owner is known: groups, outputs, DISTINCT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlrs.compiler.aggregates import is_aggregate
from sqlrs.compiler.conditions import Reference
from sqlrs.compiler.flat import conjuncts, operand
from sqlrs.compiler.grouping_sets import written_sets
from sqlrs.compiler.names import fold, qualifiers
from sqlrs.compiler.partitioned_expressions import ExpressionReader, Output, ReadQuery, Sight
from sqlrs.compiler.partitioned_nodes import check_kept
from sqlrs.compiler.partitioned_rows import Body, Ownership, Witness
from sqlrs.compiler.resolving import with_type
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import Known, kind_in
from sqlrs.compiler.unit_values import known_of
from sqlrs.effort import spend
from sqlrs.records import dataclass
from sqlrs.trees.build import named

_CONSTANT = "this groups by constants alone"
_NO_ID = "this mixes rows of several units"
_NO_KEY = "one of these sets groups by nothing"


@dataclass(frozen=True, eq=False)
class SelectReader:
    """One SELECT behind its FROM and WHERE."""

    select: exp.Select
    reader: ExpressionReader
    columns: Mapping[Reference, Known]
    source: Source

    def read(self, body: Body) -> ReadQuery:
        """The SELECT as a relation, or a refusal that says where the unit is lost."""
        having = self.select.args.get("having")
        grouped = self.select.args.get("group") is not None
        aggregates = grouped or having is not None or _aggregates(self.select)
        sets = self.sets(body)
        keys = _different(sets)
        several = len(sets) > 1
        unit, owned = body.in_sight, body.owned
        if aggregates:
            for one in sets or [[]]:
                self._check_keys(one, owned, body.around)
            # A key that one of several sets leaves out is NULL there.
            common = [key for key in keys if all(key in one for one in sets)]
            owned = _after(owned, common)
            unit = owned or _after(unit, common, body.around)
        unique = body.rows.unique
        if aggregates:
            unique = () if several else (frozenset(key.unnest() for key in keys),)
        sight = Sight(
            body.scope,
            unit,
            body.in_sight,
            owned,
            body.rows.aliases,
            aggregates=aggregates,
            windows=True,
            # What they compare would be NULL in some sets, which their rules do not know of.
            subqueries=not several,
            unique=unique,
        )
        values = [
            (name, value if known else with_type(self.reader.read(value, sight), self.source))
            for name, value, known in self._selected(body)
        ]
        sight = replace(sight, windows=False)
        held = list(conjuncts(having.this)) if having is not None else []
        held = [self.reader.read(one, sight, top=True) for one in held]
        hidden = [owned.id] if aggregates and owned is not None else []
        groups = [[*one, *hidden] for one in sets or [[]]]
        if aggregates:
            for tree in [*(value for _, value in values), *held]:
                self._check_grouped(tree, [*keys, *hidden], body.rows.aliases)
        outputs = tuple(Output(name, v, self._known(v, owned)) for name, v in values)
        if several:
            outputs = tuple(_maybe_left_out(one, owned) for one in outputs)
        if aggregates and not grouped:
            # There is a row even where there are none to aggregate.
            outputs = tuple(replace(o, known=replace(o.known, origin=None)) for o in outputs)
            body = replace(body, rows=replace(body.rows, witness=Witness()))
        distinct = bool(self.select.args.get("distinct"))
        if distinct:
            self._check_distinct(outputs, owned)
        one_row = aggregates and not grouped and not held
        return self._part(body, outputs, owned, groups, held, distinct, one_row)

    def _check_keys(
        self, keys: Sequence[exp.Expr], owned: Ownership | None, around: Ownership | None
    ) -> None:
        if owned is not None and not owned.held_by(keys):
            group = self.select.args.get("group")
            hint = f"group by {owned.word} too" if keys else f"GROUP BY {owned.word}"
            if around is not None:
                hint = f"correlate it: WHERE {owned.word} = {around.word} AND …"
            raise self.source.refusal("unit_lost", group or self.select, _NO_ID, hint)
        for key in keys:
            if owned is None or key.unnest() not in owned.ids:
                check_kept(kind_in(key, self.columns), key, self.source)

    def sets(self, body: Body) -> list[list[exp.Expr]]:
        """The expressions of GROUP BY, resolved, for each of its sets; constants say nothing."""
        group = self.select.args.get("group")
        if group is None:
            return []
        named_outputs = {
            fold(e.args["alias"], self.source.dialect): e.this
            for e in self.select.expressions
            if isinstance(e, exp.Alias)
        }
        unit = body.in_sight
        sight = Sight(body.scope, unit, unit, own=body.rows.aliases, subqueries=False)
        found: list[list[exp.Expr]] = []
        for written_set in written_sets(group, self.source):
            keys: dict[exp.Expr, exp.Expr] = {}
            for written in written_set:
                meant = self._meant(written.unnest(), body, named_outputs)
                if isinstance(meant.unnest(), exp.Tuple):
                    raise self.source.refusal("group_by", written)
                key = self.reader.read(meant, sight)
                if key.find(exp.Column) is not None:
                    keys.setdefault(key.unnest(), key)
            found.append(list(keys.values()))
        if not any(found):
            raise self.source.refusal("group_by", group, _CONSTANT, "leave GROUP BY out")
        if not all(found) and body.owned is None:
            raise self.source.refusal("group_by", group, _NO_KEY, "leave this set out")
        return found

    def _meant(self, written: exp.Expr, body: Body, outputs: dict[str, exp.Expr]) -> exp.Expr:
        """What a key means: a position, an output's name, or an expression."""
        if isinstance(written, exp.Literal) and not written.is_string:
            place = int(written.this) if written.is_int else 0
            if not 1 <= place <= len(self.select.expressions):
                raise self.source.refusal("wrong_columns", written)
            chosen: exp.Expr = self.select.expressions[place - 1].unalias()
            return chosen
        if isinstance(written, exp.Column) and not written.table:
            name = fold(written.this, self.source.dialect)
            # A column of FROM goes before an output of the same name.
            if name in outputs and all(known != name for known, _ in body.scope.visible):
                return outputs[name]
        return written

    def _selected(self, body: Body) -> Iterator[tuple[str | None, exp.Expr, bool]]:
        """The outputs with their names; of a star all columns, whose meaning is known."""
        dialect = self.source.dialect
        for output in self.select.expressions:
            star = isinstance(output, exp.Column) and isinstance(output.this, exp.Star)
            if isinstance(output, exp.Star) or star:
                columns = body.scope.visible
                if star:
                    alias, schema = qualifiers(output, dialect)
                    relation = body.scope.relation(alias or "", schema, output, self.source)
                    if relation is None:
                        raise self.source.refusal("unknown_table", output)
                    columns = relation.columns
                spend(len(columns))
                yield from ((name, value.copy(), True) for name, value in columns)
                continue
            name = output.args.get("alias") if isinstance(output, exp.Alias) else None
            if name is None and isinstance(output, exp.Column):
                name = output.this
            yield (fold(name, dialect) if name else None), output.unalias(), False

    def _known(self, value: exp.Expr, owned: Ownership | None) -> Known:
        known = known_of(value, self.columns)
        holds_id = owned is not None and value.unnest() in owned.ids
        return replace(known, nullable=False) if holds_id else known

    def _check_distinct(self, outputs: Sequence[Output], owned: Ownership | None) -> None:
        source, place = self.source, self.select.args["distinct"]
        if owned is not None and not owned.held_by(one.value for one in outputs):
            hint = f"select {owned.word} too, or leave DISTINCT out"
            raise source.refusal("unit_lost", place, _NO_ID, hint)
        for one in outputs:
            if owned is None or one.value.unnest() not in owned.ids:
                check_kept(one.known.kind, place, source)

    def _check_grouped(
        self, tree: exp.Expr, group: Sequence[exp.Expr], own: frozenset[str]
    ) -> None:
        """Refuse a column of the rows that is neither grouped by nor inside an aggregate."""
        keys = {one.unnest() for one in group}
        pending = [(tree, False)]
        while pending:
            spend()
            node, inside = pending.pop()
            inside = inside or isinstance(node, exp.Query)
            window = isinstance(node.parent, exp.Window) or isinstance(node, exp.Window)
            if node in keys or (is_aggregate(node) and not inside and not window):
                continue
            if isinstance(node, exp.Column) and node.table in own:
                raise self.source.refusal("not_grouped", node)
            parts = list(node.iter_expressions())
            if isinstance(node, exp.Filter) and window:
                parts = [*node.this.iter_expressions(), node.expression]
            pending += [(part, inside) for part in parts]

    def _part(
        self,
        body: Body,
        outputs: tuple[Output, ...],
        owned: Ownership | None,
        groups: Sequence[Sequence[exp.Expr]],
        having: Sequence[exp.Expr],
        distinct: bool,
        one_row: bool,
    ) -> ReadQuery:
        rows = body.rows

        def write(hidden: bool) -> exp.Query:
            shown = [named(one.value.copy(), f"c{n}") for n, one in enumerate(outputs)]
            if hidden:
                assert owned is not None
                shown.append(named(owned.id, f"c{len(outputs)}"))
            return exp.Select(
                expressions=shown,
                distinct=exp.Distinct() if distinct else None,
                # Not copies: what is inside was written for this place.
                from_=exp.From(this=rows.tree),
                joins=list(rows.joins),
                where=_clause(exp.Where, body.conditions),
                group=_grouping(groups),
                having=_clause(exp.Having, having),
            )

        if owned is None:
            return ReadQuery(
                write, outputs, bound=body.bound, one_row=one_row, witness=rows.witness
            )
        places: dict[exp.Expr, int] = {}
        for number, one in enumerate(outputs):
            places.setdefault(one.value.unnest(), number)
        single = owned.single
        if any(groups):
            single = len(groups) == 1 and all(one.unnest() in owned.ids for one in groups[0])
        if distinct:
            single = single or all(one.value.unnest() in owned.ids for one in outputs)
        return ReadQuery(
            write,
            outputs,
            owned.word,
            tuple(n for n, one in enumerate(outputs) if one.value.unnest() in owned.ids),
            tuple(
                (a.table, a.key, tuple(places[c] for c in a.columns))
                for a in owned.anchors
                if all(c in places for c in a.columns)
            ),
            single,
            witness=rows.witness,
            hidden=known_of(owned.id, self.columns),
        )


def _after(
    unit: Ownership | None, keys: Sequence[exp.Expr], around: Ownership | None = None
) -> Ownership | None:
    """The unit as groups show it: by keys, the first id, and what the query around holds."""
    if unit is None:
        return None
    held = {one.unnest() for one in keys}
    further = set() if around is None else set(around.ids)
    first = unit.ids[:1] if around is None else ()
    ids = dict.fromkeys([*first, *(one for one in unit.ids if one in held or one in further)])
    if not ids:
        return around
    anchors = tuple(a for a in unit.anchors if all(c in held for c in a.columns))
    return replace(unit, ids=tuple(ids), anchors=anchors)


def _different(sets: Sequence[Sequence[exp.Expr]]) -> list[exp.Expr]:
    """The keys of all sets, each once."""
    found: dict[exp.Expr, exp.Expr] = {}
    for key in (key for one in sets for key in one):
        found.setdefault(key.unnest(), key)
    return list(found.values())


def _maybe_left_out(output: Output, owned: Ownership | None) -> Output:
    """An output that may be NULL because a set leaves out what it is made of; the id never is."""
    if owned is not None and output.value.unnest() in owned.ids:
        return replace(output, known=replace(output.known, origin=None))
    return replace(output, known=Known(output.known.kind, positive=output.known.positive))


def _grouping(groups: Sequence[Sequence[exp.Expr]]) -> exp.Group | None:
    if not any(groups):
        return None
    if len(groups) == 1:
        return exp.Group(expressions=[one.copy() for one in groups[0]])
    sets = [exp.Tuple(expressions=[one.copy() for one in group]) for group in groups]
    return exp.Group(expressions=[exp.GroupingSets(expressions=sets)])


def _aggregates(select: exp.Select) -> bool:
    """Whether the SELECT itself aggregates; windows and queries inside do not count."""
    pending: list[exp.Expr] = [*select.expressions]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            call = node.this.this if isinstance(node.this, exp.Filter) else node.this
            rest = [one for one in node.iter_expressions() if one is not node.this]
            pending += [*call.iter_expressions(), *rest]
        elif is_aggregate(node):
            return True
        else:
            pending += list(node.iter_expressions())
    return False


def _clause(kind: type[exp.Expr], conditions: Sequence[exp.Expr]) -> exp.Expr | None:
    if not conditions:
        return None
    return kind(this=exp.and_(*(operand(one) for one in conditions), copy=False))
