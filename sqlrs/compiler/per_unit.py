"""The aggregates of a cut whose rows belong to one unit each -> what each unit contributes.

Why no row of another unit moves it: docs/proofs/partitioned.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Family
from sqlrs.compiler.cut import Below
from sqlrs.compiler.domains import find_domains
from sqlrs.compiler.flat import FlatQuery, conjuncts, not_null, operand
from sqlrs.compiler.lower import refuse_opaque
from sqlrs.compiler.names import fold
from sqlrs.compiler.partitioned import Place, Walk
from sqlrs.compiler.partitioned_expressions import ExpressionReader, Sight
from sqlrs.compiler.partitioned_nodes import check_nodes, is_exact
from sqlrs.compiler.partitioned_rows import Body, Ownership
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import places_of
from sqlrs.compiler.unit_values import known_of
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused
from sqlrs.measures import KeyDomain, Measure, PerUnit
from sqlrs.records import dataclass
from sqlrs.trees.build import grouped_by, inner, named, number, select_from
from sqlrs.trees.identifiers import column
from sqlrs.values import values_of

OWNER, NUMBER = "owner", "number"
_ROWS = "u"
_DIGITS = 38
_FEW_PLACES = 6
_MOST_NUMBER = 10**30
"""What one row adds at most, as a whole number: more than any threshold, with room for sums."""
_UNKNOWN_KEY = "the values of this key are not known without the private rows"


@dataclass(frozen=True, eq=False)
class UnitRows:
    """The rows of one cut, its keys among their columns."""

    below: Below
    walk: Walk
    body: Body
    unit: Ownership
    sight: Sight
    reader: ExpressionReader
    keys: tuple[exp.Expr, ...]

    def domains(self) -> tuple[KeyDomain, ...]:
        """The public values of the keys; or a refusal."""
        source = self.walk.source
        origins = []
        for key in self.keys:
            known = known_of(key, self.walk.columns)
            if known.origin is None:
                raise source.refusal("unknown_domain", key, _UNKNOWN_KEY)
            origins.append(known.origin)
        if not origins:
            return ()
        witness = self.body.rows.witness
        flat = FlatQuery(
            witness.occurrences, witness.conditions, None, source, tuple(origins), None
        )
        refuse_opaque(flat)
        try:
            return find_domains([flat], self.walk.catalog)
        except QueryRefused as error:
            if error.code != "unknown_domain":
                raise
            # In the analyst's words: the columns have other names here.
            raise source.refusal("unknown_domain", error.span, _UNKNOWN_KEY) from None

    def measure(self, aggregate: exp.Expr) -> Measure:
        """What each unit contributes to a count or a sum; or a refusal."""
        call, conditions = aggregate, [*self.body.conditions]
        if isinstance(aggregate, exp.Filter):
            call = aggregate.this
            conditions += [
                self._read(part, top=True) for part in conjuncts(aggregate.expression.this)
            ]
        if isinstance(call, exp.Sum):
            return self._sum(call, conditions)
        counted = call.this
        if counted is None or isinstance(counted.unnest(), exp.Null):
            raise self.walk.source.refusal("not_a_count", call)
        if isinstance(counted, exp.Distinct):
            return self._distinct(counted, conditions)
        if not isinstance(counted, exp.Star):
            value = self._read(counted)
            if known_of(value, self.walk.columns).nullable:
                conditions.append(not_null(value))
        most = 1 if self.unit.single else None
        return self._count(self._rows(conditions), most)

    def _distinct(self, distinct: exp.Distinct, conditions: list[exp.Expr]) -> Measure:
        listed = distinct.expressions
        as_row = len(listed) == 1 and isinstance(listed[0].unnest(), exp.Tuple)
        written = listed[0].unnest().expressions if as_row else listed
        values = [self._read(one) for one in written]
        if not self.unit.held_by(values):
            hint = f"count(DISTINCT {self.unit.word}) counts units, count(*) counts rows"
            raise self.walk.source.refusal("unit_shared", distinct, hint=hint)
        if not as_row:
            conditions = [*conditions, *(not_null(one) for one in values)]
        rows = self._rows(conditions, [(f"d{n}", one) for n, one in enumerate(values)])
        rows.set("distinct", exp.Distinct())
        alone = not self.keys and all(one.unnest() in self.unit.ids for one in values)
        return self._count(rows, 1 if alone or self.unit.single else None)

    def _count(self, rows: exp.Select, most: int | None) -> Measure:
        return self._measured(rows, exp.Count(this=exp.Star()), Fraction(1), most=most)

    def _sum(self, call: exp.Sum, conditions: list[exp.Expr]) -> Measure:
        value = self._read(call.this)
        known = known_of(value, self.walk.columns)
        kind, places = known.kind, places_of(known.kind)
        if kind is None or places is None or not is_exact(kind):
            raise self.walk.source.refusal("unit_sum", call)
        whole = dialect_named(self.walk.catalog.dialect).whole_number_type()
        scaled = _scaled(operand(value), kind, places, whole)
        zero = exp.Cast(this=number(0), to=whole.copy())
        if known.positive:
            above = exp.GT(this=operand(scaled), expression=zero)
            scaled = exp.Case(ifs=[exp.If(this=above, true=scaled)], default=zero.copy())
        else:
            scaled = exp.Coalesce(this=scaled, expressions=[zero])
        last = values_of(kind).last
        if last is None or last * 10**places > _MOST_NUMBER:
            scaled = _held(scaled, whole)
        rows = self._rows(conditions, [("n", scaled)])
        total = exp.Sum(this=column("n", _ROWS))
        unit = Fraction(1, 10**places)
        return self._measured(rows, total, unit, signed=not known.positive, weighted=True)

    def _measured(
        self,
        rows: exp.Select,
        total: exp.Expr,
        unit: Fraction,
        *,
        most: int | None = None,
        signed: bool = False,
        weighted: bool = False,
    ) -> Measure:
        names = [OWNER, *(f"k{place}" for place in range(len(self.keys)))]
        select = select_from(
            inner(rows, _ROWS),
            *(column(name, _ROWS) for name in names),
            named(total, NUMBER),
        )
        grouped_by(select, [column(name, _ROWS) for name in names])
        tables = frozenset(self.walk.tables.values())
        texts = tuple(self.walk.texts)
        found = PerUnit(select, tables, signed=signed, most=most, weighted=weighted, texts=texts)
        return Measure((), unit, found)

    def _rows(
        self, conditions: Sequence[exp.Expr], further: Sequence[tuple[str, exp.Expr]] = ()
    ) -> exp.Select:
        rows = self.body.rows
        outputs = [(OWNER, self.unit.id)]
        outputs += [(f"k{place}", key) for place, key in enumerate(self.keys)]
        select = select_from(
            rows.tree.copy(),
            *(named(value.copy(), name) for name, value in [*outputs, *further]),
        )
        select.set("joins", [join.copy() for join in rows.joins])
        if conditions:
            whole = exp.and_(*(operand(one) for one in conditions), copy=False)
            select.set("where", exp.Where(this=whole))
        return select

    def _read(self, tree: exp.Expr, *, top: bool = False) -> exp.Expr:
        return self.reader.read(tree, self.sight, top=top)


def read_unit_rows(below: Below, catalog: Catalog, source: Source) -> UnitRows | None:
    """The rows of a cut, each inside one unit; or a refusal. None: it reads no private rows."""
    for tree in (below.select, *below.keys, *below.aggregates):
        check_nodes(tree, source, catalog)
    walk = Walk(catalog, source)
    body = walk.body(below.select, Place())
    if body.unit is None:
        return None
    sight = Sight(body.scope, body.unit, body.unit, body.unit, body.rows.aliases)
    place = walk.with_common_tables(below.select, Place())
    reader = walk.expressions(place)
    keys = tuple(reader.read(key, sight) for key in below.keys)
    for written, place_of_key in below.same:
        if reader.read(written, sight) != keys[place_of_key]:
            raise source.refusal("not_grouped", written)
    for alias, place_of_key in below.aliases:
        name = fold(alias.this, source.dialect)
        meanings = [meaning for known, meaning in body.scope.visible if known == name]
        if any(meaning != keys[place_of_key] for meaning in meanings):
            message = f"{alias.name} can mean a column of FROM and what is selected"
            raise source.refusal("ambiguous_name", alias, message)
    return UnitRows(below, walk, body, body.unit, sight, reader, keys)


def _scaled(tree: exp.Expr, kind: ColumnType, places: int, whole: exp.DataType) -> exp.Expr:
    """The value as a whole number of its last decimal places; whatever it is, nothing fails."""
    scaled = tree
    if kind.family is Family.DECIMAL:
        wide = exp.Cast(this=tree, to=_decimal(places))
        if values_of(kind).nan or places <= _FEW_PLACES:
            scaled = exp.Mul(this=wide, expression=number(10**places)) if places else tree
            scaled = exp.Cast(this=scaled, to=_decimal(0))
        else:
            # A product would need twice the places; the text of a decimal has all of them.
            digits = exp.Cast(this=wide, to=exp.DataType.build("TEXT"))
            scaled = exp.func("REPLACE", digits, exp.Literal.string("."), exp.Literal.string(""))
    scaled = exp.Cast(this=scaled, to=whole.copy())
    if values_of(kind).nan:
        # NaN, infinities and what has too many digits count as NULL does.
        limit = 10 ** (_DIGITS - places - 1)
    elif kind.family is Family.DECIMAL and 0 < places <= _FEW_PLACES:
        limit = 10 ** (_DIGITS - 2 * places - 1)
        last = values_of(kind).last
        if last is not None and last <= limit:
            return scaled
    else:
        return scaled
    inside = exp.Between(this=tree.copy(), low=number(-limit), high=number(limit))
    return exp.Case(ifs=[exp.If(this=inside, true=scaled)])


def _held(value: exp.Expr, whole: exp.DataType) -> exp.Expr:
    """What lies beyond the largest number counts as much as that: sums of it have room."""
    low, high = (exp.Cast(this=number(n), to=whole.copy()) for n in (-_MOST_NUMBER, _MOST_NUMBER))
    least = exp.Least(this=value, expressions=[high], ignore_nulls=True)
    return exp.Greatest(this=least, expressions=[low], ignore_nulls=True)


def _decimal(places: int) -> exp.DataType:
    parameters = [exp.DataTypeParam(this=number(one)) for one in (_DIGITS, places)]
    return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=parameters)
