"""A SELECT that aggregates private rows -> the SELECT that goes on over the released relation."""

from __future__ import annotations

from dataclasses import field

from sqlglot import exp

from sqlrs.compiler.aggregates import Split
from sqlrs.compiler.names import fold
from sqlrs.compiler.output_names import named
from sqlrs.compiler.source import Source
from sqlrs.records import dataclass
from sqlrs.trees.build import table_named
from sqlrs.trees.copies import copied
from sqlrs.trees.identifiers import column

AFTER = ("having", "order", "qualify")
"""The clauses of a SELECT that read its aggregates."""


@dataclass(eq=False)
class ReleasedSelect:
    """The relation of one cut, and the SELECT that goes on over it."""

    name: str
    source: Source
    aggregates: list[exp.Expr] = field(default_factory=list)
    same: list[tuple[exp.Expr, int]] = field(default_factory=list)
    _places: dict[exp.Expr, exp.Expr] = field(default_factory=dict)
    _columns: dict[exp.Expr, exp.Column] = field(default_factory=dict)
    _bare: dict[exp.Expr, int] = field(default_factory=dict)

    def key(self, key: exp.Expr) -> None:
        """One more key column."""
        number = len(self._bare)
        self._places[self._normal(key)] = column(f"k{number}", self.name)
        self._bare.setdefault(self._normal(key, bare=True), number)

    def aggregate(self, aggregate: exp.Expr, split: Split) -> None:
        """The columns of one more aggregate, as far as they are not there yet."""
        columns = [self._column(part) for part in split.released]
        self._places[self._normal(aggregate)] = split.above(columns)

    def _column(self, aggregate: exp.Expr) -> exp.Column:
        form = self._normal(aggregate)
        if form not in self._columns:
            self._columns[form] = column(f"a{len(self.aggregates)}", self.name)
            self.aggregates.append(aggregate)
        return self._columns[form]

    def take(self, select: exp.Select) -> None:
        """Let the SELECT read this relation in place of the rows."""
        names = set()
        for part in [*select.expressions]:
            if isinstance(part, exp.Star) or (
                isinstance(part, exp.Column) and isinstance(part.this, exp.Star)
            ):
                raise self.source.refusal("not_grouped", part)
            shown = part if isinstance(part, exp.Alias) else named(part, self.source.dialect)
            if shown is not part:
                part.replace(shown)
                # Not a copy: the cutter knows the tables inside by their nodes.
                shown.set("this", part)
            names.add(fold(shown.args["alias"], self.source.dialect))
            self._replace(shown.this, frozenset())
        for clause in AFTER:
            if select.args.get(clause):
                for part in [*select.args[clause].iter_expressions()]:
                    self._replace(part, frozenset(names if clause == "order" else ()))
        having = select.args.get("having")
        select.set("where", exp.Where(this=having.this) if having else None)
        for gone in ("having", "group", "joins", "with_"):
            select.set(gone, None)
        select.set("from_", exp.From(this=table_named(self.name)))

    def _replace(self, tree: exp.Expr, aliases: frozenset[str]) -> None:
        """Put columns of the relation in the place of keys and aggregates; nothing else may stay.

        ``aliases`` are names of outputs, which go before columns here.
        """
        pending = [tree]
        while pending:
            node = pending.pop()
            bare = isinstance(node, exp.Column) and not node.table
            if bare and fold(node.this, self.source.dialect) in aliases:
                continue
            place = self._place(node)
            if place is not None:
                node.replace(place)
            elif isinstance(node, exp.Column):
                raise self.source.refusal("not_grouped", node)
            elif not isinstance(node, exp.Query):
                pending += list(node.iter_expressions())

    def _place(self, node: exp.Expr) -> exp.Expr | None:
        found = self._places.get(self._normal(node))
        if found is not None:
            return copied(found)
        number = self._bare.get(self._normal(node, bare=True))
        if number is None:
            return None
        # The same but for the table's name before a column: what it means is looked up later.
        self.same.append((copied(node), number))
        return column(f"k{number}", self.name)

    def _normal(self, tree: exp.Expr, *, bare: bool = False) -> exp.Expr:
        return normal(tree, self.source.dialect, bare=bare)


def normal(tree: exp.Expr, dialect: str, *, bare: bool) -> exp.Expr:
    """A copy in which every spelling of a name is the same; ``bare`` without tables' names."""
    tree = copied(tree.unnest())
    for node in list(tree.walk()):
        node.comments = None
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            for part in ("this", "table", "db"):
                name = node.args.get(part)
                if name is not None:
                    folded = exp.Identifier(this=fold(name, dialect), quoted=True)
                    node.set(part, None if bare and part != "this" else folded)
    return tree
