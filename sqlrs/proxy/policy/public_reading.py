"""A SELECT over public tables alone: proven from its tree, then written anew for the data's engine.

Every node must be of a kind listed here, every table must be one that the catalog calls public, and
every column one of these tables: what is sent to the engine is built from the catalog's own names.
Whatever does not fit is no public reading and takes the protected way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog, Table
from sqlrs.compiler.complexity import parse_text
from sqlrs.compiler.names import entry_named, fold, fold_stored
from sqlrs.effort import TooComplex, bounded
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.trees.build import table_of
from sqlrs.trees.identifiers import column

_MOST_TABLES = 4
_MOST_COLUMNS = 200
_CLAUSES = frozenset(
    {
        "distinct",
        "expressions",
        "from_",
        "group",
        "having",
        "joins",
        "limit",
        "offset",
        "order",
        "where",
    }
)
_KINDS: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Select,
        exp.From,
        exp.Join,
        exp.Table,
        exp.TableAlias,
        exp.Where,
        exp.Group,
        exp.Having,
        exp.Order,
        exp.Ordered,
        exp.Limit,
        exp.Offset,
        exp.Distinct,
        exp.Alias,
        exp.Column,
        exp.Identifier,
        exp.Star,
        exp.Literal,
        exp.Boolean,
        exp.Null,
        exp.Paren,
        exp.Neg,
        exp.And,
        exp.Or,
        exp.Not,
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.Is,
        exp.In,
        exp.Between,
        exp.Like,
        exp.ILike,
        exp.Count,
        exp.Sum,
        exp.Min,
        exp.Max,
        exp.Avg,
        exp.Lower,
        exp.Upper,
        exp.Cast,
        exp.DataType,
        exp.Parameter,
        exp.Any,
    }
)
# The parts of a node that may be there; a part that is not listed makes it something else.
_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: _CLAUSES,
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.TableAlias: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "kind"}),
    exp.Group: frozenset({"expressions"}),
    # DISTINCT of a whole row or inside an aggregate, not DISTINCT ON.
    exp.Distinct: frozenset({"expressions"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Star: frozenset(),
}
# Only a literal is cast: that is how the value of a parameter is written.
_CAST_TO = frozenset(
    {
        exp.DataType.Type.DATE,
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.UUID,
    }
)


@dataclass(frozen=True)
class PublicReading:
    """What to ask the engine: how large the result is, and then for its values as text."""

    size: exp.Select
    rows: exp.Select


def has_known_shape(tree: exp.Expr) -> bool:
    """Whether the text could be a public reading; its names are not looked at."""
    return isinstance(tree, exp.Select) and all(_is_known(node, tree) for node in tree.walk())


def public_reading(sql: str, catalog: Catalog, most_rows: int) -> PublicReading:
    """The statements for the engine, or a refusal. The text is PostgreSQL's, as clients write."""
    try:
        with bounded():
            (tree,) = parse_text(sql, "postgres")
    except (SqlglotError, TooComplex, RecursionError, ValueError):
        raise refusal("public_reading", "the statement cannot be read") from None
    if not isinstance(tree, exp.Select) or not has_known_shape(tree) or tree.find(exp.Parameter):
        raise refusal("public_reading", "this is not a plain SELECT over public tables")
    for call in tree.find_all(exp.Func):
        # The engine would call the database's own function, which may read anything.
        if not catalog.hidden.isdisjoint(name.lower() for name in call.sql_names()):
            raise refusal(
                "public_reading",
                f"{call.sql_names()[0].lower()} is a function of the database here",
            )
    return _ReadingWriter(tree, catalog).reading(most_rows)


def _is_known(node: exp.Expr, root: exp.Expr) -> bool:
    if type(node) not in _KINDS or (isinstance(node, exp.Select) and node is not root):
        return False
    allowed = _PARTS.get(type(node))
    given = {name for name, part in node.args.items() if part not in (None, False, [])}
    if allowed is not None and not given <= allowed:
        return False
    match node:
        case exp.Select():
            return bool(node.expressions) and node.args.get("from_") is not None
        case exp.Table():
            return isinstance(node.this, exp.Identifier)
        case exp.Join():
            kind = str(node.args.get("kind") or "").upper()
            return kind in ("", "INNER", "CROSS") and isinstance(node.this, exp.Table)
        case exp.Cast():
            literal = node.this.find(exp.Column, exp.Func) is None
            return literal and node.to.this in _CAST_TO and not node.args.get("format")
        case exp.Any():
            # Written as a list once the values are known.
            return isinstance(node.this.unnest(), exp.Parameter)
        case exp.Limit() | exp.Offset():
            return isinstance(node.expression, exp.Literal) and node.expression.is_int
        case exp.Count() | exp.Sum() | exp.Min() | exp.Max() | exp.Avg():
            return isinstance(node.this, exp.Expr) and not node.this.find(exp.AggFunc)
    return True


@dataclass(frozen=True)
class _Source:
    """One occurrence of a public table: the names that the text may call it, and our alias."""

    table: Table
    called: str
    schema: str | None
    alias: str


class _ReadingWriter:
    """Writes one reading with the catalog's names."""

    def __init__(self, tree: exp.Select, catalog: Catalog) -> None:
        self._tree = tree
        self._catalog = catalog
        self._dialect = catalog.dialect
        joins = tree.args.get("joins") or []
        tables = [tree.args["from_"].this, *(join.this for join in joins)]
        if len(tables) > _MOST_TABLES:
            raise refusal("public_reading", f"a reading has at most {_MOST_TABLES} tables")
        self._sources = [self._source(node, number) for number, node in enumerate(tables, 1)]
        if len({source.called for source in self._sources}) < len(tables):
            raise refusal("public_reading", "two tables have the same name here")

    def reading(self, most_rows: int) -> PublicReading:
        """Size and rows of the result, one row above the limit at most."""
        items = list(self._items())
        if len(items) > _MOST_COLUMNS:
            raise refusal("public_reading", f"a reading has at most {_MOST_COLUMNS} columns")
        names = [f"c{number}" for number in range(1, len(items) + 1)]
        inner = exp.Select(
            expressions=[
                exp.alias_(value, name) for (_, value), name in zip(items, names, strict=True)
            ],
            from_=exp.From(this=table_of(self._sources[0].table, self._sources[0].alias)),
        )
        for source, join in zip(self._sources[1:], self._tree.args.get("joins") or [], strict=True):
            on = join.args.get("on")
            kind = "INNER" if on is not None else "CROSS"
            written = exp.Join(this=table_of(source.table, source.alias), kind=kind)
            if on is not None:
                written.set("on", self._resolved(on))
            inner.append("joins", written)
        for name in ("where", "having"):
            clause = self._tree.args.get(name)
            if clause is not None:
                inner.set(name, type(clause)(this=self._resolved(clause.this)))
        if self._tree.args.get("distinct") is not None:
            inner.set("distinct", exp.Distinct())
        outputs = [name for name, _ in items]
        self._group(inner, outputs)
        self._order(inner, outputs)
        self._limit(inner, most_rows)
        texts = [exp.cast(column(name, "r"), exp.DataType.Type.TEXT) for name in names]
        whole = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("r")))
        return PublicReading(_size(texts, whole.copy()), exp.Select(expressions=texts).from_(whole))

    def _source(self, node: exp.Table, number: int) -> _Source:
        table = self._public_table(node)
        alias = node.args.get("alias")
        if alias is not None:
            return _Source(table, fold(alias.this, self._dialect), None, f"t{number}")
        schema = None if table.schema is None else fold_stored(table.schema, self._dialect)
        return _Source(table, fold_stored(table.name, self._dialect), schema, f"t{number}")

    def _public_table(self, node: exp.Table) -> Table:
        """The table that the name means, looked up as the compiler does; it must be public."""
        found = entry_named(node, self._catalog)
        if found is None:
            raise refusal("public_reading", f"there is no table {node.name}")
        if not isinstance(found, Table) or found.private:
            raise refusal("public_reading", f"{found.name} is not a public table")
        return found

    def _items(self) -> Iterator[tuple[str, exp.Expression]]:
        """The columns of the result: their names, for ORDER BY, and what they are."""
        for item in self._tree.expressions:
            if isinstance(item, exp.Star):
                yield from self._all(self._sources)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                yield from self._all(self._called(item))
            else:
                name = item.args.get("alias") or (item.this if _is_column(item) else None)
                value = self._resolved(item.this if isinstance(item, exp.Alias) else item)
                yield (fold(name, self._dialect) if name is not None else ""), value

    def _all(self, sources: Iterable[_Source]) -> Iterator[tuple[str, exp.Expression]]:
        for source in sources:
            for entry in source.table.columns:
                yield fold_stored(entry.name, self._dialect), column(entry.name, source.alias)

    def _resolved(self, part: exp.Expression) -> exp.Expression:
        """A copy in which every column is one of a public table."""
        copied = exp.Paren(this=part.copy())
        for node in list(copied.find_all(exp.Column)):
            node.replace(self._meaning(node))
        for star in copied.find_all(exp.Star):
            if not isinstance(star.parent, exp.Count):
                raise refusal("public_reading", "* cannot stand here")
        resolved: exp.Expression = copied.this
        return resolved

    def _meaning(self, node: exp.Column) -> exp.Column:
        found = self._find(node)
        if len(found) != 1:
            raise refusal("public_reading", f"{node.name} is not one column of the public tables")
        return found[0]

    def _find(self, node: exp.Column) -> list[exp.Column]:
        if isinstance(node.this, exp.Star):
            return []
        name = fold(node.this, self._dialect)
        return [
            column(entry.name, source.alias)
            for source in self._called(node)
            for entry in source.table.columns
            if fold_stored(entry.name, self._dialect) == name
        ]

    def _called(self, node: exp.Column) -> list[_Source]:
        """The tables that the qualifier of a column names; all of them if there is none."""
        qualifier, schema = node.args.get("table"), node.args.get("db")
        if node.args.get("catalog") is not None:
            return []
        if qualifier is None:
            return self._sources
        called = fold(qualifier, self._dialect)
        home = None if schema is None else fold(schema, self._dialect)
        return [
            source
            for source in self._sources
            if source.called == called and (home is None or home == source.schema)
        ]

    def _group(self, inner: exp.Select, outputs: list[str]) -> None:
        group = self._tree.args.get("group")
        if group is None:
            return
        written = [
            self._place(part, outputs)
            if _is_bare(part) and not self._find(part)
            else self._position(part, outputs)
            for part in group.expressions
        ]
        inner.set("group", exp.Group(expressions=written))

    def _order(self, inner: exp.Select, outputs: list[str]) -> None:
        order = self._tree.args.get("order")
        if order is None:
            return
        written = []
        for part in order.expressions:
            # The name of a result's column comes first here, and second in GROUP BY.
            by_name = _is_bare(part.this) and fold(part.this.this, self._dialect) in outputs
            place = self._place if by_name else self._position
            written.append(
                exp.Ordered(
                    this=place(part.this, outputs),
                    desc=part.args.get("desc"),
                    nulls_first=part.args.get("nulls_first"),
                )
            )
        inner.set("order", exp.Order(expressions=written))

    def _place(self, node: exp.Expression, outputs: list[str]) -> exp.Expression:
        name = fold(node.this, self._dialect)
        if name not in outputs:
            raise refusal("public_reading", f"there is no column {node.name}")
        return exp.Literal.number(outputs.index(name) + 1)

    def _position(self, node: exp.Expression, outputs: list[str]) -> exp.Expression:
        if not isinstance(node, exp.Literal):
            return self._resolved(node)
        if not node.is_int or not 1 <= int(node.name) <= len(outputs):
            raise refusal("public_reading", "a position is not one of the columns")
        return node.copy()

    def _limit(self, inner: exp.Select, most_rows: int) -> None:
        limit, offset = self._tree.args.get("limit"), self._tree.args.get("offset")
        asked = most_rows + 1 if limit is None else int(limit.expression.name)
        count = exp.Literal.number(min(asked, most_rows + 1))
        inner.set("limit", exp.Limit(expression=count))
        if offset is not None:
            inner.set("offset", exp.Offset(expression=offset.expression.copy()))


def _size(texts: list[exp.Cast], whole: exp.Subquery) -> exp.Select:
    """Rows and characters of the result."""
    lengths: list[exp.Expression] = [
        exp.Coalesce(this=exp.Length(this=text.copy()), expressions=[exp.Literal.number(0)])
        for text in texts
    ]
    total = lengths[0]
    for length in lengths[1:]:
        total = exp.Add(this=total, expression=length)
    characters = exp.Coalesce(this=exp.Sum(this=total), expressions=[exp.Literal.number(0)])
    return exp.Select(expressions=[exp.Count(this=exp.Star()), characters]).from_(whole)


def _is_column(item: exp.Expression) -> bool:
    return isinstance(item, exp.Column)


def _is_bare(part: exp.Expression) -> bool:
    return isinstance(part, exp.Column) and part.args.get("table") is None
