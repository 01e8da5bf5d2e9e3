"""FROM, WHERE -> tables and conditions: names resolved, derived tables and semi-joins inlined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, View
from sqlrs.compiler.alternatives import Choices
from sqlrs.compiler.complexity import spend_on
from sqlrs.compiler.conditions import as_column, reference
from sqlrs.compiler.flat import (
    Occurrence,
    conjuncts,
    is_comma,
    name_of,
    operand,
    stand_at,
)
from sqlrs.compiler.from_items import (
    Columns,
    FromItem,
    alias_name,
    joined,
    named,
    renamed,
    without_rows,
)
from sqlrs.compiler.hints import instead_of
from sqlrs.compiler.literals import is_literal
from sqlrs.compiler.names import Relation, Scope, find_table, fold, fold_stored, home_of, qualifiers
from sqlrs.compiler.outer_joins import OUTER, Role
from sqlrs.compiler.resolving import resolved, with_type
from sqlrs.compiler.source import Source
from sqlrs.compiler.surroundings import CommonTable, Surroundings, within
from sqlrs.compiler.understand import read_select
from sqlrs.dialects import dialect_named
from sqlrs.effort import spend
from sqlrs.errors import QueryRefused
from sqlrs.records import dataclass
from sqlrs.trees.naming import free_name

MAX_TABLES = 64
_STEPS_PER_SELECT = 20
_UNKNOWN = ("unknown_table", "unknown_column")


@dataclass(frozen=True, eq=False)
class FilteredRows:
    """FROM and WHERE of a SELECT; ``distinct`` comes from a single DISTINCT derived table."""

    scope: Scope
    distinct: tuple[exp.Expr, ...] | None


@dataclass(eq=False)
class RowReader:
    """Collects the tables and conditions of one query while it is taken apart."""

    catalog: Catalog
    source: Source
    views: dict[tuple[str | None, str], exp.Select] = field(default_factory=dict)
    occurrences: list[Occurrence] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)
    choices: Choices | None = None

    def body(self, select: exp.Select, place: Surroundings) -> FilteredRows:
        """FROM and WHERE of a SELECT."""
        spend(_STEPS_PER_SELECT)
        place = self._with_common_tables(select, place)
        source = select.args.get("from_")
        if source is None:
            raise self.source.refusal("no_table", select)
        items = self._items(source.this, select.args.get("joins") or [], place)
        relations = tuple(relation for item in items for relation in item.relations)
        self._check_aliases(relations, select)
        visible = tuple(column for item in items for column in item.visible)
        scope = Scope(relations, visible, place.parent)
        where = select.args.get("where")
        if where is not None:
            self.condition(where.this, scope, place)
        return FilteredRows(scope, items[0].distinct)

    def _aside(self) -> RowReader:
        """One that only looks: what it finds is not part of the query."""
        choices = None if self.choices is None else Choices()
        return RowReader(self.catalog, self.source, self.views, choices=choices)

    def _with_common_tables(self, select: exp.Query, place: Surroundings) -> Surroundings:
        clause = select.args.get("with_")
        known = dict(place.known)
        for cte in clause.expressions if clause else ():
            name = fold(cte.args["alias"].this, self.source.dialect)
            if not isinstance(cte.this, exp.Select | exp.SetOperation):
                raise self.source.refusal("table_form", cte)
            entry = CommonTable(cte, dict(known))
            known[name] = entry
            # A CTE that nobody reads must still be a query of the language.
            scratch = self._aside()
            scratch._common_table(entry, Surroundings(known, None, True, "", place.views))
        return Surroundings(known, place.parent, place.outer, place.prefix, place.views)

    def _check_aliases(self, relations: tuple[Relation, ...], select: exp.Select) -> None:
        seen: set[str] = set()
        for relation in relations:
            if relation.alias is None:
                continue
            if relation.alias in seen:
                raise self.source.refusal(
                    "duplicate_alias",
                    self._second_named(select, relation.alias),
                    f"two tables here are called {relation.alias}",
                )
            seen.add(relation.alias)

    def _second_named(self, select: exp.Select, alias: str) -> exp.Expr:
        named = [
            part
            for part in select.find_all(exp.Table, exp.Subquery, bfs=False)
            if fold(name_of(part), self.source.dialect) == alias
        ]
        return named[1] if len(named) > 1 else select

    # Items of FROM.

    def _items(self, first: exp.Expr, joins: list[exp.Join], place: Surroundings) -> list[FromItem]:
        """What commas separate in FROM; only a single one may be DISTINCT."""
        chains: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for join in joins:
            if is_comma(join):
                chains.append((join.this, []))
            else:
                chains[-1][1].append(join)
        items = [self._chain(tree, following, place) for tree, following in chains]
        for item, (tree, _) in zip(items, chains, strict=True):
            if len(items) > 1 and item.distinct is not None:
                raise self.source.refusal("distinct", tree)
        return items

    def _chain(self, first: exp.Expr, joins: list[exp.Join], place: Surroundings) -> FromItem:
        """An item and what is joined with it, from left to right."""
        outer = [i for i, join in enumerate(joins) if join.args.get("side")]
        if outer:
            # What is left of an outer join may be left out: that is decided before it is read.
            item = self._outer(first, joins[: outer[-1]], joins[outer[-1]], place)
            joins = joins[outer[-1] + 1 :]
        else:
            item = self._item(first, place)
        for join in joins:
            item = self._joined(item, self._item(join.this, place), join, place)
        return item

    def _item(self, tree: exp.Expr, place: Surroundings) -> FromItem:
        joins = tree.args.get("joins") or []
        if joins:
            for join in joins:
                if is_comma(join):
                    raise self.source.refusal("join_form", join)
            alone = tree.copy()
            alone.set("joins", None)
            return self._chain(alone, joins, place)
        if isinstance(tree, exp.Table):
            return self._table(tree, place)
        if isinstance(tree, exp.Subquery):
            return self._subquery(tree, place)
        raise self.source.refusal("table_form", tree)

    def _outer(
        self, first: exp.Expr, before: list[exp.Join], join: exp.Join, place: Surroundings
    ) -> FromItem:
        """One part of an outer join: the join, or rows of one side with NULL for the other.

        Those of a side are all its rows, less those with a partner: docs/proofs/signed.md.
        """
        if self.choices is None:
            raise self.source.refusal("outer_join", join)
        if not place.outer:
            raise self.source.refusal(
                "outer_join",
                join,
                "an outer join inside EXISTS, IN or another outer join's "
                "missing side is not answered",
            )
        parts = OUTER[join.args["side"]]
        part = parts[self.choices.of(*(one.coefficient for one in parts))]
        hidden = Surroundings(place.known, place.parent, False, place.prefix, place.views)
        looking = self._aside()
        left = (looking if part.left is Role.ABSENT else self)._chain(
            first, before, hidden if part.left is Role.PARTNER else place
        )
        right = (looking if part.right is Role.ABSENT else self)._item(
            join.this, hidden if part.right is Role.PARTNER else place
        )
        if left.distinct is not None or right.distinct is not None:
            raise self.source.refusal("distinct", join)
        if Role.ABSENT not in (part.left, part.right):
            both = self._joined(left, right, join, hidden if part.coefficient < 0 else place)
            if part.coefficient > 0:
                return both
        if part.left is not Role.SHOWN:
            left = without_rows(left, (looking if part.left is Role.ABSENT else self)._type)
        if part.right is not Role.SHOWN:
            right = without_rows(right, (looking if part.right is Role.ABSENT else self)._type)
        return joined(left, right, join, self.source, right_stays=part.left is not Role.SHOWN)[0]

    def _type(self, value: exp.Expr) -> ColumnType | None:
        """The type of a column of an occurrence; None for other expressions."""
        column = as_column(value)
        if column is None:
            return None
        alias, name = reference(column)
        return next(o.table.column(name).type for o in self.occurrences if o.alias == alias)

    def _subquery(self, tree: exp.Subquery, place: Surroundings) -> FromItem:
        inner = tree.this
        alias = tree.args.get("alias")
        if isinstance(inner, exp.Select | exp.SetOperation):
            name = alias_name(alias, self.source)
            columns, distinct = self._derived(inner, place, name or "")
            return named(name, columns, alias, distinct, self.source)
        if not isinstance(inner, exp.Table | exp.Subquery):
            raise self.source.refusal("table_form", tree)
        item = self._item(inner, place)
        if alias is None:
            return item
        return named(
            alias_name(alias, self.source), item.visible, alias, item.distinct, self.source
        )

    def _table(self, tree: exp.Table, place: Surroundings) -> FromItem:
        alias = tree.args.get("alias")
        name = alias_name(alias, self.source) or fold(tree.this, self.source.dialect)
        common = place.known.get(fold(tree.this, self.source.dialect))
        if common is not None and tree.args.get("db") is None:
            columns, distinct = self._common_table(common, within(place, name))
            return named(name, columns, alias, distinct, self.source)
        entry = find_table(tree, self.catalog, self.source)
        schema = home_of(entry, self.catalog) if alias is None else None
        if isinstance(entry, View):
            columns, distinct = self._view(entry, tree, within(place, name))
            return named(name, columns, alias, distinct, self.source, schema=schema)
        if len(self.occurrences) >= MAX_TABLES:
            raise self.source.refusal(
                "too_complex", tree, f"more than {MAX_TABLES} tables are joined"
            )
        unique = self._unique(place.prefix, name)
        self.occurrences.append(Occurrence(unique, entry, place.outer, tree))
        own = tuple(
            (
                fold_stored(column.name, self.source.dialect),
                exp.Column(
                    this=exp.Identifier(this=column.name, quoted=True),
                    table=exp.Identifier(this=unique, quoted=True),
                ),
            )
            for column in entry.columns
        )
        return named(name, own, alias, None, self.source, schema=schema)

    def _common_table(
        self, common: CommonTable, place: Surroundings
    ) -> tuple[Columns, tuple[exp.Expr, ...] | None]:
        inner = Surroundings(common.known, None, place.outer, place.prefix, place.views)
        columns, distinct = self._select(common.tree.this, inner)
        return renamed(columns, common.tree.args["alias"], self.source), distinct

    def _view(
        self, view: View, tree: exp.Table, place: Surroundings
    ) -> tuple[Columns, tuple[exp.Expr, ...] | None]:
        identity = (view.schema, view.name)
        if identity in place.views:
            raise self.source.refusal("recursive", tree, f"view {view.name} refers to itself")
        select = self._definition(view, tree).copy()
        stand_at(select, self.source.span(tree.this).start, self.source.span(tree.this).end - 1)
        inner = Surroundings({}, None, place.outer, place.prefix, place.views | {identity})
        try:
            return self._select(select, inner)
        except QueryRefused as error:
            # Of a view that PostgreSQL keeps, every name means something.
            has_rights = dialect_named(self.source.dialect).views_have_rights
            if place.views or not has_rights or error.code not in _UNKNOWN:
                raise
            raise self.source.refusal(
                error.code,
                tree,
                f"of what view {view.name} reads, the role of this connection may not read all",
                f"{error.message} for it; the owner can GRANT SELECT on the columns of the tables "
                "behind the view that it names",
            ) from None

    def _definition(self, view: View, tree: exp.Table) -> exp.Select:
        """The tree of a view, read once however often the query names it; copying it is counted."""
        identity = (view.schema, view.name)
        if identity not in self.views:
            try:
                self.views[identity] = read_select(view.sql, self.catalog, inner=True).tree
            except QueryRefused as error:
                raise self.source.refusal(
                    error.code, tree, f"in view {view.name}: {error.message}", error.hint
                ) from error
        spend_on(self.views[identity])
        return self.views[identity]

    def _derived(
        self, select: exp.Query, place: Surroundings, name: str
    ) -> tuple[Columns, tuple[exp.Expr, ...] | None]:
        # A derived table sees no row of the queries around it: LATERAL is outside the language.
        inner = within(place, name)
        return self._select(
            select, Surroundings(inner.known, None, inner.outer, inner.prefix, inner.views)
        )

    def _select(
        self, select: exp.Query, place: Surroundings
    ) -> tuple[Columns, tuple[exp.Expr, ...] | None]:
        if not isinstance(select, exp.Select):
            return self._branch(select, place), None
        body = self.body(select, place)
        columns = self._projection(select, body.scope)
        if select.args.get("distinct"):
            return columns, tuple(value for _, value in columns)
        return columns, body.distinct

    def _branch(self, union: exp.Query, place: Surroundings) -> Columns:
        """One branch of UNION ALL, under the names of the first."""
        branches = list(_branches(union))
        if self.choices is None or not place.outer:
            raise self.source.refusal("set_operation", union, hint=instead_of(union))
        place = self._with_common_tables(union, place)
        looking = [self._aside() for _ in branches]
        shown = [one._select(b, place) for one, b in zip(looking, branches, strict=True)]
        for (columns, _), one, branch in zip(shown, looking, branches, strict=True):
            if len(columns) != len(shown[0][0]):
                raise self.source.refusal("wrong_columns", branch)
            types = [one._type(value) for _, value in columns]
            first = [looking[0]._type(value) for _, value in shown[0][0]]
            if None in first or first != types:
                raise self.source.refusal(
                    "set_operation",
                    branch,
                    "the branches of UNION ALL must select columns of the same types",
                )
        chosen = branches[self.choices.of(*(1 for _ in branches))]
        columns, distinct = self._select(chosen, place)
        if distinct is not None:
            raise self.source.refusal("distinct", chosen)
        return tuple(
            (name, value) for (name, _), (_, value) in zip(shown[0][0], columns, strict=True)
        )

    def _projection(self, select: exp.Select, scope: Scope) -> Columns:
        columns: list[tuple[str | None, exp.Expr]] = []
        for output in select.expressions:
            if isinstance(output, exp.Star):
                found = scope.visible
            elif isinstance(output, exp.Column) and isinstance(output.this, exp.Star):
                found = self._all_columns_of(output, scope)
            else:
                found = (self._output(output, scope),)
            spend(len(found))
            columns += found
        return tuple(columns)

    def _output(self, output: exp.Expr, scope: Scope) -> tuple[str | None, exp.Expr]:
        """One expression of a SELECT list and the name that it has outside."""
        value = with_type(resolved(output.unalias(), scope, self.source), self.source)
        name = output.args.get("alias") if isinstance(output, exp.Alias) else None
        if name is None and isinstance(output, exp.Column):
            name = output.this
        return (fold(name, self.source.dialect) if name else None), value

    def _all_columns_of(self, star: exp.Column, scope: Scope) -> Columns:
        alias, schema = qualifiers(star, self.source.dialect)
        relation = scope.relation(alias or "", schema, star, self.source)
        if relation is not None:
            return relation.columns
        raise self.source.refusal("unknown_table", star, f"no table here is called {alias}")

    def _joined(
        self, left: FromItem, right: FromItem, join: exp.Join, place: Surroundings
    ) -> FromItem:
        if left.distinct is not None or right.distinct is not None:
            raise self.source.refusal("distinct", join)
        both, equalities = joined(left, right, join, self.source)
        self.conditions += equalities
        on = join.args.get("on")
        if on is not None:
            self.condition(on, Scope(both.relations, both.visible, place.parent), place)
        return both

    def _unique(self, prefix: str, name: str) -> str:
        wanted = f"{prefix}_{name}" if prefix else name
        return free_name(wanted, {occurrence.alias.lower() for occurrence in self.occurrences})

    # Conditions.

    def condition(self, condition: exp.Expr, scope: Scope, place: Surroundings) -> None:
        """Add what WHERE, ON or FILTER says of the rows."""
        for part in conjuncts(condition):
            if isinstance(part, exp.Exists):
                self._exists(part, scope, place)
            elif isinstance(part, exp.In) and part.args.get("query"):
                self._in_subquery(part, scope, place)
            elif self.choices is not None and place.outer and _is_negated(part):
                # All rows, less those for which the subquery has one.
                if self.choices.of(1, -1):
                    self._without(part.this.unnest(), scope, place)
            else:
                self.conditions.append(resolved(part, scope, self.source))

    def _without(self, part: exp.Expr, scope: Scope, place: Surroundings) -> None:
        if isinstance(part, exp.Exists):
            self._exists(part, scope, place)
            return
        assert isinstance(part, exp.In)
        for one, other in self._in_subquery(part, scope, place):
            if not (self._never_null(one) and self._never_null(other)):
                raise self.source.refusal(
                    "negated_subquery",
                    part,
                    "NOT IN (SELECT …) needs columns on both sides that are never NULL",
                    "write NOT EXISTS (SELECT 1 FROM … WHERE …) instead",
                )

    def _never_null(self, value: exp.Expr) -> bool:
        column = as_column(value)
        if column is None:
            return is_literal(value) and not isinstance(value.unnest(), exp.Null)
        alias, name = reference(column)
        tables = [o.table for o in self.occurrences if o.alias == alias]
        return bool(tables) and not tables[0].column(name).nullable

    def _exists(self, exists: exp.Exists, scope: Scope, place: Surroundings) -> None:
        self._semi_join(exists.this, exists, scope, place)

    def _in_subquery(
        self, condition: exp.In, scope: Scope, place: Surroundings
    ) -> list[tuple[exp.Expr, exp.Expr]]:
        """Make it a semi-join; what is set equal, pair by pair."""
        tested = condition.this.unnest()
        parts = tested.expressions if isinstance(tested, exp.Tuple) else [tested]
        values = [resolved(part, scope, self.source) for part in parts]
        columns = self._semi_join(condition.args["query"], condition, scope, place)
        if len(columns) != len(values):
            raise self.source.refusal("wrong_columns", condition)
        span = self.source.span(condition.this)
        for value, (_, column) in zip(values, columns, strict=True):
            equality = exp.EQ(this=operand(value), expression=operand(column))
            stand_at(equality, span.start, span.end - 1)
            self.conditions.append(equality)
        return [(value, column) for value, (_, column) in zip(values, columns, strict=True)]

    def _semi_join(
        self, subquery: exp.Expr, place_in_text: exp.Expr, scope: Scope, place: Surroundings
    ) -> Columns:
        while isinstance(subquery, exp.Subquery) and subquery.args.get("alias") is None:
            subquery = subquery.this
        if not isinstance(subquery, exp.Select):
            raise self.source.refusal("subquery", place_in_text)
        inner = Surroundings(place.known, scope, False, place.prefix, place.views)
        return self._select(subquery, inner)[0]


def _is_negated(part: exp.Expr) -> bool:
    """Whether it is NOT EXISTS or NOT IN (SELECT …)."""
    inside = part.this.unnest() if isinstance(part, exp.Not) else None
    is_in = isinstance(inside, exp.In) and inside.args.get("query") is not None
    return is_in or isinstance(inside, exp.Exists)


def _branches(query: exp.Expr) -> Iterator[exp.Query]:
    """The branches of nested UNION ALL, in order."""
    pending = [query]
    while pending:
        one = pending.pop()
        one = one.unnest() if isinstance(one, exp.Subquery) else one
        if isinstance(one, exp.Union) and (one is query or not one.args.get("with_")):
            pending += [one.expression, one.this]
        elif isinstance(one, exp.Query):
            yield one
