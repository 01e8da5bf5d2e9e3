"""A database with private tables, an owner who installs functions, and analysts who call them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from sqlrs.connecting import connect
from sqlrs.procedures import Definition, Grants, TableDefinition, installable
from sqlrs.procedures.install import install
from sqlrs.procedures.render import AnyDefinition
from tests.support.postgres_server import PostgresServer

Connection = psycopg.Connection[tuple[Any, ...]]
PASSWORD = "correct horse"
TRIANGLES = (
    "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src "
    "WHERE a.src = c.dst AND a.src <> a.dst AND a.src <> b.dst AND a.dst <> b.dst"
)


@dataclass(frozen=True)
class Desk:
    """One database; ``url`` is the superuser's."""

    server: PostgresServer
    url: str

    def url_of(self, role: str) -> str:
        """The URL of an analyst."""
        parts = urlsplit(self.url)
        password = PASSWORD.replace(" ", "%20")
        return f"postgresql://{role}:{password}@127.0.0.1:{parts.port}{parts.path}"

    @contextmanager
    def session(self, role: str | None = None, *, autocommit: bool = True) -> Iterator[Connection]:
        """A connection of an analyst, or of the superuser."""
        url = self.url if role is None else self.url_of(role)
        with psycopg.connect(url, autocommit=autocommit) as connection:
            yield connection

    def run(self, statement: str, role: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement in a session of its own."""
        with self.session(role) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def analyst(self, name: str) -> str:
        """A role that may log in and nothing else."""
        with self.session() as connection:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name])
            if not known.fetchall():
                text = "CREATE ROLE {} LOGIN PASSWORD {}"
                create = sql.SQL(text).format(sql.Identifier(name), sql.Literal(PASSWORD))
                connection.execute(create)
        return name

    def edges(self, rows: Iterable[tuple[int, int]]) -> None:
        """A table edge(src, dst) with these rows."""
        with self.session() as connection:
            connection.execute("DROP TABLE IF EXISTS edge")
            connection.execute("CREATE TABLE edge (src int, dst int, PRIMARY KEY (src, dst))")
            connection.cursor().executemany("INSERT INTO edge VALUES (%s, %s)", list(rows))

    def define(self, statement: str = TRIANGLES, **options: Any) -> Definition:
        """The definition of a count over the tables as they are."""
        definition = self.define_any(statement, **options)
        assert isinstance(definition, Definition)
        return definition

    def define_any(self, statement: str = TRIANGLES, **options: Any) -> AnyDefinition:
        """The definition of a function over the tables as they are."""
        public = options.pop("public", ())
        with connect(self.url, public=public) as database:
            return installable(statement, database.catalog, **{"name": "asked", **options})

    def install(
        self,
        statement: str = TRIANGLES,
        *,
        roles: Iterable[str] = ("ada",),
        budget: str | None = "100",
        dataset_budget: str | None = "1000",
        **options: Any,
    ) -> Definition:
        """Install a count, called ``asked`` unless named, for the given analysts."""
        definition = self.define(statement, **options)
        self.install_defined(definition, roles, budget, dataset_budget)
        return definition

    def install_table(
        self,
        statement: str,
        *,
        roles: Iterable[str] = ("ada",),
        budget: str | None = "1000000",
        dataset_budget: str | None = "1000000",
        **options: Any,
    ) -> TableDefinition:
        """Install a function that returns a table."""
        definition = self.define_any(statement, **options)
        assert isinstance(definition, TableDefinition)
        self.install_defined(definition, roles, budget, dataset_budget)
        return definition

    def install_defined(
        self,
        definition: AnyDefinition,
        roles: Iterable[str],
        budget: str | None,
        dataset_budget: str | None,
    ) -> None:
        """Install a function for the given analysts."""
        grants = Grants(
            roles=tuple(map(self.analyst, roles)),
            budget=None if budget is None else Decimal(budget),
            dataset_budget=None if dataset_budget is None else Decimal(dataset_budget),
        )
        install(self.url, definition, grants)

    def ask(self, epsilon: str | Decimal, role: str = "ada", name: str = "asked") -> Decimal:
        """The answer, as an analyst gets it by the plainest call."""
        with self.session(role) as connection:
            return ask(connection, epsilon, name)

    def spent(self) -> Mapping[str, Decimal]:
        """What is spent, by the name of the analyst or dataset."""
        rows = self.run("SELECT name, trim_scale(spent) FROM sqlrs.balances")
        return dict(cast(list[tuple[str, Decimal]], rows))


def ask(connection: Connection, epsilon: str | Decimal, name: str = "asked") -> Decimal:
    """One call in a given session."""
    call = sql.SQL("SELECT * FROM sqlrs.{}(epsilon => {})")
    value = sql.Literal(Decimal(epsilon))
    row = connection.execute(call.format(sql.Identifier(name), value)).fetchone()
    assert row is not None
    return cast(Decimal, row[0])
