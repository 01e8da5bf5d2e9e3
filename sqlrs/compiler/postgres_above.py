"""A statement of PostgreSQL's above the cuts -> the same statement for DuckDB.

Every name is resolved and written in one way: DuckDB takes names that differ in their case for one,
and an alias for a column in more places. Stars are written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sqlglot import exp

from sqlrs.compiler.hints import closest
from sqlrs.compiler.names import fold
from sqlrs.compiler.postgres_kinds import Expressions
from sqlrs.compiler.source import Source
from sqlrs.compiler.value_kinds import ValueKind, kind_of_type
from sqlrs.effort import spend
from sqlrs.records import dataclass

_Outputs = list[tuple[str, ValueKind]]


@dataclass(frozen=True, eq=False)
class _Item:
    """One item of FROM: as the text calls it, as it is written, and its columns."""

    alias: str
    written: str
    columns: _Outputs


@dataclass(eq=False)
class _Sight:
    """The names in sight of one SELECT. ``merged``: names of USING, which mean the first item's."""

    outer: _Sight | None
    items: list[_Item] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)


_Common = Mapping[str, _Item]


class PostgresAbove:
    """Writes one statement; ``columns`` has the DuckDB type of each column of each relation."""

    def __init__(self, columns: Mapping[str, Mapping[str, str]], source: Source) -> None:
        self._source = source
        self._relations = {
            relation: [(name, kind_of_type(kind)) for name, kind in found.items()]
            for relation, found in columns.items()
        }
        self._written = 0

    def written(self, tree: exp.Query) -> exp.Query:
        """The statement for DuckDB; the tree is changed."""
        self._query(tree, {}, None)
        return tree

    def _query(self, tree: exp.Expr, common: _Common, outer: _Sight | None) -> _Outputs:
        spend(20)
        if isinstance(tree, exp.Subquery):
            return self._query(tree.this, common, outer)
        common = self._common_tables(tree, common, outer)
        if isinstance(tree, exp.Union):
            left = self._query(tree.this, common, outer)
            right = self._query(tree.expression, common, outer)
            if len(left) != len(right):
                raise self._source.refusal("wrong_columns", tree)
            outputs = [
                (name, self._united(a, b, tree))
                for (name, a), (_, b) in zip(left, right, strict=True)
            ]
            self._order(tree, outputs, None)
            return outputs
        if isinstance(tree, exp.Select):
            return self._select(tree, common, outer)
        raise self._source.refusal("table_form", tree)

    def _united(self, one: ValueKind, other: ValueKind, tree: exp.Expr) -> ValueKind:
        if one is other or other is ValueKind.UNKNOWN:
            return one
        if one is ValueKind.UNKNOWN:
            return other
        if not (one.number and other.number):
            raise self._source.refusal("type_mismatch", tree)
        return max(one, other)

    def _common_tables(self, tree: exp.Expr, common: _Common, outer: _Sight | None) -> _Common:
        clause = tree.args.get("with_")
        if clause is None:
            return common
        inside = dict(common)
        for cte in clause.expressions:
            outputs = self._query(cte.this, inside, outer)
            alias = cte.args["alias"]
            name = fold(alias.this, self._source.dialect)
            written = self._name("w")
            inside[name] = _Item(name, written, self._renamed(outputs, alias))
            columns = [exp.to_identifier(one, quoted=True) for one, _ in inside[name].columns]
            cte.set("alias", exp.TableAlias(this=exp.to_identifier(written), columns=columns))
        return inside

    def _renamed(self, outputs: _Outputs, alias: exp.Expr | None) -> _Outputs:
        """The columns of a relation under the names of its alias; no two that DuckDB confuses."""
        names = (
            [fold(c, self._source.dialect) for c in alias.args.get("columns") or ()]
            if alias
            else []
        )
        if len(names) > len(outputs):
            raise self._source.refusal("wrong_columns", alias)
        renamed = [
            (names[i] if i < len(names) else name, kind) for i, (name, kind) in enumerate(outputs)
        ]
        if len({name.lower() for name, _ in renamed}) < len(renamed):
            message = "two columns have one name, or names that differ in their case only"
            raise self._source.refusal("ambiguous_name", alias, message)
        return renamed

    def _name(self, letter: str) -> str:
        self._written += 1
        return f"{letter}{self._written}"

    def _select(self, select: exp.Select, common: _Common, outer: _Sight | None) -> _Outputs:
        names = _Sight(outer)
        source = select.args.get("from_")
        if source is not None:
            self._item(source.this, common, names)
        for join in select.args.get("joins") or ():
            self._item(join.this, common, names)
            self._using(join, names)
        inside = self._expressions(common, names)
        for join in select.args.get("joins") or ():
            if join.args.get("on") is not None:
                inside.kind(join.args["on"])
        if select.args.get("where") is not None:
            inside.kind(select.args["where"].this)
        group = select.args.get("group")
        keys = list(group.expressions) if group is not None else []
        self._expand_stars(select, names)
        outputs: _Outputs = []
        for part in list(select.expressions):
            shown = part.this if isinstance(part, exp.Alias) else part
            name = self._output_name(part)
            bare = exp.Alias(this=shown.copy(), alias=exp.to_identifier(name, quoted=True))
            part.replace(bare)
            outputs.append((name, inside.kind(bare.this)))
        for key in keys:
            self._group_key(key, names, outputs, inside)
        if select.args.get("having") is not None:
            inside.kind(select.args["having"].this)
        self._order(select, outputs, inside)
        return outputs

    def _expressions(self, common: _Common, names: _Sight) -> Expressions:
        def first(query: exp.Query) -> ValueKind:
            outputs = self._query(query, common, names)
            return outputs[0][1] if outputs else ValueKind.UNKNOWN

        return Expressions(self._source, lambda column: self._resolved(column, names), first)

    def _item(self, item: exp.Expr, common: _Common, names: _Sight) -> None:
        alias = item.args.get("alias")
        if isinstance(item, exp.Table):
            name = fold(item.this, self._source.dialect)
            found = common.get(name)
            columns = found.columns if found is not None else self._relations.get(name)
            if columns is None:
                raise self._source.refusal("unknown_table", item)
            if found is not None:
                item.set("this", exp.to_identifier(found.written))
        elif isinstance(item, exp.Subquery):
            # What stands beside it in FROM is not in its sight.
            columns, name = self._query(item.this, common, names.outer), ""
        else:
            raise self._source.refusal("table_form", item)
        if alias is not None and alias.this is not None:
            name = fold(alias.this, self._source.dialect)
        if any(one.alias == name for one in names.items if name):
            raise self._source.refusal("duplicate_alias", item)
        named = _Item(name, self._name("s"), self._renamed(columns, alias or item))
        names.items.append(named)
        ids = [exp.to_identifier(column, quoted=True) for column, _ in named.columns]
        item.set("alias", exp.TableAlias(this=exp.to_identifier(named.written), columns=ids))

    def _using(self, join: exp.Join, names: _Sight) -> None:
        using = join.args.get("using") or []
        if using and (join.args.get("side") in ("RIGHT", "FULL") or len(names.items) > 2):
            message = "USING is understood between two items, in an inner or LEFT join"
            raise self._source.refusal("join_form", join, message, "write the condition with ON")
        for identifier in using:
            name = fold(identifier, self._source.dialect)
            if not all(name in dict(item.columns) for item in names.items):
                raise self._source.refusal("unknown_column", identifier)
            names.merged.append(name)
        join.set("using", [exp.to_identifier(name, quoted=True) for name in names.merged] or None)

    def _resolved(self, column: exp.Column, names: _Sight | None) -> ValueKind:
        """Find what the column means, and write it by the item's own name."""
        spend(1)
        dialect = self._source.dialect
        name = fold(column.this, dialect)
        table = column.args.get("table")
        alias = fold(table, dialect) if table is not None else None
        scope = names
        while scope is not None:
            held = [item for item in scope.items if alias in (None, item.alias)]
            found = [(i, kind) for i in held for known, kind in i.columns if known == name]
            if alias is None and name in scope.merged:
                found = found[:1]
            if len(found) > 1:
                message = f"{column.sql(dialect)} can mean several columns"
                raise self._source.refusal("ambiguous_name", column, message)
            if found:
                item, kind = found[0]
                column.set("this", exp.to_identifier(name, quoted=True))
                column.set("table", exp.to_identifier(item.written))
                return kind
            scope = scope.outer
        known = [known for item in (names.items if names else ()) for known, _ in item.columns]
        message = f"there is no column {column.sql(dialect)}"
        raise self._source.refusal("unknown_column", column, message, closest(name, known))

    def _expand_stars(self, select: exp.Select, names: _Sight) -> None:
        expanded: list[exp.Expr] = []
        for part in select.expressions:
            whole = isinstance(part, exp.Star)
            if not whole and not (isinstance(part, exp.Column) and isinstance(part.this, exp.Star)):
                expanded.append(part)
                continue
            alias = None if whole else fold(part.args["table"], self._source.dialect)
            items = [item for item in names.items if alias in (None, item.alias)]
            if not items:
                raise self._source.refusal("unknown_table", part)
            columns = [(item, name) for item in items for name, _ in item.columns]
            if whole:
                # PostgreSQL shows the columns of USING once, before all others.
                rest = [(item, name) for item, name in columns if name not in names.merged]
                columns = [*((names.items[0], name) for name in names.merged), *rest]
            expanded += [
                exp.column(name, table=item.alias or None, quoted=True) for item, name in columns
            ]
        select.set("expressions", expanded)

    def _output_name(self, part: exp.Expr) -> str:
        if isinstance(part, exp.Alias):
            return fold(part.args["alias"], self._source.dialect)
        if isinstance(part, exp.Column):
            return fold(part.this, self._source.dialect)
        return "?column?"

    def _group_key(
        self, key: exp.Expr, names: _Sight, outputs: _Outputs, inside: Expressions
    ) -> None:
        """A column of FROM goes before an alias; a position stays."""
        bare = isinstance(key, exp.Column) and not key.args.get("table")
        if bare:
            name = fold(key.this, self._source.dialect)
            in_from = any(name == known for item in names.items for known, _ in item.columns)
            places = [i for i, (known, _) in enumerate(outputs) if known == name]
            if not in_from and places:
                key.replace(exp.Literal.number(places[0] + 1))
                return
        if not (isinstance(key, exp.Literal) and not key.is_string):
            inside.kind(key)

    def _order(self, tree: exp.Expr, outputs: _Outputs, inside: Expressions | None) -> None:
        """An output's name alone means that output; inside an expression it is a column."""
        order = tree.args.get("order")
        for ordered in order.expressions if order is not None else ():
            value = ordered.this
            if isinstance(value, exp.Column) and not value.args.get("table"):
                name = fold(value.this, self._source.dialect)
                places = [i for i, (known, _) in enumerate(outputs) if known == name]
                if len(places) > 1:
                    raise self._source.refusal("ambiguous_name", value)
                if places:
                    value.replace(exp.Literal.number(places[0] + 1))
                    continue
            if isinstance(value, exp.Literal) and not value.is_string:
                continue
            if inside is None:
                raise self._source.refusal("order_by", ordered, None, "order by an output's name")
            inside.kind(value)
