"""Keys that public tables hold: their values in the join of the public tables around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from sqlglot import exp

from sqlrs.compiler.conditions import Reference, as_column, reference, references
from sqlrs.compiler.enumerated import limited, output
from sqlrs.compiler.flat import not_null
from sqlrs.compiler.grounds import Grounds, form, form_at, placed
from sqlrs.records import dataclass
from sqlrs.trees.build import select_from, table_of


@dataclass(frozen=True, eq=False)
class Piece:
    """Some keys, by their numbers, with all combinations of their values in public tables."""

    keys: tuple[int, ...]
    select: exp.Select
    origin: str


def public_pieces(grounds: Grounds, keys: Mapping[int, exp.Expr]) -> list[Piece]:
    """The keys that are expressions over public tables, together where the tables are joined."""
    pieces = _Pieces(grounds)
    held = {number: tree for number, key in keys.items() if (tree := pieces.held(form(key)))}
    for tree in held.values():
        pieces.connect([alias for alias, _ in references(tree)])
    groups: dict[str, dict[int, exp.Expr]] = {}
    for number, tree in held.items():
        groups.setdefault(pieces.leader(references(tree)[0][0]), {})[number] = tree
    return [pieces.piece(leader, group) for leader, group in groups.items()]


@dataclass(eq=False)
class _Pieces:
    """The public occurrences of the outer query, in pieces that equalities connect."""

    grounds: Grounds
    _leaders: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._leaders = {
            alias: alias
            for alias, one in self.grounds.occurrences.items()
            if one.outer and not one.table.private
        }
        for group in self._equal():
            self.connect([alias for alias, _ in group])

    def leader(self, alias: str) -> str:
        return self._leaders[alias]

    def connect(self, aliases: Sequence[str]) -> None:
        joined = {self._leaders[alias] for alias in aliases}
        if len(joined) > 1:
            first = next(alias for alias in self._leaders if self._leaders[alias] in joined)
            leader = self._leaders[first]
            self._leaders = {a: leader if b in joined else b for a, b in self._leaders.items()}

    def held(self, key: exp.Expr) -> exp.Expr | None:
        """The key over columns of public tables alone, None if that cannot be written."""
        bare = as_column(key)
        if bare is not None:
            # By its value alone, whatever the form of equal values is.
            members = (reference(bare), *self.grounds.equal.members(reference(bare)))
            public = next((one for one in members if one[0] in self._leaders), None)
            return None if public is None else form_at(public)
        return self._public(key, self._leaders)

    def piece(self, leader: str, keys: Mapping[int, exp.Expr]) -> Piece:
        own = [alias for alias in self._leaders if self._leaders[alias] == leader]
        first, *rest = own
        outputs = [output(tree, f"k{number}") for number, tree in keys.items()]
        occurrences = self.grounds.occurrences
        select = select_from(table_of(occurrences[first].table, first), *outputs)
        for alias in rest:
            join = exp.Join(this=table_of(occurrences[alias].table, alias), kind="CROSS")
            select.append("joins", join)
        limited(select, self._conditions(set(own)))
        select.set("distinct", exp.Distinct())
        labels = dict.fromkeys(
            f"{occurrences[a].table.name}.{name}"
            for tree in keys.values()
            for a, name in references(tree)
        )
        return Piece(tuple(keys), select, f"{', '.join(labels)} (public table)")

    def _equal(self) -> Iterator[list[Reference]]:
        """Public columns that are equal, also through private ones between them."""
        seen: set[Reference] = set()
        for alias in self._leaders:
            for one in self.grounds.occurrences[alias].table.columns:
                place = (alias, one.name)
                if place not in seen:
                    members = self.grounds.equal.members(place)
                    seen.update(members)
                    yield [other for other in members if other[0] in self._leaders]

    def _conditions(self, own: set[str]) -> list[exp.Expr]:
        """The conditions on these tables alone, those that follow from equalities included."""
        found: dict[exp.Expr, None] = {}
        for group in self._equal():
            inside = [place for place in group if place[0] in own]
            for one, other in pairwise(inside):
                found[exp.EQ(this=form_at(one), expression=form_at(other))] = None
            if len(inside) == 1 and self._never_empty(inside[0]):
                found[not_null(form_at(inside[0]))] = None
        for condition in self.grounds.conditions:
            tree = self._public(condition, own)
            if tree is not None and not _is_trivial(tree):
                found[tree] = None
        return list(found)

    def _never_empty(self, place: Reference) -> bool:
        """Whether only the query, by an equality with a private column, leaves out its NULL."""
        return self.grounds.column(place).nullable and not self.grounds.nullable(place)

    def _public(self, tree: exp.Expr, own: Collection[str]) -> exp.Expr | None:
        """An expression over columns of these tables, equal ones in the place of others."""
        places: dict[exp.Expr, exp.Expr] = {}
        for named in references(tree):
            alike = self.grounds.alike(named)
            public = next((place for place in alike if place[0] in own), None)
            if public is None:
                return None
            places[form_at(named)] = form_at(public)
        return placed(tree, places) if places else None


def _is_trivial(condition: exp.Expr) -> bool:
    """A column that equals itself: what was said of a private one in between."""
    return isinstance(condition, exp.EQ) and condition.this == condition.expression
