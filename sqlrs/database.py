"""The Python surface of open data: ask private counts and tables, look at plans and diagnostics."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine
from sqlrs.epsilon import MAX_ERROR, parse_epsilon
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.inputs import arguments
from sqlrs.inputs.bigquery import check_unit_column, without_clause
from sqlrs.ledger import Ledger
from sqlrs.measuring.work import Progress
from sqlrs.mechanisms import CLIPPED, DEFAULT
from sqlrs.release import release, release_table
from sqlrs.settings import Number, Request, Settings, Wish

if TYPE_CHECKING:
    # What not every count needs is imported when it is asked for.
    from sqlrs.owner.diagnose import Diagnosis
    from sqlrs.owner.dry_run import DryRun
    from sqlrs.owner.explain import Explanation
    from sqlrs.owner.explain_statement import StatementExplanation
    from sqlrs.owner.statements import Statement
    from sqlrs.prices import Prices
    from sqlrs.table_answer import TableAnswer
    from sqlrs.wished_steps import WishDesk


class Database:
    """A connection whose tables may be counted privately."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        *,
        ledger: Ledger,
        analyst: str,
        dataset: str,
        settings: Settings,
        schema_only: bool = False,
    ) -> None:
        self.engine = engine
        self.catalog = catalog
        self.ledger = ledger
        self.analyst = analyst
        self.dataset = dataset
        self.settings = settings
        self.schema_only = schema_only

    def count(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        error: Number | None = None,
        max_epsilon: Number | None = None,
        mechanism: str = DEFAULT,
        shape: int | None = None,
        error_bars: Number | None = None,
        analyst: str | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """A private count: charged to the ledger first, then computed, then released with noise.

        With ``error`` instead of ``epsilon``: as much of ``max_epsilon`` as makes half of the 95 %
        interval no larger than that. A count over public tables alone is exact and costs nothing.
        """
        self._require_rows()
        sql, epsilon = self._asked(sql, epsilon)
        wish = wish_of(epsilon, error, max_epsilon)
        if wish is not None and (
            mechanism not in (DEFAULT, CLIPPED) or shape is not None or error_bars is not None
        ):
            raise UsageError(
                "with a wished error the mechanism, the shape and the error bars follow from it",
                hint="leave them out; clipped alone may be named",
            )
        request = Request(
            sql=sql,
            epsilon=wish.maximum if wish is not None else _price(epsilon),
            mechanism=mechanism,
            shape=shape,
            error_bars=error_bars,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        if wish is not None:
            from sqlrs.wished_release import release_wished

            return release_wished(request, wish, self._desk(progress))
        return release(
            request,
            engine=self.engine,
            catalog=self.catalog,
            ledger=self.ledger,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def query(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        error: Number | None = None,
        max_epsilon: Number | None = None,
        mechanism: str = DEFAULT,
        error_bars: Number | None = None,
        analyst: str | None = None,
        progress: Progress | None = None,
    ) -> TableAnswer:
        """The private answer of a statement: groups, sums, several aggregates, as a table.

        Charged once, whatever stands around its aggregates: HAVING, ORDER BY, LIMIT, arithmetic.
        ``error`` and ``max_epsilon`` as for ``count``: for one count or sum, grouped or not.
        """
        self._require_rows()
        sql, epsilon = self._asked(sql, epsilon)
        wish = wish_of(epsilon, error, max_epsilon)
        request = Request(
            sql=sql,
            epsilon=wish.maximum if wish is not None else _price(epsilon),
            mechanism=mechanism,
            error_bars=error_bars,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        if wish is not None:
            from sqlrs.wished_release import release_wished_table

            return release_wished_table(request, wish, self._desk(progress))
        return release_table(
            request,
            engine=self.engine,
            catalog=self.catalog,
            ledger=self.ledger,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def price(
        self,
        sql: str,
        *,
        error: Number | None = None,
        max_epsilon: Number = 1,
        analyst: str | None = None,
    ) -> Prices:
        """What is known of the price of an answer without spending any: nothing is charged.

        Where the query fixes its sensitivity: the epsilon of a wished error. Elsewhere the widths
        as multiples of the sensitivity, or by the scale that an earlier question released.
        """
        self._require_rows()
        request = Request(
            sql=sql,
            epsilon=max_epsilon,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        # With no wish, one that any price grants.
        wish = Wish(MAX_ERROR if error is None else error, max_epsilon)
        from sqlrs.prices import prices_of

        return prices_of(request, wish, self._desk(None), wished=error is not None)

    def dry_run(self, sql: str, epsilon: Number = 1, *, progress: Progress | None = None) -> DryRun:
        """Run a query as a release would and say how long that took: for the owner's eyes alone.

        Nothing is charged, and the answer is dropped.
        """
        from sqlrs.owner.dry_run import dry_run

        self._require_rows()
        sql, asked = self._asked(sql, epsilon)
        return dry_run(
            Request(sql=sql, epsilon=_price(asked), dataset=self.dataset),
            engine=self.engine,
            catalog=self.catalog,
            settings=replace(self.settings, refused_queries=()),
            progress=_checked_progress(progress),
        )

    def _asked(self, sql: str, epsilon: Number | None) -> tuple[str, Number | None]:
        """The text and the price, also where both are written as BigQuery wants them."""
        clause = without_clause(arguments.text("sql", sql))
        unit = self.catalog.unit
        check_unit_column(clause.unit_column, None if unit is None else unit.name)
        if clause.epsilon is None:
            return clause.sql, epsilon
        if epsilon is not None and parse_epsilon(epsilon) != parse_epsilon(clause.epsilon):
            raise UsageError("the text and the caller name different epsilons", hint="give one")
        return clause.sql, clause.epsilon

    def _desk(self, progress: Progress | None) -> WishDesk:
        from sqlrs.wished_steps import WishDesk

        return WishDesk(
            self.engine, self.catalog, self.ledger, self.settings, _checked_progress(progress)
        )

    def explain(
        self,
        sql: str,
        epsilon: Number = 1,
        *,
        mechanism: str = DEFAULT,
        shape: int | None = None,
        error_bars: Number | None = None,
    ) -> Explanation | StatementExplanation | Contradiction:
        """The query graph, residuals, plans and error multiple, from the schema alone.

        Of a statement with groups also how many there are; public rows are read for that.
        """
        request = Request(
            sql=sql, epsilon=epsilon, mechanism=mechanism, shape=shape, error_bars=error_bars
        )
        from sqlrs.owner.explain import Explanation
        from sqlrs.owner.explain_statement import explained

        chosen = request.chosen_mechanism()
        compiled = compiled_text(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return compiled
        if isinstance(compiled, CompiledStatement):
            return explained(compiled, request, self.engine, self.catalog, self.settings)
        return Explanation(
            compiled.residuals,
            chosen,
            self.catalog.dialect,
            self.settings.plan,
            self.settings.sizes,
        )

    def sql(self, sql: str, dialect: str | None = None) -> tuple[Statement, ...]:
        """The statement of the count and of each residual, as text of the dialect."""
        from sqlrs.owner.statements import statements

        compiled = Compiled.of(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return ()
        return statements(
            compiled.residuals,
            self.catalog.dialect if dialect is None else dialect,
            self.settings.plan,
        )

    def sensitivity(
        self,
        sql: str,
        method: str = "refined",
        beta: Number = "0.1",
        *,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """A sensitivity of the query on the data. For the owner: the result is not private."""
        from sqlrs.owner.diagnose import diagnose

        self._require_rows()
        return diagnose(
            sql,
            method=method,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def sensitivities(
        self, sql: str, beta: Number = "0.1", *, progress: Progress | None = None
    ) -> dict[str, Diagnosis | QueryRefused]:
        """All sensitivities side by side. For the owner: the results are not private."""
        from sqlrs.owner.diagnose import diagnose_all

        self._require_rows()
        return diagnose_all(
            sql,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def _require_rows(self) -> None:
        if self.schema_only:
            raise UsageError("this database was opened for its schema only; no key was checked")

    def close(self) -> None:
        """Close the connection."""
        self.engine.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def wish_of(
    epsilon: Number | None, error: Number | None, max_epsilon: Number | None
) -> Wish | None:
    """The wish, None where a price is given instead; one of the two is needed."""
    if (epsilon is None) == (error is None):
        raise UsageError(
            "give either epsilon or a wished error",
            hint="epsilon=1 spends that much; error=100, max_epsilon=1 as much as the error takes",
        )
    if error is None:
        if max_epsilon is not None:
            raise UsageError("max_epsilon is for a wished error", hint="give error too")
        return None
    if max_epsilon is None:
        raise UsageError(
            "a wished error needs the most that it may cost", hint="give max_epsilon, such as 1"
        )
    return Wish(error, max_epsilon)


def _price(epsilon: Number | None) -> Number:
    if epsilon is None:
        raise UsageError("no epsilon was given")
    return epsilon


def _checked_progress(given: Progress | None) -> Progress | None:
    # One that cannot be called would fail after the charge.
    if given is not None and not callable(given):
        raise UsageError("progress must be a function, or None")
    return given
