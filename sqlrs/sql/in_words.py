"""Counts as digits of words -> one statement: the largest digit, or -1 where one has no room."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from sqlglot import exp

from sqlrs.planning.bags import Grouping, Input, Join
from sqlrs.planning.inclusion_exclusion import Term
from sqlrs.planning.words import Words, form_in_words, packed_below
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.sql.factorised import StatementBuilder, Stored, condition_tree, in_order
from sqlrs.sql.leading_groups import NOT_ENOUGH
from sqlrs.sql.leaf_sources import leaf_source
from sqlrs.trees.build import (
    all_of,
    ascending,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    union_of,
    with_columns,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names, free_name
from sqlrs.trees.predicates import Places
from sqlrs.trees.totals import product

_WIDE = exp.DataType(this=exp.DType.INT128)
_BIGINT = exp.DataType.build("BIGINT")
# Words that stand side by side in a row: of more, sums cost what the join saves.
_MOST_BESIDE = 3


def words_statement(words: Words, building: StatementBuilder) -> exp.Select:
    """The value of the residual, or NOT_ENOUGH where a count has no room in its digit."""
    return _WordsWriter(words, building).select()


def shared_words(
    words: Words, step: Grouping, building: StatementBuilder
) -> dict[Hashable, Stored]:
    """A step of words, with what it takes, as relations that several statements read."""
    return _WordsWriter(words, building).shared(step)


def _numbers_form(words: Words) -> Hashable:
    """What numbers of values follow from; of shared digits also the rows of the lowest join."""
    own = words.leaf, words.packed, words.bits, words.lanes
    if not words.shared:
        return "numbers", *own
    lowest = Grouping(_lowest(words), frozenset({words.packed})).canonical.form
    return "numbers", *own, words.shared, words.alone, lowest


def _lowest(words: Words) -> Join:
    """The join that all rows of the words come from."""
    join = words.first
    while (below := packed_below(join, words.packed)) is not None:
        join = below[0].join
    return join


@dataclass(frozen=True)
class _Rows:
    """Rows that are words or parts of them, not yet grouped; ``joined_on`` as they were joined."""

    select: exp.Select
    places: Places
    word: exp.Expression
    digits: exp.Expression
    inputs: int

    @property
    def joined_on(self) -> list[exp.Expression]:
        joins = self.select.args.get("joins") or ()
        return [join.args["on"] for join in joins if join.args.get("on") is not None]


@dataclass(frozen=True)
class _StepInWords:
    """A step under a name: its words, their digits, and the columns of its other variables."""

    name: str
    word: str
    digits: str
    columns: Places


class _WordsWriter:
    def __init__(self, words: Words, building: StatementBuilder) -> None:
        self.words = words
        self.building = building
        free = words.total.problem.free
        self.columns = column_names(free)
        self.others = sorted(free - {words.packed})
        # No column of a step, no leaf and no other step is called like what is made here.
        variables = [v for term in words.total.terms for v in term.join.variables]
        below = [v for t in words.total.terms for s in t.join.steps for v in s.join.variables]
        taken = {RESULTS, *column_names([*variables, *below]).values()}
        self.word, self.digits = free_name("word", taken), free_name("digits", taken)
        self.beside = [free_name("digits", taken) for _ in range(_MOST_BESIDE)]
        self.taken = {leaf.name.lower() for t in words.total.terms for leaf in t.join.leaves}
        known = building.kept.get(_numbers_form(words))
        self.numbers = known[0] if known else self._add("numbers", self._numbered())

    def shared(self, step: Grouping) -> dict[Hashable, Stored]:
        """The numbers and a step in words, which stand for themselves from now on."""
        found = self._step(step)
        kept = tuple(found.columns[v].name for v in self._apart_from_packed(step))
        return {
            _numbers_form(self.words): (self.numbers, (), False),
            form_in_words(step, self.words): (found.name, (found.word, found.digits, *kept), True),
        }

    def select(self) -> exp.Select:
        """All rows in words, their sums, and the largest digit of these."""
        if not self.words.others and self.words.apart is None:
            known = self.building.kept.get(form_in_words(self.words.whole, self.words))
            if known is not None:
                name, (_, self.digits, *_), _ = known
                return self.building.finished(self._largest(self._halves(name)))
        if (beside := self._side_by_side()) is not None:
            return self.building.finished(self._largest(self._halves(beside)))
        first = self._rows(self.words.first)
        rows = [
            with_columns(
                first.select,
                named(first.word, self.word),
                *(named(again(first.places[v]), self.columns[v]) for v in self.others),
                named(first.digits, self.digits),
            ),
            *map(self._correction, self.words.others),
        ]
        alias = "in_words"
        keys = [self.word, *(self.columns[v] for v in self.others)]
        source = exp.Subquery(
            this=rows[0] if len(rows) == 1 else union_of(rows),
            alias=exp.TableAlias(this=exp.to_identifier(alias)),
        )
        sums = select_from(
            source,
            *(column(key, alias) for key in keys),
            named(exp.Sum(this=column(self.digits, alias)), self.digits),
        )
        summed = self._add("words", grouped_by(sums, [column(key, alias) for key in keys]))
        return self.building.finished(self._largest(self._halves(summed)))

    def _add(self, name: str, tree: exp.Expression) -> str:
        taken = {*self.taken, *self.building.reserved, *self.building.ctes}
        return self.building.add(free_name(name, taken), tree)

    def _numbered(self) -> exp.Select:
        """The values of the packed variable, the word of each and its place in it as a factor.

        What is counted in some place is counted once more above all places.
        """
        words = self.words
        values = self._in_order() if not words.shared else _sharing(self._weighed(), words)
        lane = exp.Mod(this=column("place", "placed"), expression=number(words.lanes))
        factor = exp.Case(
            this=lane,
            ifs=[
                exp.If(this=number(i), true=number(words.above + 2 ** (words.bits * i)))
                for i in range(words.lanes)
            ],
        )
        return select_from(
            inner(values, "placed"),
            column("value", "placed"),
            named(
                exp.IntDiv(this=column("place", "placed"), expression=number(words.lanes)), "word"
            ),
            named(exp.Cast(this=factor, to=_WIDE.copy()), "factor"),
        )

    def _in_order(self) -> exp.Select:
        """The values of the packed variable with a place of its own for each."""
        source, places, where, _ = leaf_source(
            self.words.leaf, self.words.leaf.name, self.building.once
        )
        value = places[self.words.packed]
        values = select_from(source, named(again(value), "value"), named(_row([value]), "place"))
        return grouped_by(filtered_by(values, where), [again(value)])

    def _weighed(self) -> exp.Select:
        """The values with their numbers of rows, and their places by these, most frequent first."""
        select, places, counts = self.building.joined(_lowest(self.words))
        value = places[self.words.packed]
        rows = self.building.dialect.summed(counts, product(counts), [], 2)
        most = exp.Ordered(this=again(rows), desc=True)
        values = with_columns(
            select,
            named(again(value), "value"),
            named(rows, RESULTS),
            named(_row([most, value]), "place"),
        )
        return grouped_by(values, [again(value)])

    def _rows(self, join: Join) -> _Rows:
        """The rows of a join in words: of a step that is in words, or each with its place."""
        below = packed_below(join, self.words.packed)
        if below is None:
            select, places, counts = self.building.joined(join)
            found = exp.EQ(
                this=again(places[self.words.packed]), expression=column("value", self.numbers)
            )
            joined_with(select, table_named(self.numbers), [found])
            return _Rows(
                select,
                places,
                column("word", self.numbers),
                _times(column("factor", self.numbers), counts),
                len(join.inputs) + 1,
            )
        step, rest = below
        words = self._step(step)
        select, places, counts = self._with_step(join, rest, words.name, words.columns)
        digits = _times(column(words.digits, words.name), counts)
        return _Rows(select, places, column(words.word, words.name), digits, 2)

    def _with_step(
        self, join: Join, rest: Input, name: str, own: Places
    ) -> tuple[exp.Select, Places, list[exp.Expression]]:
        """The join of a step in words under a name with the other input."""
        here = tuple(c for c in join.conditions if c.variables <= rest.variables)
        select, places, counts = self.building.joined(Join((rest,), here))
        common = [v for v in sorted(own) if v in places]
        equal = [exp.EQ(this=again(own[v]), expression=again(places[v])) for v in common]
        joined_with(select, table_named(name), equal)
        places = {**own, **places}
        across = [condition_tree(c, places) for c in join.conditions if c not in here]
        if across:
            before = select.args.get("where")
            filtered_by(select, [*([before.this] if before else []), *across])
        return select, places, counts

    def _side_by_side(self) -> str | None:
        """The words where there are few of them, which stand side by side until they are summed up.

        So the last join has one row for each row of the other input, and not one for each word.
        """
        words, join = self.words, self.words.first
        below = packed_below(join, words.packed)
        number_of_words = -(-(words.shared + words.alone) // words.lanes)
        if not words.shared or number_of_words > _MOST_BESIDE or below is None:
            return None
        step, rest = below
        known = form_in_words(step, words) in self.building.kept
        if known or packed_below(step.join, words.packed) is not None:
            return None
        beside = self.beside[:number_of_words]
        rows = self._rows(step.join)
        keep = sorted(step.keep - {words.packed})
        columns = column_names(keep)
        own = [
            exp.Case(
                ifs=[
                    exp.If(
                        this=exp.EQ(this=again(rows.word), expression=number(i)),
                        true=again(rows.digits),
                    )
                ]
            )
            for i, _ in enumerate(beside)
        ]
        name = self._add(
            "step_side_by_side",
            self._sums(rows.select, rows.places, columns, own, rows.inputs),
        )
        places: Places = {v: column(columns[v], name) for v in keep}
        select, places, counts = self._with_step(join, rest, name, places)
        digits = [_times(column(one, name), counts) for one in beside]
        others = {v: self.columns[v] for v in self.others}
        wide = self._add("side_by_side", self._sums(select, places, others, digits, 2))
        parts = []
        for i, one in enumerate(beside):
            part = select_from(
                table_named(wide),
                named(number(i), self.word),
                *(column(c, wide) for c in others.values()),
                named(column(one, wide), self.digits),
            )
            is_there = exp.Not(this=exp.Is(this=column(one, wide), expression=exp.Null()))
            parts.append(filtered_by(part, [is_there]))
        return self._add("words", union_of(parts) if len(parts) > 1 else parts[0])

    def _sums(
        self,
        select: exp.Select,
        places: Places,
        columns: Mapping[Variable, str],
        digits: Sequence[exp.Expression],
        inputs: int,
    ) -> exp.Select:
        """The digits of each word summed up by some variables."""
        joins = select.args.get("joins") or ()
        joined_on = [one.args["on"] for one in joins if one.args.get("on") is not None]
        sums = (
            named(self.building.dialect.summed([one], one, joined_on, inputs), name)
            for one, name in zip(digits, self.beside, strict=False)
        )
        shown = [named(again(places[v]), name) for v, name in columns.items()]
        with_columns(select, *shown, *sums)
        return grouped_by(select, [again(places[v]) for v in columns])

    def _apart_from_packed(self, step: Grouping) -> list[Variable]:
        """What a step keeps beside the packed variable, in the order of its form."""
        return [v for v in in_order(step) if v != self.words.packed]

    def _step(self, step: Grouping) -> _StepInWords:
        """The groups of a step in words."""
        known = self.building.kept.get(form_in_words(step, self.words))
        if known is not None:
            name, (word, counts, *names), _ = known
            held = zip(self._apart_from_packed(step), names, strict=True)
            return _StepInWords(name, word, counts, {v: column(c, name) for v, c in held})
        rows = self._rows(step.join)
        keep = sorted(step.keep - {self.words.packed})
        columns = column_names(keep)
        digits = self.building.dialect.summed(
            [rows.digits], rows.digits, rows.joined_on, rows.inputs
        )
        select = with_columns(
            rows.select,
            named(rows.word, self.word),
            *(named(again(rows.places[v]), columns[v]) for v in keep),
            named(digits, self.digits),
        )
        grouped_by(select, [again(rows.word), *(again(rows.places[v]) for v in keep)])
        name = self._add("step_in_words", select)
        places: Places = {v: column(columns[v], name) for v in keep}
        return _StepInWords(name, self.word, self.digits, places)

    def _correction(self, term: Term) -> exp.Select:
        """The groups of a correction, each in its place of a word."""
        alias = "corrected"
        rows = self.building.term(term, self.words.total.problem)
        select = select_from(
            inner(rows, alias),
            named(column("word", self.numbers), self.word),
            *(column(self.columns[v], alias) for v in self.others),
            named(_times(column("factor", self.numbers), [column(RESULTS, alias)]), self.digits),
        )
        value = column(self.columns[self.words.packed], alias)
        same = exp.EQ(this=value, expression=column("value", self.numbers))
        return joined_with(select, table_named(self.numbers), [same])

    def _halves(self, summed: str) -> exp.Select:
        """Both halves of each word and what is above them, without the digit of equal values."""
        words = self.words
        digits: exp.Expression = column(self.digits, summed)
        select = select_from(table_named(summed))
        if words.shared:
            with_columns(select, column(self.word, summed))
        if words.apart is not None:
            digits = self._of_others(select, summed, words.apart)
        for name, low, high in (
            ("low", 0, words.half),
            ("high", words.half, words.lanes),
            ("above", words.lanes, None),
        ):
            part: exp.Expression = exp.paren(digits.copy())
            if low:
                part = exp.BitwiseRightShift(this=part, expression=number(words.bits * low))
            if high is not None:
                mask = number(2 ** (words.bits * (high - low)) - 1)
                part = exp.BitwiseAnd(this=exp.paren(part), expression=mask)
            with_columns(select, named(exp.Cast(this=part, to=_BIGINT.copy()), name))
        return select

    def _of_others(self, select: exp.Select, summed: str, apart: Variable) -> exp.Expression:
        """The words without the digit whose value is that of the variable it differs from."""
        own, digits = "of_its_own", column(self.digits, summed)
        is_own = [
            exp.EQ(this=column(self.columns[apart], summed), expression=column("value", own)),
            exp.EQ(this=column(self.word, summed), expression=column("word", own)),
        ]
        source = table_named(self.numbers, alias=own)
        select.append("joins", exp.Join(this=source, side="LEFT", on=all_of(is_own)))
        lowest = exp.Sub(this=column("factor", own), expression=number(self.words.above))
        digit = exp.Mod(
            this=exp.paren(exp.IntDiv(this=again(digits), expression=exp.paren(lowest))),
            expression=number(2**self.words.bits),
        )
        gone = exp.Mul(this=exp.paren(digit), expression=column("factor", own))
        left = exp.Sub(this=again(digits), expression=gone)
        known = exp.Not(this=exp.Is(this=column("factor", own), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=known, true=left)], default=digits)

    def _largest(self, halves: exp.Select) -> exp.Select:
        """The largest digit, if the digits of each word add up to what is above them.

        Of shared digits none may exceed the largest one of a single value.
        """
        words, alias = self.words, "halves"
        lanes = [("low", i) for i in range(words.half)]
        lanes += [("high", i) for i in range(words.lanes - words.half)]
        found = [
            exp.paren(
                exp.BitwiseAnd(
                    this=exp.paren(
                        exp.BitwiseRightShift(
                            this=column(half, alias), expression=number(words.bits * i)
                        )
                    ),
                    expression=number(2**words.bits - 1),
                )
            )
            for half, i in lanes
        ]
        total: exp.Expression = found[0].copy()
        for digit in found[1:]:
            total = exp.Add(this=total, expression=digit.copy())
        inside = select_from(
            inner(halves, alias),
            named(exp.NEQ(this=total, expression=column("above", alias)), "has_no_room"),
        )
        first = exp.EQ(this=column(self.word, alias), expression=number(0))
        own, shared = found[: words.alone], found[words.alone :]
        if words.shared:
            with_columns(
                inside,
                named(_where(first, _greatest(own), number(0)), "largest"),
                named(_where(again(first), _greatest(shared), _greatest(found)), "bound"),
            )
        else:
            with_columns(inside, named(_greatest(found), "largest"))
        none = exp.EQ(
            this=exp.Count(
                this=exp.Case(ifs=[exp.If(this=column("has_no_room", "each"), true=number(1))])
            ),
            expression=number(0),
        )
        most = exp.Coalesce(this=exp.Max(this=column("largest", "each")), expressions=[number(0)])
        enough: list[exp.Expression] = [none]
        if words.shared:
            bound = exp.Max(this=column("bound", "each"))
            zero = exp.Coalesce(this=bound, expressions=[number(0)])
            enough.append(exp.LTE(this=zero, expression=again(most)))
        value = _where(all_of(enough), most, number(NOT_ENOUGH))
        return select_from(inner(inside, "each"), named(value, RESULTS))


def _sharing(values: exp.Select, words: Words) -> exp.Select:
    """Values with their rows and places, the most frequent first: of all others some share a place.

    What shares a place has about as many rows as what shares another one.
    """
    ranked, weighed = "ranked", "weighed"
    place = column("place", ranked)
    is_alone = exp.LT(this=place, expression=number(words.alone))
    rows = _where(is_alone, number(0), column(RESULTS, ranked))
    inside = select_from(
        inner(values, ranked), column("value", ranked), place, named(rows, RESULTS)
    )
    own = column(RESULTS, weighed)
    here = exp.Order(expressions=[ascending(column("place", weighed))])
    before = exp.Sub(
        this=exp.Window(this=exp.Sum(this=again(own)), order=here), expression=again(own)
    )
    in_all = exp.Window(this=exp.Sum(this=again(own)))
    share = exp.IntDiv(
        this=exp.paren(exp.Mul(this=exp.paren(before), expression=number(words.shared))),
        expression=in_all,
    )
    shared = exp.Add(this=number(words.alone), expression=exp.paren(share))
    is_shared = exp.GT(this=again(own), expression=number(0))
    found = exp.Cast(this=_where(is_shared, shared, column("place", weighed)), to=_BIGINT.copy())
    return select_from(inner(inside, weighed), column("value", weighed), named(found, "place"))


def _row(order: Sequence[exp.Expression]) -> exp.Expression:
    """The number of a row in an order, from 0."""
    directed = [one if isinstance(one, exp.Ordered) else ascending(again(one)) for one in order]
    row = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=directed))
    return exp.Sub(this=row, expression=number(1))


def _where(
    condition: exp.Expression, then: exp.Expression, otherwise: exp.Expression
) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def _greatest(digits: Sequence[exp.Expression]) -> exp.Expression:
    """No digit is NULL, and the tree's own node would ask for each whether it is."""
    copies = [digit.copy() for digit in digits]
    return exp.Anonymous(this="greatest", expressions=copies)


def _times(value: exp.Expression, counts: Sequence[exp.Expression]) -> exp.Expression:
    """The value as often as all counts say, in 128 bits."""
    if not counts:
        return value
    return exp.Mul(this=value, expression=exp.Cast(this=product(counts), to=_WIDE.copy()))
