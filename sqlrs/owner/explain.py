"""Query -> what may be known before any budget is spent: from the schema and formulas alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape

from sqlrs.dialects import dialect_named
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.measuring.solvable import solvable
from sqlrs.mechanisms.base import Mechanism
from sqlrs.owner.in_short import WORDS, in_short
from sqlrs.owner.picture import draw
from sqlrs.planning.choose import choose
from sqlrs.planning.index_hints import index_hints
from sqlrs.planning.plan import ResidualPlan
from sqlrs.query import Atom, Constant, Query
from sqlrs.records import dataclass
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.trees.predicates import predicate_text
from sqlrs.work_bound import NOTHING_DECLARED, DeclaredSizes, largest_join, undeclared

_MOST_HINTS = 3
_EXACT = "exact, for every value that the other table could bring"
_RELAXED = "dropped, as more values are left open together than the setting max_external allows"
_SOLVED = "solved, for every value that the other table could bring"
_DROPPED = "dropped, which can raise the sensitivity"


@dataclass(frozen=True)
class Explanation:
    """The query graph, its residuals and plans, and the error as a multiple of the sensitivity."""

    residuals: Residuals
    mechanism: Mechanism
    dialect: str
    plan: str = "auto"
    sizes: DeclaredSizes = NOTHING_DECLARED

    @property
    def query(self) -> Query:
        """The query that was understood."""
        return self.residuals.query

    def __str__(self) -> str:
        return "\n".join(
            [
                in_short(self.residuals, self.mechanism),
                "",
                *self._query_lines(),
                "",
                *self._count_lines(),
                "",
                *self._residual_lines(),
                "",
                *self._predicate_lines(),
                *self._work_lines(),
                *self._noise_lines(),
                *(("", *WORDS) if self.query.private else ()),
            ]
        )

    def _repr_html_(self) -> str:
        """The picture and the text, as a notebook shows them."""
        return f"<div>{self.svg()}<pre>{escape(str(self))}</pre></div>"

    def svg(self, aliases: Collection[str] | None = None) -> str:
        """A picture of the query graph; the residual of ``aliases`` is marked with its boundary."""
        wanted = arguments.names("aliases", aliases or ())
        unknown = sorted(set(wanted) - {atom.alias for atom in self.query.atoms})
        if unknown:
            raise UsageError(f"the query has no table called {', '.join(unknown)}")
        members = frozenset(i for i, atom in enumerate(self.query.atoms) if atom.alias in wanted)
        return draw(self.query, self.residuals.of(members) if members else None)

    def _query_lines(self) -> list[str]:
        query = self.query
        lines = ["query"]
        lines += [f"  {atom_text(atom)}" for atom in query.atoms]
        lines += [f"  where {predicate_text(predicate)}" for predicate in query.predicates]
        if query.distinct is None:
            lines.append("  counts rows")
        else:
            lines.append(f"  counts distinct ({', '.join(map(str, sorted(query.distinct)))})")
        return lines

    def _count_lines(self) -> list[str]:
        plan = self._plan(self.residuals.of(self.query.everything))
        return [f"count: {plan.name}", *(f"  {line}" for line in plan.lines())]

    def _residual_lines(self) -> list[str]:
        wanted = self.mechanism.prepare(self.residuals).wanted
        undecided = self.residuals.undecided(wanted)
        same = representatives(undecided)
        statements = {r.members for r in same.values()}
        lines = [
            f"residuals: {len(wanted)} set{'s' if len(wanted) != 1 else ''} of tables, "
            f"{len(statements)} statement{'s' if len(statements) != 1 else ''} to run"
        ]
        for members in sorted(wanted, key=lambda m: (len(m), sorted(m))):
            residual = self.residuals.of(members)
            if members:
                lines += self._residual(residual, {m: r for m, r in same.items()})
        return lines

    def _residual(self, residual: Residual, same: dict[frozenset[int], Residual]) -> list[str]:
        boundary = ", ".join(map(str, sorted(residual.boundary))) or "none"
        head = f"  {residual}  boundary {boundary}"
        if residual.external:
            head += f"  over all values of {', '.join(map(str, sorted(residual.external)))}"
        parts = self.residuals.parts(residual.members)
        if all(part.decided for part in parts):
            return [f"{head}: 1, decided without data"]
        if len(parts) > 1:
            return [f"{head}: product of {' × '.join(str(part) for part in parts)}"]
        if same[residual.members] != residual:
            return [f"{head}: the same as {same[residual.members]}"]
        plan = self._plan(residual)
        return [f"{head}: {plan.name}", *(f"      {line}" for line in plan.lines())]

    def _plan(self, residual: Residual) -> ResidualPlan:
        return choose(residual, None, how=self.plan)

    def _predicate_lines(self) -> list[str]:
        """How predicates are read by residuals that hold one part of their columns only."""
        query, reading = self.query, self.residuals.reading
        lines = [
            f"  {comparison}: {_EXACT if reading.exact_comparisons else _RELAXED}"
            for comparison in sorted(query.comparisons, key=str)
            if len(comparison.variables) > 1
        ]
        understood = solvable(query)
        for general in query.generals:
            how = _SOLVED if general in reading.solved else _DROPPED
            if general in understood - reading.solved:
                how += "; the solver would keep it"
            lines.append(f"  {predicate_text(general)}: {how}")
        return ["where a residual leaves out one of its tables", *lines, ""] if lines else []

    def _work_lines(self) -> list[str]:
        """How large a join can be, by the declared sizes: public."""
        return work_lines(self.residuals, self.mechanism.prepare(self.residuals).wanted, self.sizes)

    def _noise_lines(self) -> list[str]:
        lines = [f"noise: {self.mechanism.fitted(self.residuals).describe()}"]
        if not self.query.private:
            lines = ["noise: none; every table is public, so the count is exact and costs nothing"]
        if dialect_named(self.dialect).uses_indexes:
            hints = index_hints(self.query)[:_MOST_HINTS]
            lines += [f"  an index that may help: {hint}" for hint in hints]
        return lines


def work_lines(residuals: Residuals, wanted: Iterable[Members], sizes: DeclaredSizes) -> list[str]:
    """The largest join that the declared sizes allow, and whether that is too large."""
    if len(residuals.query.atoms) == 1:
        return []
    unknown = undeclared(residuals.query, sizes)
    if unknown:
        return [f"largest join: no bound, as declared_rows says nothing of {', '.join(unknown)}"]
    found = largest_join(residuals, wanted, sizes)
    if found is None:
        return []
    whole = found.residual.members == residuals.query.everything
    where = "the count" if whole else f"the residual {found.residual}"
    lines = [f"largest join: at most {found.rows:,} rows, for {where}: {found.join}"]
    if sizes.most is not None and found.rows > sizes.most:
        lines.append(f"  refused: max_intermediate_rows is {sizes.most:,}")
    return lines


def atom_text(atom: Atom) -> str:
    """An atom with its variables, its filters counted, and what is public about its table."""
    terms = ", ".join(
        f"{name} = {term}" if isinstance(term, Constant) else f"{name}: {term}"
        for name, term in atom.terms
    )
    keys = [
        f"key ({', '.join(c.name for c in atom.table.columns if c.name in key)})"
        for key in sorted(atom.table.keys, key=sorted)
    ]
    facts = ["private" if atom.table.private else "public", *(keys or ["no key"])]
    if atom.table.private and atom.table.rows_per_unit > 1:
        facts.append(f"units of {atom.table.rows_per_unit} rows")
    filters = f" with {len(atom.filters)} filter(s)" if atom.filters else ""
    return f"{atom.alias} = {atom.table.label}({terms}){filters}  [{', '.join(facts)}]"
