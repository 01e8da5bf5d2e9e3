"""Statistics -> an upper limit of a residual's value, without a look at its join.

Many residuals are too small to matter for a sensitivity, and a limit tells so before they are
evaluated. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Atom, Variable
from sqlrs.residuals.residual import Residual


def limit(residual: Residual, statistics: Statistics) -> int:
    """A number that T_E does not exceed, whatever its predicates and its output.

    For one value of the boundary the atoms are joined one after the other; each multiplies the
    results at most by the number of its rows that agree with the variables known so far, and by the
    bound of its weights.
    """
    joined = residual.query.never_null
    known = residual.boundary
    left = list(residual.atoms)
    product = 1
    while left:
        most, place = min(
            (_most_rows(atom, known, joined, statistics), i) for i, atom in enumerate(left)
        )
        atom = left.pop(place)
        product *= most if atom.weight is None else most * atom.weight.bound
        known |= atom.variables
    return product


def _most_rows(
    atom: Atom, known: frozenset[Variable], joined: frozenset[Variable], statistics: Statistics
) -> int:
    """A limit of the rows of one atom that agree on the known variables."""
    if any(key <= known for key in atom.keys):
        return 1
    # Only joined variables are never NULL, and frequencies leave NULL out.
    columns = [name for name, term in atom.terms if term in known and term in joined]
    return min(
        (statistics.most_frequent(atom.table, name) for name in columns),
        default=statistics.count(atom.table),
    )
