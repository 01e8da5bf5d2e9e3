"""Global sensitivity over all databases with given table sizes, by the AGM bound. Reads no data.

GS ≤ max over private tables r of Σ_{∅≠F⊆D_r} AGM(q_{[n]−F} without what its boundary determines),
for neighbours that substitute a row, so that the sizes are public. See docs/sensitivities.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from fractions import Fraction

from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual, Residuals, subsets
from sqlrs.sensitivity.agm import Power, agm_bound


@dataclass(frozen=True)
class GlobalSensitivity:
    """A bound for every database: N^exponent up to a constant, its formula, and its value.

    ``formula`` has all tables at N rows. ``value`` is for the sizes that were given: each power is
    rounded up to an integer.
    """

    exponent: Fraction
    formula: str
    value: Fraction | None


def global_sensitivity(query: Query, sizes: Mapping[str, int] | None = None) -> GlobalSensitivity:
    """The bound as a formula in N and, with the sizes of all tables by label, as a number."""
    residuals = Residuals(query)
    equal = {atom.table.label: 2 for atom in query.atoms}
    symbolic = [Counter(power.exponent for power in powers) for powers in _steps(residuals, equal)]
    greatest = max(symbolic, key=_leading, default=Counter({Fraction(0): 0}))
    value = None
    if sizes is not None:
        totals = [sum(p.ceiling() for p in powers) for powers in _steps(residuals, sizes)]
        value = Fraction(max(totals, default=0))
    return GlobalSensitivity(max(greatest), _formula(greatest), value)


def _steps(residuals: Residuals, sizes: Mapping[str, int]) -> list[list[Power]]:
    """For each private table the bounds of all residuals that one of its rows can meet."""
    everything = residuals.query.everything
    return [
        [_bound(residuals.of(everything - changed), sizes) for changed in subsets(atoms) if changed]
        for atoms in residuals.query.private_tables
    ]


def _bound(residual: Residual, sizes: Mapping[str, int]) -> Power:
    """AGM of the variables that remain to be chosen once the boundary is fixed.

    A table without a key is a bag: its row is one more variable, which no other atom covers.
    """
    members = sorted(residual.members)
    free = residual.variables - residual.determined
    if residual.output is not None:
        free &= residual.output
    edges: list[frozenset[Hashable]] = []
    for i in members:
        atom = residual.query.atoms[i]
        row = {i} if residual.output is None and not atom.table.keys else set[int]()
        edges.append(frozenset[Hashable]((atom.variables & free) | row))
    # An empty table bounds nothing once a neighbour may fill it.
    rows = [max(1, sizes[residual.query.atoms[i].table.label]) for i in members]
    return agm_bound(edges, rows)


def _leading(powers: Counter[Fraction]) -> list[tuple[Fraction, int]]:
    return sorted(powers.items(), reverse=True)


def _formula(powers: Counter[Fraction]) -> str:
    terms = []
    for exponent, times in _leading(powers):
        if exponent == 0:
            terms.append(str(times))
            continue
        power = "N" if exponent == 1 else f"N^{exponent}"
        if exponent.denominator > 1:
            power = f"N^({exponent})"
        terms.append(power if times == 1 else f"{times}·{power}")
    return " + ".join(terms)
