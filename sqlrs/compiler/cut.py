"""One statement -> the aggregates below, which read private rows, and the rest above them.

A SELECT that aggregates private rows is a cut: what it reads and groups by is released as a small
relation of its own, and the statement goes on over that relation. What stands above the cuts costs
nothing and never meets a private row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import IntEnum

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.aggregates import is_aggregate, split_aggregate
from sqlrs.compiler.names import find_table, fold
from sqlrs.compiler.output_names import name_outputs
from sqlrs.compiler.partitioned import groups_inside_units
from sqlrs.compiler.released_select import AFTER, ReleasedSelect, normal
from sqlrs.compiler.source import Source
from sqlrs.effort import spend
from sqlrs.records import dataclass
from sqlrs.trees.copies import copied

_STEPS_PER_SELECT = 20
_NESTED = "an aggregate cannot stand inside another one"
_GROUP_FORM = "ROLLUP, CUBE and GROUPING SETS are not answered"
_GROUP_HINT = "inside a query they are, where every set holds the id of the unit"
_OWN_NAME = re.compile(r"(released|public)_\d+", re.ASCII | re.IGNORECASE)


class Holds(IntEnum):
    """What a relation of the statement holds."""

    PUBLIC = 0
    RELEASED = 1
    PRIVATE = 2


@dataclass(frozen=True, eq=False)
class Below:
    """One cut: rows of ``select`` (FROM and WHERE), grouped by the keys, aggregated.

    Its relation is called ``name``; the keys are its columns k0, k1, …, the aggregates a0, a1, …:
    counts and sums, perhaps with FILTER.
    ``same``: expressions that must mean the same as the key of that number. ``aliases``: names of
    outputs that keys were given by; where a column of FROM has the name too, it must be the same.
    """

    name: str
    select: exp.Select
    keys: tuple[exp.Expr, ...]
    aggregates: tuple[exp.Expr, ...]
    same: tuple[tuple[exp.Expr, int], ...] = ()
    aliases: tuple[tuple[exp.Column, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Cut:
    """A statement over the relations of ``belows`` and public tables: public_0, public_1, …."""

    above: exp.Query
    belows: tuple[Below, ...]
    public: tuple[Table, ...]


def cut(statement: exp.Query, catalog: Catalog, source: Source) -> Cut:
    """Cut a statement at its aggregates over private rows, or refuse it."""
    cutter = _Cutter(catalog, source)
    above = exp.Subquery(this=copied(statement))
    kind = cutter.query(above.this, {})
    if kind is Holds.PRIVATE:
        selected = next(iter(above.find_all(exp.Select)), statement)
        raise source.refusal(
            "not_a_count", selected.expressions[0], "rows of private tables are not shown"
        )
    cutter.drop_rows(above)
    public = cutter.rename_public(above)
    name_outputs(above, source.dialect)
    root = above.this
    root.pop()
    return Cut(root, tuple(cutter.belows), public)


@dataclass(frozen=True, eq=False)
class _Common:
    """A CTE in sight: what it holds, its tree as written, and the names in sight where it stood."""

    kind: Holds
    tree: exp.CTE
    known: Mapping[str, _Common]


_Known = Mapping[str, "_Common"]


@dataclass(eq=False)
class _Cutter:
    catalog: Catalog
    source: Source
    belows: list[Below] = field(default_factory=list)
    _public: list[tuple[exp.Table, Table]] = field(default_factory=list)
    _rows: list[exp.CTE] = field(default_factory=list)

    def query(self, tree: exp.Expr, known: _Known) -> Holds:
        """What a SELECT or a set operation holds; the cuts inside are made in its place."""
        spend(_STEPS_PER_SELECT)
        tree = tree.unnest() if isinstance(tree, exp.Subquery) else tree
        if isinstance(tree, exp.SetOperation):
            known = self._common_tables(tree, known)
            kinds = [self.query(side, known) for side in (tree.this, tree.expression)]
            self._check_mixture(kinds, tree)
            return max(kinds)
        if not isinstance(tree, exp.Select):
            raise self.source.refusal("table_form", tree)
        return self._select(tree, known)

    def drop_rows(self, tree: exp.Expr) -> None:
        """Take away the CTEs of private rows, which only cuts read."""
        for cte in self._rows:
            clause = cte.parent
            cte.pop()
            if isinstance(clause, exp.With) and not clause.expressions:
                clause.pop()

    def rename_public(self, tree: exp.Expr) -> tuple[Table, ...]:
        """Give the public tables that are left above names of their own, without schemas."""
        numbers: dict[tuple[str | None, str], int] = {}
        kept: list[Table] = []
        left = set(map(id, tree.find_all(exp.Table)))
        for item, entry in self._public:
            if id(item) not in left:
                continue
            if entry.identity not in numbers:
                numbers[entry.identity] = len(kept)
                kept.append(entry)
            if item.args.get("alias") is None:
                item.set("alias", exp.TableAlias(this=item.this.copy()))
            elif item.args["alias"].this is None:
                item.args["alias"].set("this", item.this.copy())
            item.set("this", exp.to_identifier(f"public_{numbers[entry.identity]}"))
            item.set("db", None)
        for column in tree.find_all(exp.Column):
            column.set("db", None)
        return tuple(kept)

    def _common_tables(self, tree: exp.Expr, known: _Known) -> _Known:
        clause = tree.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise self.source.refusal("recursive", clause)
        inside = dict(known)
        for cte in clause.expressions:
            # The tree as written: a cut inside is made once for each place that reads it.
            written = cte.copy()
            kind = self.query(cte.this, inside)
            if kind is Holds.PRIVATE:
                self._rows.append(cte)
            name = fold(cte.args["alias"].this, self.source.dialect)
            if _OWN_NAME.match(name):
                raise self.source.refusal("unsupported_name", cte.args["alias"])
            inside[name] = _Common(kind, written, dict(inside))
        return inside

    def _select(self, select: exp.Select, known: _Known) -> Holds:
        known = self._common_tables(select, known)
        kinds = [self._item(item, known) for item in _items(select)]
        aggregates = list(_own_aggregates(select))
        grouped = select.args.get("group") is not None or bool(aggregates)
        rows = max(kinds, default=Holds.PUBLIC)
        self._check_mixture(kinds, select)
        beside = next((one for one in _items(select) if isinstance(one, exp.Lateral)), None)
        if beside is not None and (rows is not Holds.PRIVATE or self.catalog.unit is None):
            raise self.source.refusal("lateral", beside)
        if rows is Holds.PRIVATE and (not grouped or self._keeps_the_unit(select, known)):
            # Its subqueries are conditions on private rows; the compiler reads them as such.
            return Holds.PRIVATE
        # So are those in WHERE of a cut; the others stand above it.
        own = rows is Holds.PRIVATE and self.catalog.unit is not None
        inside = _subqueries(
            select, () if rows is Holds.PRIVATE else ("where",), into_aggregates=not own
        )
        inner = [self._above(part, known) for part in inside]
        if rows is not Holds.PRIVATE:
            return max([rows, *inner])
        self._cut(select, aggregates, known)
        return Holds.RELEASED

    def _keeps_the_unit(self, select: exp.Select, known: _Known) -> bool:
        """Whether its groups are rows of one unit each: then what is around it aggregates them."""
        if self.catalog.unit is None or select.args.get("group") is None:
            return False
        common = _common_tables_of(select, known, self.source.dialect)
        whole = select
        if common is not None:
            whole = select.copy()
            whole.set("with_", common)
        return groups_inside_units(whole, self.catalog, self.source)

    def _above(self, query: exp.Query, known: _Known) -> Holds:
        """A query inside an expression above the cuts."""
        kind = self.query(query, known)
        if kind is Holds.PRIVATE:
            raise self.source.refusal("subquery", query)
        return kind

    def _item(self, item: exp.Expr, known: _Known) -> Holds:
        match item:
            case exp.Subquery(this=exp.Table() | exp.Subquery()):
                own = self._item(item.this, known)
            case exp.Subquery():
                own = self.query(item.this, known)
            case exp.Table(this=exp.Identifier()):
                name = fold(item.this, self.source.dialect)
                common = known.get(name) if item.args.get("db") is None else None
                own = self._stored(item) if common is None else common.kind
            case exp.Lateral(this=exp.Subquery()):
                own = self._beside(item, known)
            case _:
                raise self.source.refusal("table_form", item)
        kinds = [own, *(self._item(joined, known) for joined in _joined(item))]
        self._check_mixture(kinds, item)
        return max(kinds)

    def _beside(self, item: exp.Lateral, known: _Known) -> Holds:
        """What LATERAL reads: nothing in it is cut, for it is read once for each row beside it."""
        own = {fold(cte.args["alias"].this, self.source.dialect) for cte in item.find_all(exp.CTE)}
        kinds = [
            self._item(_bare(one), known)
            for one in item.find_all(exp.Table)
            if one.args.get("db") or fold(one.this, self.source.dialect) not in own
        ]
        if Holds.RELEASED in kinds:
            raise self.source.refusal("lateral", item)
        return max(kinds, default=Holds.PUBLIC)

    def _stored(self, item: exp.Table) -> Holds:
        entry = find_table(item, self.catalog, self.source)
        if isinstance(entry, Table):
            if entry.private:
                return Holds.PRIVATE
            self._public.append((item, entry))
            return Holds.PUBLIC
        # A view is read where it stands, by the compiler: it holds rows.
        return Holds.PRIVATE

    def _check_mixture(self, kinds: list[Holds], at: exp.Expr) -> None:
        if Holds.PRIVATE in kinds and Holds.RELEASED in kinds:
            raise self.source.refusal(
                "join_form",
                at,
                "released results cannot be joined with rows of private tables",
                "release the number first and write it as a constant; in Superset leave the limit "
                "on series empty",
            )

    def _cut(self, select: exp.Select, aggregates: list[exp.Expr], known: _Known) -> None:
        name = f"released_{len(self.belows)}"
        splits = [(one, split_aggregate(one, self.source)) for one in aggregates]
        keys, aliases = self._keys(select)
        released = ReleasedSelect(name, self.source)
        for key in keys:
            released.key(key)
        for aggregate, split in splits:
            released.aggregate(aggregate, split)
        rows = exp.Select(
            from_=copied(select.args["from_"]),
            joins=[copied(join) for join in select.args.get("joins") or ()],
            where=copied(select.args["where"]) if select.args.get("where") else None,
        )
        rows.set("with_", _common_tables_of(rows, known, self.source.dialect))
        released.take(select)
        aggregated, same = tuple(released.aggregates), tuple(released.same)
        self.belows.append(Below(name, rows, tuple(keys), aggregated, same, tuple(aliases)))

    def _keys(self, select: exp.Select) -> tuple[list[exp.Expr], list[tuple[exp.Column, int]]]:
        """The expressions of GROUP BY; a position or an alias means what is selected there."""
        group = select.args.get("group")
        if group is None:
            return [], []
        for form in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(form):
                raise self.source.refusal("group_by", group, _GROUP_FORM)
        if group.args.get("all"):
            return [e.unalias().copy() for e in select.expressions if not _aggregating(e)], []
        named = {
            fold(e.args["alias"], self.source.dialect): e.this
            for e in select.expressions
            if isinstance(e, exp.Alias)
        }
        keys: dict[exp.Expr, exp.Expr] = {}
        aliases: list[tuple[exp.Column, int]] = []
        for written in group.expressions:
            key = self._meant(written.unnest(), select, named).unnest()
            if isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
                hint = _GROUP_HINT if self.catalog.unit is not None else None
                raise self.source.refusal("group_by", key, _GROUP_FORM, hint)
            if _aggregating(key):
                raise self.source.refusal("aggregate", written, _NESTED)
            meaning = normal(key, self.source.dialect, bare=False)
            keys.setdefault(meaning, key.copy())
            if isinstance(written.unnest(), exp.Column) and not written.unnest().table:
                aliases.append((written.unnest().copy(), list(keys).index(meaning)))
        return list(keys.values()), aliases

    def _meant(
        self, written: exp.Expr, select: exp.Select, named: Mapping[str, exp.Expr]
    ) -> exp.Expr:
        if isinstance(written, exp.Literal) and not written.is_string:
            place = int(written.this) if written.is_int else 0
            if not 1 <= place <= len(select.expressions):
                raise self.source.refusal("wrong_columns", written)
            chosen: exp.Expr = select.expressions[place - 1].unalias()
            return chosen
        if isinstance(written, exp.Column) and not written.table:
            name = fold(written.this, self.source.dialect)
            # A column of FROM would go before it; whether there is one, the compiler finds out.
            if name in named:
                return named[name]
        return written


def _common_tables_of(rows: exp.Select, known: _Known, dialect: str) -> exp.With | None:
    """The CTEs that the rows name, each behind those that it names itself."""
    found: dict[str, exp.CTE] = {}

    def visit(tree: exp.Expr, known: _Known) -> None:
        for table in tree.find_all(exp.Table):
            name = fold(table.this, dialect) if isinstance(table.this, exp.Identifier) else ""
            if not table.args.get("db") and name in known and name not in found:
                visit(known[name].tree, known[name].known)
                found[name] = known[name].tree.copy()

    visit(rows, known)
    return exp.With(expressions=list(found.values())) if found else None


def _items(select: exp.Select) -> Iterator[exp.Expr]:
    """What stands in FROM."""
    source = select.args.get("from_")
    if source is not None:
        yield source.this
    for join in select.args.get("joins") or ():
        yield join.this


def _bare(table: exp.Table) -> exp.Table:
    """The table itself, without what is joined to it."""
    found = table.copy()
    found.set("joins", None)
    return found


def _joined(item: exp.Expr) -> Iterator[exp.Expr]:
    for join in item.args.get("joins") or ():
        yield join.this


def _subqueries(
    select: exp.Select, clauses: tuple[str, ...], *, into_aggregates: bool
) -> Iterator[exp.Query]:
    """Queries inside what is selected, what follows it, and further clauses."""
    places = [*select.expressions, *(select.args.get(name) for name in (*clauses, *AFTER))]
    pending = [place for place in places if place is not None]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Select | exp.SetOperation):
            yield node
        elif into_aggregates or not is_aggregate(node):
            pending += list(node.iter_expressions())


def _own_aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregates of this SELECT itself, in the order of the text."""
    for part in (*select.expressions, *(select.args.get(name) for name in AFTER)):
        if part is not None:
            yield from _aggregates_in(part)


def _aggregates_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    match tree:
        case exp.Query():
            return
        case exp.Window():
            # A window function works on groups that are there already: only its inputs aggregate.
            call: exp.Expr = tree.this
            around: list[exp.Expr] = [part for part in tree.iter_expressions() if part is not call]
            while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                around += [part for part in call.iter_expressions() if part is not call.this]
                call = call.this
            for part in [*call.iter_expressions(), *around]:
                yield from _aggregates_in(part)
        case _ if is_aggregate(tree):
            yield tree
        case _:
            for part in tree.iter_expressions():
                yield from _aggregates_in(part)


def _aggregating(tree: exp.Expr) -> bool:
    return next(_aggregates_in(tree), None) is not None
