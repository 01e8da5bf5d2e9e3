"""A residual counted for every value of its group keys: no group is left out, so none is pruned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlrs.compiler.forms import tells_equal_values_apart
from sqlrs.planning.inclusion_exclusion import Planner, Sum
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.planning.passing import passed
from sqlrs.planning.problem import Problem
from sqlrs.planning.symmetry import ordered
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.witnesses import Witnessed, by_keys, witnessed
from sqlrs.query import Atom, Query, Term, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.trees.naming import free_name


@dataclass(frozen=True)
class ByGroup:
    """For each value of ``keys`` the largest count over the boundary, where there is one.

    ``total`` counts per value of the boundary, the keys and the factors; None: join everything,
    then group. Each count is multiplied by the ``factors``. ``witnesses``: joined are the rows that
    distinct outputs decide, those that have their witnesses.
    """

    residual: Residual
    keys: frozenset[Variable]
    factors: tuple[Term, ...] = ()
    total: Sum | None = None
    witnesses: Witnessed | None = None

    def __post_init__(self) -> None:
        if self.residual.external:
            raise ValueError("no plan by groups ranges over external variables")
        if not self.keys <= self.residual.variables:
            raise ValueError("a residual does not hold the variable of a group key")

    @property
    def free(self) -> frozenset[Variable]:
        """The variables that results are counted per value of."""
        factors = frozenset(term for term in self.factors if isinstance(term, Variable))
        return self.residual.boundary | self.keys | factors


def by_group(
    residual: Residual,
    keys: Iterable[Variable],
    statistics: Statistics | None = None,
    *,
    how: str = "auto",
) -> ByGroup:
    """The plan for all groups; statistics guide the choice, never the values."""
    plain = how == "plain" or any(map(tells_equal_values_apart, residual.generals))
    plan = ByGroup(residual, frozenset(keys))
    if residual.weighted and residual.output is not None:
        plan = _with_factors(plan)
    if plain:
        return plan
    planner = Planner(statistics or Statistics())
    problem = replace(Problem.of(plan.residual), free=plan.free)
    ways = [planner.exact(problem, thorough=statistics is not None)]
    # Of the rewrites, these keep every group; others keep the largest count alone.
    ways += [found for way in (ordered, passed) if (found := way(problem, planner)) is not None]
    return replace(plan, total=min(ways, key=lambda way: way.cost))


def by_keys_alone(residual: Residual) -> ByGroup | None:
    """The plan for one number where keys join everything: the engine knows best in which order."""
    found = witnessed(residual)
    if found is not None:
        return ByGroup(residual, frozenset(), witnesses=found) if by_keys(residual, found) else None
    plain = residual.output is None and not residual.weighted and joins_by_keys(residual.atoms)
    return ByGroup(residual, frozenset()) if plain else None


def _with_factors(plan: ByGroup) -> ByGroup:
    """The plan with weights as variables of the output, which decides them already.

    Results are counted for each of their values.
    """
    residual, query = plan.residual, plan.residual.query
    taken = {v.name.lower() for v in query.variables(query.everything)}
    atoms: list[Atom] = []
    factors: list[Term] = []
    for i, atom in enumerate(query.atoms):
        if atom.weight is not None and i in residual.members:
            name = atom.weight.column
            term = dict(atom.terms).get(name)
            if term is None:
                term = Variable(
                    free_name(f"weight_{atom.alias}", taken), atom.table.column(name).type
                )
                atom = replace(atom, terms=(*atom.terms, (name, term)))
            factors.append(term)
        atoms.append(replace(atom, weight=None))
    assert query.distinct is not None
    output = query.distinct.union(term for term in factors if isinstance(term, Variable))
    unweighted = Query(tuple(atoms), query.inequalities, query.comparisons, query.generals, output)
    return replace(plan, residual=replace(residual, query=unweighted), factors=tuple(factors))
