"""Residuals -> the SQL statements that a release runs, as text for people to read."""

from __future__ import annotations

from sqlrs import dialects
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.planning.choose import choose
from sqlrs.planning.external_plans import Solved
from sqlrs.records import dataclass
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.sql.write import statement_of


@dataclass(frozen=True)
class Statement:
    """One SQL statement and the residuals whose value it gives."""

    title: str
    sql: str

    def __str__(self) -> str:
        return f"-- {self.title}\n{self.sql};"


def statements(residuals: Residuals, dialect: str, plan: str) -> tuple[Statement, ...]:
    """The statement of the count, then one for each class of isomorphic residuals."""
    if arguments.text("dialect", dialect) not in dialects.NAMES:
        known = ", ".join(dialects.NAMES)
        raise UsageError(f"there is no dialect {dialect!r}", hint=f"one of {known}")
    query = residuals.query
    wanted = dict.fromkeys((*residuals.required, *reached(residuals)))
    same = representatives(residuals.undecided(wanted))
    titles: dict[frozenset[int], list[str]] = {query.everything: ["the count"]}
    for members, chosen in same.items():
        titles.setdefault(chosen.members, []).append(str(residuals.of(members)))
    found = []
    for members, names in titles.items():
        residual = residuals.of(members)
        how = choose(residual, None, how=plan)
        boundary = ", ".join(map(str, sorted(residual.boundary)))
        where = f", boundary {boundary}" if boundary else ""
        then = ", whose rows the solver reads" if isinstance(how, Solved) else ""
        title = f"{' and '.join(names)}{where}{then}"
        tree = statement_of(how, dialect)
        found.append(Statement(title, dialects.dialect_named(dialect).written(tree, pretty=True)))
    return tuple(found)
