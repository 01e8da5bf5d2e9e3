"""The results of a query by the units that own them, read as columns of integers."""

from __future__ import annotations

from sqlrs.engines.base import integer_columns
from sqlrs.errors import EngineFailed
from sqlrs.measures import OwnedResults, Signed
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning.by_group import by_group
from sqlrs.query import Variable
from sqlrs.residuals.residual import Residuals
from sqlrs.sql import owned
from sqlrs.values import sort_alike

_UUID = "uuid"
"""A type whose values have one form, like those that values.py knows of."""


def owner_variables(signed: Signed) -> frozenset[Variable]:
    """Where the ids of the owners stand; an owner that is a constant has no rows of its own."""
    found = frozenset(term for term in signed.owners if isinstance(term, Variable))
    if not found or len(found) != len(set(signed.owners)):
        raise ValueError("the owners of a result are not variables of its query")
    kinds = {variable.type for variable in found}
    if not sort_alike(kinds) and {kind.name.lower() for kind in kinds} != {_UUID}:
        raise ValueError("ids of different types are not of one unit")
    return found


def read_owned_results(
    signed: Signed, residuals: Residuals, most: int, evaluator: Evaluator
) -> OwnedResults:
    """All of them in one statement; more than ``most`` rows of owners fail before they are read."""
    whole = residuals.of(residuals.query.everything)
    plan = by_group(whole, owner_variables(signed), evaluator.statistics, how=evaluator.how)
    statement = owned.owned_results(plan, most + 1, evaluator.dialect)
    *units, weights = integer_columns(evaluator.snapshot, statement, len(plan.keys) + 1)
    if len(weights) > most:
        raise EngineFailed("results have more different owners than the limit")
    if weights and min(weights) <= 0:
        raise EngineFailed("results of some owners add up to less than they can")
    return OwnedResults(tuple(units), weights)
