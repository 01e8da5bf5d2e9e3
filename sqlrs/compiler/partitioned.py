"""The walk over a query in which every row belongs to one unit, or to nobody: bottom-up.

Every relation is public, or private with the unit's id in a column. The tree that comes out is the
one that was understood here: relations and columns have names of their own in it, and only rows
that have an owner are read. Why no row of another unit can change what a unit contributes:
docs/proofs/partitioned.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Table, View
from sqlrs.compiler.complexity import spend_on
from sqlrs.compiler.conditions import Reference
from sqlrs.compiler.coverage import check_coverage
from sqlrs.compiler.flat import conjuncts, is_comma, stand_at
from sqlrs.compiler.from_items import FromItem, alias_name, named
from sqlrs.compiler.names import Relation, Scope, find_table, fold, home_of
from sqlrs.compiler.parse import parse_query
from sqlrs.compiler.partitioned_expressions import ExpressionReader, ReadQuery, Sight
from sqlrs.compiler.partitioned_items import beside, derived_rows, scanned_rows
from sqlrs.compiler.partitioned_joins import join_columns, joined_rows, not_joined
from sqlrs.compiler.partitioned_nodes import check_nodes
from sqlrs.compiler.partitioned_rows import (
    Body,
    Ownership,
    Rows,
    Witness,
    equalities_in,
    united,
)
from sqlrs.compiler.partitioned_select import SelectReader
from sqlrs.compiler.partitioned_sets import branches_together
from sqlrs.compiler.source import Source, read_source
from sqlrs.compiler.unit_kinds import Known, kind_in
from sqlrs.compiler.unit_scan import INNER_NAMES
from sqlrs.compiler.unit_values import placed_at_origins
from sqlrs.effort import spend
from sqlrs.errors import QueryRefused
from sqlrs.records import dataclass
from sqlrs.trees.naming import free_name, plain_name

MAX_RELATIONS = 256
_STEPS_PER_SELECT = 40
_STEPS_PER_SCAN = 20


@dataclass(frozen=True, eq=False)
class _NamedQuery:
    """A CTE and the names in sight where it stood."""

    tree: exp.CTE
    known: Mapping[str, _NamedQuery]


@dataclass(frozen=True, eq=False)
class Place:
    """Where a SELECT stands: CTEs in sight, the row around it, views that are being read."""

    known: Mapping[str, _NamedQuery] = field(default_factory=dict)
    around: Sight | None = None
    views: frozenset[tuple[str | None, str]] = frozenset()

    @property
    def unit(self) -> Ownership | None:
        """The unit in sight."""
        return None if self.around is None else self.around.unit


def groups_inside_units(select: exp.Select, catalog: Catalog, source: Source) -> bool:
    """Whether every group of a SELECT holds rows of one unit alone."""
    try:
        check_nodes(select, source, catalog)
        walk = Walk(catalog, source)
        body = walk.body(select, Place())
        sets = walk.selecting(select, Place()).sets(body)
    except QueryRefused as error:
        if error.code in ("bad_literal", "too_complex"):
            # Wherever it stands, nothing else can be said of the text.
            raise
        return False
    unit = body.unit
    return unit is not None and bool(sets) and all(unit.held_by(keys) for keys in sets)


def _without_subqueries(
    first: exp.Expr, joins: Sequence[exp.Join]
) -> tuple[Sequence[exp.Join], list[exp.Expr]]:
    """Joins whose conditions hold no subqueries, and those that do, which WHERE may have instead.

    Where no row is kept without a partner, it makes no difference. WHERE sees more relations: a
    name of ON means the same there, or several things, and is refused.
    """
    nested = any(one.args.get("joins") for one in (first, *(join.this for join in joins)))
    if nested or any(join.args.get("side") for join in joins):
        return joins, []
    kept: list[exp.Join] = []
    moved: list[exp.Expr] = []
    for join in joins:
        on = join.args.get("on")
        parts = [] if on is None else list(conjuncts(on))
        inner = [one for one in parts if one.find(exp.Query) is not None]
        if inner:
            spend_on(join)
            join = join.copy()
            rest = [one.copy() for one in parts if one not in inner]
            join.set("on", exp.and_(*rest, copy=False) if rest else exp.true())
            moved += inner
        kept.append(join)
    return kept, moved


@dataclass(eq=False)
class Walk:
    """One walk over one statement; ``tables`` are those that were met, ``texts`` as well."""

    catalog: Catalog
    source: Source
    columns: dict[Reference, Known] = field(default_factory=dict)
    tables: dict[tuple[str | None, str], Table] = field(default_factory=dict)
    texts: dict[tuple[str, ColumnType], None] = field(default_factory=dict)
    _views: dict[tuple[str | None, str], exp.Query] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=lambda: set(INNER_NAMES))
    _private: int = 0

    def query(self, tree: exp.Expr, place: Place) -> ReadQuery:
        """A SELECT or a set operation, understood; or a refusal."""
        before = self._private
        part = self._query(tree, place)
        # Also where only a query inside it reads private rows.
        reads = part.word is None and self._private > before
        return replace(part, bound=True) if reads else part

    def _query(self, tree: exp.Expr, place: Place) -> ReadQuery:
        spend(_STEPS_PER_SELECT)
        tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
        if isinstance(tree, exp.SetOperation):
            place = self.with_common_tables(tree, place)
            parts = [self.query(side, place) for side in (tree.this, tree.expression)]
            return branches_together(tree, parts, self.source)
        if not isinstance(tree, exp.Select):
            raise self.source.refusal("table_form", tree)
        return self.selecting(tree, place).read(self.body(tree, place))

    def selecting(self, select: exp.Select, place: Place) -> SelectReader:
        """What reads a SELECT behind its FROM and WHERE."""
        place = self.with_common_tables(select, place)
        return SelectReader(select, self.expressions(place), self.columns, self.source)

    def body(self, select: exp.Select, place: Place) -> Body:
        """FROM and WHERE: what must be equal is known before subqueries are read."""
        place = self.with_common_tables(select, place)
        source = select.args.get("from_")
        if source is None:
            raise self.source.refusal("no_table", select)
        joins, moved = _without_subqueries(source.this, select.args.get("joins") or [])
        rows = self._from(source.this, joins, place)
        self._check_aliases(rows.item.relations, select)
        parent = None if place.around is None else place.around.scope
        scope = Scope(rows.item.relations, rows.item.visible, parent)
        where = select.args.get("where")
        written = [*moved, *(conjuncts(where.this) if where is not None else ())]
        plain = [one for one in written if one.find(exp.Query) is None]
        sight = Sight(scope, None, None, own=rows.aliases)
        conditions = [self.expressions(place).read(one, sight, top=True) for one in plain]
        unit, bound, added = self._unit(rows, conditions, place, select)
        sight = replace(sight, unit=unit or place.unit, rows=unit or place.unit)
        inner_ones = [one for one in written if one.find(exp.Query) is not None]
        subqueries = [self.expressions(place).read(one, sight, top=True) for one in inner_ones]
        rows = replace(rows, witness=self._witnessed(rows.witness, conditions))
        whole = (*conditions, *added, *subqueries)
        return Body(rows, scope, whole, unit, place.unit, bound)

    def expressions(self, place: Place) -> ExpressionReader:
        """What reads the expressions of a SELECT that stands there."""

        def subquery(tree: exp.Expr, sight: Sight) -> ReadQuery:
            return self.query(tree, Place(place.known, sight, place.views))

        return ExpressionReader(self.source, self.columns, subquery, self.texts)

    def _unit(
        self, rows: Rows, conditions: Sequence[exp.Expr], place: Place, select: exp.Select
    ) -> tuple[Ownership | None, bool, list[exp.Expr]]:
        if not rows.private:
            return None, False, []
        equal = [*rows.equal, *equalities_in(conditions)]
        if place.unit is not None:
            whole, added = united((*rows.owners, place.unit), equal, self.kind)
            if len(whole) == 1:
                return whole[0], True, added
        owners, added = united(rows.owners, equal, self.kind)
        if len(owners) > 1:
            raise not_joined(owners, select.args["from_"], self.source)
        return owners[0], False, added

    def kind(self, tree: exp.Expr) -> ColumnType | None:
        """The type of an expression over the relations met so far."""
        return kind_in(tree, self.columns)

    def _witnessed(self, witness: Witness, conditions: Sequence[exp.Expr]) -> Witness:
        found = [placed_at_origins(one, self.columns.get) for one in conditions]
        return witness + Witness((), tuple(one for one in found if one is not None))

    def with_common_tables(self, tree: exp.Query, place: Place) -> Place:
        """The place inside a query, its CTEs in sight."""
        clause = tree.args.get("with_")
        if clause is None:
            return place
        known = dict(place.known)
        for cte in clause.expressions:
            name = fold(cte.args["alias"].this, self.source.dialect)
            known[name] = _NamedQuery(cte, dict(known))
        return replace(place, known=known)

    def _check_aliases(self, relations: Sequence[Relation], select: exp.Select) -> None:
        names = [one.alias for one in relations if one.alias is not None]
        twice = next((name for name in names if names.count(name) > 1), None)
        spend(len(names))
        if twice is not None:
            message = f"two tables here are called {twice}"
            raise self.source.refusal("duplicate_alias", select, message)

    # FROM.

    def _from(self, first: exp.Expr, joins: Sequence[exp.Join], place: Place) -> Rows:
        """What commas separate, each with its joins."""
        chains: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for join in joins:
            if is_comma(join):
                chains.append((join.this, []))
            else:
                chains[-1][1].append(join)
        whole: Rows | None = None
        for tree, following in chains:
            rows = self._chain(tree, following, place, whole)
            if whole is None:
                whole = rows
                continue
            both = FromItem(
                whole.item.relations + rows.item.relations, whole.item.visible + rows.item.visible
            )
            whole = self._joined(whole, rows, exp.Join(kind="CROSS"), both, ())
        assert whole is not None
        return whole

    def _chain(
        self,
        first: exp.Expr,
        joins: Sequence[exp.Join],
        place: Place,
        before: Rows | None = None,
    ) -> Rows:
        rows = self._item_beside(first, before, place)
        for join in joins:
            if isinstance(join.this, exp.Lateral) and join.args.get("side") in ("RIGHT", "FULL"):
                raise self.source.refusal("lateral", join.this)
            right = self._item_beside(join.this, rows, place)
            item, equal = join_columns(rows, right, join, self.source)
            on = join.args.get("on")
            conditions = list(equal)
            if on is not None:
                parent = None if place.around is None else place.around.scope
                scope = Scope(item.relations, item.visible, parent)
                sight = Sight(scope, None, None, subqueries=False)
                reader = self.expressions(place)
                conditions += [reader.read(one, sight, top=True) for one in conjuncts(on)]
            rows = self._joined(rows, right, join, item, conditions)
        return rows

    def _joined(
        self,
        left: Rows,
        right: Rows,
        join: exp.Join,
        item: FromItem,
        conditions: Sequence[exp.Expr],
    ) -> Rows:
        rows = joined_rows(
            left, right, join, item, conditions, self.columns, self.kind, self.source
        )
        if join.args.get("side"):
            return rows
        return replace(rows, witness=self._witnessed(rows.witness, conditions))

    def _item_beside(self, tree: exp.Expr, left: Rows | None, place: Place) -> Rows:
        """An item of FROM; a query behind LATERAL reads the row of what stands before it."""
        if not isinstance(tree, exp.Lateral):
            return self._item(tree, place)
        if left is None or not isinstance(tree.this, exp.Subquery):
            raise self.source.refusal("lateral", tree)
        unit = place.unit
        if left.private:
            owners, added = united(left.owners, left.equal, self.kind)
            unit = None if added or len(owners) > 1 else owners[0]
        parent = None if place.around is None else place.around.scope
        scope = Scope(left.item.relations, left.item.visible, parent)
        sight = Sight(scope, unit, unit, own=left.aliases)
        part = self.expressions(place).bound(tree.this, tree, sight)
        alias = tree.args.get("alias")
        return beside(self._derived(part, alias_name(alias, self.source), alias), self.columns)

    def _item(self, tree: exp.Expr, place: Place) -> Rows:
        joins = tree.args.get("joins") or []
        if joins:
            if any(map(is_comma, joins)):
                raise self.source.refusal("join_form", tree)
            alone = tree.copy()
            alone.set("joins", None)
            return self._chain(alone, joins, place)
        if isinstance(tree, exp.Table):
            return self._table(tree, place)
        if not isinstance(tree, exp.Subquery):
            raise self.source.refusal("table_form", tree)
        alias = tree.args.get("alias")
        if isinstance(tree.this, exp.Table | exp.Subquery):
            rows = self._item(tree.this, place)
            if alias is None:
                return rows
            name = alias_name(alias, self.source)
            return replace(rows, item=named(name, rows.item.visible, alias, None, self.source))
        part = self.query(tree.this, Place(place.known, None, place.views))
        return self._derived(part, alias_name(alias, self.source), alias)

    def _table(self, tree: exp.Table, place: Place) -> Rows:
        alias = tree.args.get("alias")
        name = alias_name(alias, self.source) or fold(tree.this, self.source.dialect)
        common = place.known.get(fold(tree.this, self.source.dialect))
        if common is not None and tree.args.get("db") is None:
            spend_on(common.tree)
            part = self.query(common.tree.this, Place(common.known, None, place.views))
            rows = self._derived(part, name, common.tree.args["alias"])
            return replace(rows, item=named(name, rows.item.visible, alias, None, self.source))
        entry = find_table(tree, self.catalog, self.source)
        schema = home_of(entry, self.catalog) if alias is None else None
        if isinstance(entry, View):
            part = self._view(entry, tree, place)
            rows = self._derived(part, name, None)
        else:
            rows = self._scan(entry, name, tree)
        item = named(name, rows.item.visible, alias, None, self.source, schema=schema)
        return replace(rows, item=item)

    def _view(self, view: View, tree: exp.Table, place: Place) -> ReadQuery:
        identity = (view.schema, view.name)
        if identity in place.views:
            raise self.source.refusal("recursive", tree, f"view {view.name} refers to itself")
        if identity not in self._views:
            try:
                source = read_source(view.sql, self.catalog.dialect)
                found = parse_query(source)
                check_coverage(found, source, statement=True)
                check_nodes(found, source, self.catalog)
            except QueryRefused as error:
                message = f"in view {view.name}: {error.message}"
                raise self.source.refusal(error.code, tree, message, error.hint) from error
            self._views[identity] = found
        spend_on(self._views[identity])
        query = self._views[identity].copy()
        span = self.source.span(tree.this)
        stand_at(query, span.start, span.end - 1)
        return self.query(query, Place({}, None, place.views | {identity}))

    def _derived(self, part: ReadQuery, name: str | None, alias: exp.Expr | None) -> Rows:
        return derived_rows(part, self._fresh(name), name, alias, self.columns, self.source)

    def _scan(self, table: Table, name: str, place: exp.Table) -> Rows:
        spend(_STEPS_PER_SCAN + 2 * len(table.columns))
        self._private += table.private
        rows, read = scanned_rows(
            table, self._fresh(name), name, place, self.columns, self.catalog, self.source
        )
        self.tables.update((one.identity, one) for one in read)
        return rows

    def _fresh(self, name: str | None) -> str:
        """An alias that no other relation has, nor anything inside a scan."""
        if len(self._taken) > MAX_RELATIONS:
            raise self.source.refusal("too_complex")
        return free_name(plain_name(name or "q"), self._taken)
