"""Single rows protected by clipping: what each private row adds is cut to a chosen threshold.

For queries each of whose results has one private row. Privacy: docs/proofs/clipped_rows.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import prod

from sqlrs.errors import UsageError
from sqlrs.measures import Measure, Signed
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.base import Draw, Noisy
from sqlrs.mechanisms.clipped import ClippedVector, clipped_vector
from sqlrs.mechanisms.vector_base import Summand, VectorMechanism
from sqlrs.mechanisms.vector_exact import ExactVector
from sqlrs.noise import RandomBits
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.query import Atom, Query, Term, Variable, closure
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.clipping import fine_grid
from sqlrs.trees.naming import free_name
from sqlrs.trees.row_ids import ROW_ID, with_row_id
from sqlrs.values import behave_alike

MAX_CONTRIBUTION = 2**40
"""The largest threshold where nothing else is said: accuracy hardly depends on it."""


def clipped_rows_mechanism(
    measure: Measure,
    summands: Sequence[Summand],
    size: int,
    *,
    epsilon: Decimal,
    strict: bool,
    error_bars: bool,
    max_contribution: int,
) -> VectorMechanism:
    """The mechanism of a measure over ``size`` groups; ``error_bars`` are free.

    ``strict``: a neighbour may have another row in the place of one.
    """
    coverage = DEFAULT_COVERAGE if error_bars else None
    if not size or not any(one.private for one in summands):
        return ExactVector(tuple(summands), size, coverage)
    return clipped_rows_vector(
        measure,
        summands,
        size,
        epsilon=epsilon,
        strict=strict,
        coverage=coverage,
        max_contribution=max_contribution,
    )


def clipped_rows_vector(
    measure: Measure,
    summands: Sequence[Summand],
    size: int,
    *,
    epsilon: Decimal,
    strict: bool,
    coverage: Fraction | None,
    max_contribution: int = MAX_CONTRIBUTION,
) -> ClippedVector:
    """The mechanism of a measure each of whose results has one private row; else a refusal."""
    private = [one for one in summands if one.private]
    if len({_private_table(one.signed.query) for one in private}) > 1:
        raise refusal("clipping_needs_one_row")
    owned = tuple(_with_row(one) if one.private else one for one in summands)
    found = clipped_vector(
        replace(measure, terms=tuple(one.signed for one in owned)),
        owned,
        size,
        epsilon=epsilon,
        strict=strict,
        coverage=coverage,
        max_contribution=max_contribution,
    )
    most = _most(private)
    grid = found.grid if most is None else fine_grid(max(1, min(most, found.grid[-1])))
    # Equal rows go by one name: another copy of one and a copy less of another change two units.
    copies = strict and any(not _private_atom(one.signed.query).table.keys for one in private)
    return replace(found, grid=grid, protected="row", opposed=copies)


def _private_atom(query: Query) -> Atom:
    (place,) = query.private
    return query.atoms[place]


def _private_table(query: Query) -> tuple[str | None, str]:
    if len(query.private) != 1:
        raise refusal("clipping_needs_one_row")
    (place,) = query.private
    table = query.atoms[place].table
    if table.rows_per_unit > 1:
        raise refusal("clipping_needs_one_row", "what is protected here is more than a row")
    return table.identity


def _most(private: Sequence[Summand]) -> int | None:
    """What one row adds at most, where keys alone decide it; None: data decide it."""
    total = 0
    for one in private:
        query = one.signed.query
        (place,) = query.private
        known = query.atoms[place].variables
        others = query.everything - {place}
        # Equal rows of a bag have one name, and are cut together.
        if not query.atoms[place].table.keys or closure(query, others, known)[1] != others:
            return None
        weights = (atom.weight.bound for atom in query.atoms if atom.weight is not None)
        total += abs(one.signed.coefficient) * prod(weights)
    return total


def _with_row(summand: Summand) -> Summand:
    """The term with the row as the owner of its results."""
    signed = summand.signed
    query = signed.query
    (place,) = query.private
    if (
        query.distinct is not None
        and place not in closure(query, query.everything, query.distinct)[1]
    ):
        raise refusal(
            "clipping_needs_one_row", "several private rows may have one of these results"
        )
    owner = _key_variable(query, place)
    if owner is None:
        query, owner = _named_row(query, place)
    if query.distinct is not None and isinstance(owner, Variable):
        # It follows from the output, so it adds none.
        query = replace(query, distinct=query.distinct | {owner})
    owned = Signed(signed.coefficient, query, signed.keys, (owner,))
    return Summand(owned, Residuals(query))


def _key_variable(query: Query, place: int) -> Term | None:
    """The variable that is a key of the row by itself, if there is one that can be grouped by."""
    atom = query.atoms[place]
    for key in sorted(atom.keys, key=lambda key: (len(key), sorted(key))):
        # Where equal values may differ, as under a collation, two rows would pass for one.
        if len(key) == 1 and behave_alike([(variable := min(key)).type]):
            return variable
    return None


def _named_row(query: Query, place: int) -> tuple[Query, Variable]:
    """The query with a variable that stands for the row's own name."""
    atom = query.atoms[place]
    table, name = with_row_id(atom.table)
    taken = {variable.name.lower() for variable in query.variables(query.everything)}
    row = Variable(free_name("row_id", taken), ROW_ID)
    named = replace(atom, table=table, terms=(*atom.terms, (name, row)))
    atoms = (*query.atoms[:place], named, *query.atoms[place + 1 :])
    return replace(query, atoms=atoms), row


@dataclass(frozen=True)
class ClippedRows:
    """Clipping as the mechanism of a single count, once the query is known a ``vector`` of one."""

    epsilon: Decimal
    coverage: Fraction | None = None
    vector: ClippedVector | None = None
    name = ClippedVector.name

    @property
    def prices(self) -> tuple[Decimal, ...]:
        """Choice and noise together: error bars tell nothing that is not public."""
        return (self.epsilon,)

    def describe(self) -> str:
        """The thresholds and the noise; before a query is known, that they are chosen."""
        if self.vector is not None:
            return self.vector.describe()
        return f"clipped: each row cut to a threshold that is chosen, epsilon {self.epsilon}"

    def fitted(self, residuals: Residuals) -> ClippedRows:
        """For this query; one whose results have several private rows is refused."""
        signed = Signed(1, residuals.query)
        vector = clipped_rows_vector(
            Measure((signed,)),
            [Summand(signed, residuals)],
            1,
            epsilon=self.epsilon,
            strict=True,
            coverage=self.coverage,
        )
        return replace(self, vector=vector)

    def prepare(self, residuals: Residuals) -> PreparedClippedRows:
        """There is one statement to run."""
        vector = self.vector or self.fitted(residuals).vector
        if vector is None:
            raise AssertionError("a fitted mechanism has a vector")
        return PreparedClippedRows(vector)


@dataclass(frozen=True)
class PreparedClippedRows:
    """The mechanism for one query; it measures no residual."""

    vector: ClippedVector
    wanted: tuple[Members, ...] = ()

    def measure(self, measurements: Measurements) -> Draw:
        """What the rows contribute."""
        draw = self.vector.measure(measurements, (), ((),))

        def noisy(bits: RandomBits) -> Noisy:
            (number,) = draw(bits)
            return number

        return noisy


def clipped_rows(epsilon: Decimal, shape: int | None, error_bars: Decimal | None) -> ClippedRows:
    """The mechanism by its price; the price of error bars is not needed."""
    if shape is not None:
        raise UsageError("the mechanism clipped has no shape", hint="leave --shape out")
    return ClippedRows(epsilon, None if error_bars is None else DEFAULT_COVERAGE)
