"""A statement's tree -> the text that Spark reads as the same statement.

Statements are planned without a thought of Spark. What it writes otherwise is changed here, on a
copy of the finished tree: nested common table expressions stand side by side, sums of whole numbers
have 38 digits, and a few words are others.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Parser

from sqlrs.trees.build import ROUNDS, SENT_BY
from sqlrs.trees.naming import free_name

_DECIMAL = exp.DataType.build("DECIMAL(38, 0)")
_BIGINT = exp.DataType.build("BIGINT")
_WHOLE_TYPES = (exp.DataType.Type.BIGINT, exp.DataType.Type.INT, exp.DataType.Type.INT128)
_TYPES = {
    # Without a zone; Spark's own TIMESTAMP has one.
    exp.DataType.Type.TIMESTAMP: exp.DataType.build("TIMESTAMPNTZ"),
    exp.DataType.Type.INT128: _DECIMAL,
}
_RANKS = (exp.RowNumber, exp.DenseRank, exp.Rank)
# Whole where all their operands are.
_KEEPING = (
    *(
        exp.Add,
        exp.Sub,
        exp.Mul,
        exp.Neg,
        exp.Abs,
        exp.Paren,
        exp.Coalesce,
        exp.Least,
        exp.Greatest,
    ),
    *(exp.Max, exp.Min, exp.Sum),
)
SERIES = "generate_series"
WRITTEN = "written_by_analyst"
"""What marks a node of an analyst's text."""
_BINARY = "UTF8_BINARY"

# By the name of a column, whether it holds whole numbers.
_Outputs = Mapping[str, bool]


def spark_tree(tree: exp.Expr) -> exp.Expr:
    """The statement as Spark's, a new tree; tables outside of it keep their names."""
    statement = _Statement(tree.copy())
    return statement.written()


def spark_text(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The text of a tree that is Spark's already. All names stand in backticks."""
    generator = Parser.get_or_raise("spark").generator(pretty=pretty, identify=True, comments=False)
    # On this instance only: a subclass of the dialect would register itself with the library.
    generator.TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"  # type: ignore[misc]
    return str(generator.generate(tree))


class _Statement:
    """One statement on its way: the common table expressions found so far, in order."""

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self._taken = {table.name.lower() for table in tree.find_all(exp.Table)}
        self._taken |= {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        self._free: set[str] = set()
        self._ctes: list[exp.CTE] = []
        self._outputs: dict[str, _Outputs] = {}

    def written(self) -> exp.Expr:
        """The whole statement."""
        tree = self._tree
        self._query(tree, {})
        if self._ctes:
            tree.set("with_", exp.With(expressions=self._ctes))
        # Inner parts first: what is put in the place of an outer one holds them.
        for node in reversed(list(tree.walk(bfs=False))):
            mended = _mended(node)
            if mended is not node:
                node.replace(mended)
        return tree

    def _query(self, tree: exp.Expr, known: Mapping[str, str]) -> _Outputs:
        """Take the query's common table expressions out; ``known`` are those in sight of it."""
        known = dict(known)
        if (found := tree.args.get("with_")) is not None:
            for cte in found.expressions:
                outputs = _renamed(self._query(cte.this, known), cte.args["alias"])
                name = self._name(cte.alias)
                known[cte.alias.lower()] = name
                cte.set("materialized", None)
                cte.args["alias"].set("this", exp.to_identifier(name))
                self._ctes.append(cte)
                self._outputs[name] = outputs
            tree.set("with_", None)
        if isinstance(tree, exp.SetOperation):
            left, right = self._query(tree.this, known), self._query(tree.expression, known)
            return dict(
                (name, whole and other)
                for (name, whole), other in zip(left.items(), right.values(), strict=False)
            )
        if isinstance(tree, exp.Subquery):
            return self._query(tree.this, known)
        if isinstance(tree, exp.Select):
            return self._select(tree, known)
        for part in tree.iter_expressions():
            self._inner(part, known, {})
        return {}

    def _select(self, tree: exp.Select, known: Mapping[str, str]) -> _Outputs:
        sources: dict[str, _Outputs] = {}
        items = [tree.args.get("from_"), *(tree.args.get("joins") or ())]
        for item in items:
            if item is not None:
                self._source(item.this, known, sources)
        for name, value in tree.args.items():
            for part in value if isinstance(value, list) else [value]:
                if not isinstance(part, exp.Expr) or name == "from_":
                    continue
                if isinstance(part, exp.Join):
                    if (on := part.args.get("on")) is not None:
                        self._inner(on, known, sources)
                else:
                    self._inner(part, known, sources)
        return {
            part.alias_or_name.lower(): _is_whole(part.unalias(), sources)
            for part in tree.expressions
        }

    def _source(
        self, item: exp.Expr, known: Mapping[str, str], sources: dict[str, _Outputs]
    ) -> None:
        """One item of FROM: what it is called, and which of its columns are whole numbers."""
        if isinstance(item, exp.Table):
            if isinstance(item.this, exp.Anonymous):
                item.replace(_series(item))
                return
            renamed = known.get(item.name.lower()) if not item.args.get("db") else None
            if renamed is not None:
                alias = item.args.get("alias") or exp.TableAlias(this=item.this.copy())
                item.set("this", exp.to_identifier(renamed))
                item.set("alias", alias)
                sources[item.alias.lower()] = self._outputs[renamed]
            else:
                sources[item.alias_or_name.lower()] = {}
        else:
            outputs = self._query(item, known)
            sources[item.alias_or_name.lower()] = _renamed(outputs, item.args.get("alias"))
        for join in item.args.get("joins") or ():
            self._source(join.this, known, sources)
            if (on := join.args.get("on")) is not None:
                self._inner(on, known, sources)

    def _inner(
        self, tree: exp.Expr, known: Mapping[str, str], sources: Mapping[str, _Outputs]
    ) -> None:
        """Queries inside an expression, and its sums."""
        if isinstance(tree, exp.Query):
            self._query(tree, known)
            return
        for part in list(tree.iter_expressions()):
            self._inner(part, known, sources)
        # The type of an analyst's own sum is the analyst's choice.
        if type(tree) is exp.Sum and not tree.meta.get(WRITTEN) and _is_whole(tree.this, sources):
            tree.set("this", _wide(tree.this))

    def _name(self, wanted: str) -> str:
        if wanted.lower() not in self._free:
            self._free.add(wanted.lower())
            self._taken.add(wanted.lower())
            return wanted
        name = free_name(wanted, self._taken)
        self._free.add(name.lower())
        return name


def _renamed(outputs: _Outputs, alias: exp.Expr | None) -> _Outputs:
    """The outputs under the names that an alias gives them."""
    columns = (alias.args.get("columns") if alias is not None else None) or ()
    if not columns:
        return outputs
    return dict(zip((c.name.lower() for c in columns), outputs.values(), strict=False))


def _is_whole(tree: exp.Expr, sources: Mapping[str, _Outputs]) -> bool:
    """Whether a value is a whole number for certain, by the form of the statement alone."""
    match tree:
        case exp.Column():
            places = [sources.get(tree.table.lower(), {})] if tree.table else sources.values()
            return any(outputs.get(tree.name.lower(), False) for outputs in places)
        case exp.Literal():
            return not tree.is_string and str(tree.this).isdigit()
        case exp.Count() | exp.RowNumber() | exp.DenseRank() | exp.Rank() | exp.Null():
            return True
        case exp.Window() | exp.Filter():
            return _is_whole(tree.this, sources)
        case exp.Cast():
            return tree.to.this in _WHOLE_TYPES or tree.to == _DECIMAL
        case exp.Case():
            values = [one.args["true"] for one in tree.args["ifs"]]
            values += filter(None, [tree.args.get("default")])
            return all(_is_whole(one, sources) for one in values)
    parts = list(tree.iter_expressions())
    return isinstance(tree, _KEEPING) and bool(parts) and all(_is_whole(p, sources) for p in parts)


def _wide(tree: exp.Expr) -> exp.Expr:
    """The whole number with 38 digits: Spark's sum of 64 bits has 64 bits, and its products too."""
    match tree:
        case exp.Cast() if tree.to == _DECIMAL:
            return tree
        case exp.Mul():
            tree.set("this", _wide(tree.this))
            return tree
        case exp.Paren():
            tree.set("this", _wide(tree.this))
            return tree
    return exp.Cast(this=tree, to=_DECIMAL.copy())


def _mended(node: exp.Expr) -> exp.Expr:
    """One node in Spark's words."""
    match node:
        case exp.DataType() if node.this in _TYPES:
            return _TYPES[node.this].copy()
        case exp.Window() if isinstance(node.this, _RANKS):
            # They count in 32 bits.
            parent = node.parent
            inside = isinstance(parent, exp.Cast) and parent.to == _BIGINT
            return node if inside else exp.Cast(this=node.copy(), to=_BIGINT.copy())
        case exp.Cast() if node.meta.get(ROUNDS):
            # Of decimals alone a cast rounds, away from zero where two are as near.
            return exp.Cast(this=exp.Cast(this=node.this, to=_DECIMAL.copy()), to=node.to)
        case exp.Collate() if node.expression.name == "C":
            return exp.Collate(this=node.this, expression=exp.var(_BINARY))
        case exp.TableSample():
            node.set("method", None)
        case exp.Select() if (by := node.meta.get(SENT_BY)) is not None:
            node.set("distribute", exp.Distribute(expressions=[exp.column(by, quoted=True)]))
        case exp.Case() if _is_day_number(node):
            return _day_number(node)
    return node


def _is_day_number(node: exp.Case) -> bool:
    first = node.args["ifs"][0].this
    return isinstance(first, exp.Anonymous) and str(first.this).upper() == "ISFINITE"


def _day_number(node: exp.Case) -> exp.Expr:
    """The days since 1970; NULL has the number that it had. No date of Spark's is infinite."""
    days = node.args["ifs"][0].args["true"]
    difference = exp.Anonymous(this="datediff", expressions=[days.this, days.expression])
    return exp.Coalesce(this=difference, expressions=[node.args["default"]])


def _series(item: exp.Table) -> exp.Expr:
    """The numbers from one to another as a query in FROM."""
    call, alias = item.this, item.args["alias"]
    if str(call.this).lower() != SERIES:
        return item
    rows = exp.Anonymous(
        this="explode", expressions=[exp.Anonymous(this="sequence", expressions=call.expressions)]
    )
    (name,) = alias.args["columns"]
    select = exp.Select(expressions=[exp.Alias(this=rows, alias=name.copy())])
    return exp.Subquery(this=select, alias=exp.TableAlias(this=alias.this.copy()))
