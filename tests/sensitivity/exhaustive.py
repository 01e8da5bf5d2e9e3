"""Every instance of a tiny domain against every neighbour: what must hold for a smooth bound.

For neighbours I, I' that differ in a row of table r, with T by brute force from the definition:
"step"    T(I) ≤ Ψ_r(T(I')),
"local"   |q(I) − q(I')| ≤ L(T(I)),
"smooth"  w · RS+(I) ≤ RS+(I'), w the decay of the weights,
"above"   RS+(I) ≤ RS(I), for the lattice.
`check` reports which of them fail, so that a test can also ask that a wrong rule is caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from sqlrs.catalog import Table
from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Reading, Residuals
from sqlrs.sensitivity import refined
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from tests.support import brute

Row = tuple[object, ...]
Rows = tuple[Row, ...]
Values = Mapping[Members, int]
Evaluate = Callable[[Residuals, Sequence[Members], Mapping[str, Rows]], Values]


@dataclass(frozen=True)
class Shape:
    """A query and the tiny world it is checked in."""

    name: str
    query: Query
    values: Sequence[object] = (0, 1)
    most: int = 3
    universe: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    reading: Reading | None = None
    decays: Sequence[Fraction] = (Fraction(1, 2), Fraction(4, 5))

    @property
    def tables(self) -> tuple[Table, ...]:
        found = {atom.table.label: atom.table for atom in self.query.atoms}
        return tuple(found.values())

    def rows(self, table: Table) -> Sequence[Row]:
        return self.universe.get(table.label) or list(
            product(self.values, repeat=len(table.columns))
        )


@dataclass
class Report:
    """How many pairs were tried and which statements failed."""

    pairs: int = 0
    failed: set[str] = field(default_factory=set)
    example: dict[str, object] = field(default_factory=dict)

    def fail(self, what: str, example: object) -> None:
        self.failed.add(what)
        self.example.setdefault(what, example)


def definition(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """T_E of the wanted sets, by brute force."""
    return brute.residual_values(residuals, wanted, database)


def instances(shape: Shape) -> Iterator[dict[str, Rows]]:
    """Every database of at most `most` rows a table."""
    universe = {table.label: shape.rows(table) for table in shape.tables}
    for database in brute.databases(shape.tables, universe, most=shape.most):
        yield {label: tuple(rows) for label, rows in database.items()}


def insertions(shape: Shape, database: Mapping[str, Rows]) -> Iterator[tuple[int, str, Rows]]:
    """Each private table's number and name with each way to hold one row more."""
    for number, atoms in enumerate(shape.query.private_tables):
        table = shape.query.atoms[min(atoms)].table
        for row in shape.rows(table):
            rows = (*database[table.label], row)
            if brute.keys_hold(table, rows):
                yield number, table.label, rows


def check(
    shape: Shape,
    *,
    evaluate: Evaluate = definition,
    databases: Iterable[Mapping[str, Rows]] | None = None,
    residuals: type[Residuals] = Residuals,
    stop_at_failure: bool = False,
) -> Report:
    """Compare every given database (all tiny ones by default) with all its neighbours."""
    world = _World(shape, evaluate, residuals, [Weights(decay) for decay in shape.decays])
    report = Report()
    for database in instances(shape) if databases is None else databases:
        here = world.at(database)
        larger: dict[int, list[_Point]] = {}
        for number, label, rows in insertions(shape, database):
            larger.setdefault(number, []).append(world.at({**database, label: rows}))
        for number, points in larger.items():
            # Two insertions of one table are a substitution apart.
            for one, other in product([here, *points], repeat=2):
                if one is not other:
                    report.pairs += 1
                    world.compare(number, one, other, report)
        if stop_at_failure and report.failed:
            break
    return report


@dataclass(frozen=True, eq=False)
class _Point:
    """An instance as far as the checks see it."""

    database: Mapping[str, Rows]
    count: int
    vector: tuple[int, ...]
    bounds: tuple[Fraction, ...]


class _World:
    def __init__(
        self,
        shape: Shape,
        evaluate: Evaluate,
        residuals: type[Residuals],
        weights: Sequence[Weights],
    ) -> None:
        self.shape = shape
        self.evaluate = evaluate
        self.weights = weights
        self.residuals = residuals(shape.query, shape.reading)
        self.recursion = compile_recursion(self.residuals)
        labels = [shape.query.atoms[min(atoms)].table.label for atoms in shape.query.private_tables]
        steps = {step.table: step for step in self.recursion.steps}
        self.steps = [steps.get(label) for label in labels]
        self.wanted = tuple(
            dict.fromkeys((*refined.reached(self.residuals), *self.residuals.required))
        )
        self.known: dict[object, _Point] = {}
        self.bounds: dict[object, tuple[Fraction, ...]] = {}
        self.stepped: dict[object, tuple[int, ...]] = {}
        self.falls: dict[tuple[int, int], bool] = {}
        self.above: list[object] = []

    def at(self, database: Mapping[str, Rows]) -> _Point:
        canonical = {label: tuple(sorted(rows, key=repr)) for label, rows in database.items()}
        key = tuple(canonical.items())
        if key not in self.known:
            values = self.evaluate(self.residuals, self.wanted, canonical)
            vector = tuple(values[members] for members in self.recursion.coordinates)
            everything = tuple(values[members] for members in self.wanted)
            if everything not in self.bounds:
                self.bounds[everything] = tuple(self._bounds(values))
            self.known[key] = _Point(
                canonical,
                brute.count(self.shape.query, canonical),
                vector,
                self.bounds[everything],
            )
        return self.known[key]

    def _bounds(self, values: Values) -> Iterator[Fraction]:
        for weights in self.weights:
            bound = refined.refined_sensitivity(self.residuals, values, weights).value
            plain = residual_sensitivity(self.residuals, values, weights).value
            method = refined.choose_method(self.recursion, weights)
            if method is not None and method.lattice and bound > plain:
                self.above.append(values)
            yield bound
            yield refined.released_sensitivity(self.residuals, values, weights).value

    def step(self, number: int, vector: tuple[int, ...]) -> tuple[int, ...]:
        step = self.steps[number]
        if step is None:
            return vector
        if (number, vector) not in self.stepped:
            self.stepped[number, vector] = step(vector)
        return self.stepped[number, vector]

    def smooth(self, here: tuple[Fraction, ...], there: tuple[Fraction, ...]) -> bool:
        """Whether no bound falls faster than its weights; most instances share their bounds."""
        key = id(here), id(there)
        if key not in self.falls:
            decays = [weights.decay for weights in self.weights for _ in range(2)]
            triples = zip(here, there, decays, strict=True)
            self.falls[key] = all(one * decay <= other for one, other, decay in triples)
        return self.falls[key]

    def compare(self, number: int, one: _Point, other: _Point, report: Report) -> None:
        example = (self.shape.name, one.database, other.database)
        if any(a > b for a, b in zip(one.vector, self.step(number, other.vector), strict=True)):
            report.fail("step", example)
        if abs(one.count - other.count) > self.recursion.last(one.vector):
            report.fail("local", example)
        if not self.smooth(one.bounds, other.bounds):
            report.fail("smooth", example)
        if self.above:
            report.fail("above", self.above[0])
