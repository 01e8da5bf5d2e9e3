"""The PostgreSQL engine, on every server version at hand: catalog, snapshots, errors, leases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from sqlglot import exp, parse_one

from sqlrs.catalog import Catalog, Family, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, QueryRefused, UsageError
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.plain import plain
from tests.support.gaps import notyet

SECRET = "SECRET-7731"


def statement(text: str) -> exp.Expression:
    return parse_one(text, dialect="postgres")  # type: ignore[return-value]


COUNT = statement("SELECT count(*) FROM public.t")


@pytest.fixture
def owner(any_db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(any_db, autocommit=True) as connection:
        yield connection


def read(url: str) -> Catalog:
    with closing(open_engine(url)) as engine:
        return engine.catalog()


def found(catalog: Catalog, label: str) -> Table:
    return next(table for table in catalog.tables if table.label == label)


def keys_of(catalog: Catalog, label: str) -> list[list[str]]:
    return sorted(sorted(key) for key in found(catalog, label).keys)


@pytest.mark.parametrize(
    ("declared", "family", "name"),
    [
        ("smallint", Family.INTEGER, "smallint"), ("bigint", Family.INTEGER, "bigint"),
        ("numeric(10,3)", Family.DECIMAL, "numeric"), ("real", Family.FLOAT, "real"),
        ("float8", Family.FLOAT, "double precision"), ("text", Family.TEXT, "text"),
        ("varchar(7)", Family.TEXT, "character varying"), ("date", Family.DATE, "date"),
        ("timestamp(0)", Family.TIMESTAMP, "timestamp without time zone"),
        ("timestamptz", Family.TIMESTAMP_TZ, "timestamp with time zone"),
        ("boolean", Family.BOOLEAN, "boolean"), ("char(3)", Family.OTHER, "character"),
        ("citext", Family.OTHER, "ext.citext"), ("mood", Family.OTHER, "public.mood"),
        ("small", Family.INTEGER, "integer"), ("smaller", Family.INTEGER, "integer"),
        ("insensitive", Family.OTHER, "ext.citext"), ('"text"', Family.TEXT, "text"),
        ("public.text", Family.OTHER, "public.text"), ("json", Family.OTHER, "json"),
        ("int[]", Family.OTHER, "integer[]"), ("uuid", Family.OTHER, "uuid"),
        ("interval", Family.OTHER, "interval"), ("time", Family.OTHER, "time without time zone"),
        ("money", Family.OTHER, "money"), ("bytea", Family.OTHER, "bytea"),
    ],
)  # fmt: skip
def test_types(types_db: str, declared: str, family: Family, name: str) -> None:
    with psycopg.connect(types_db, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (x {declared})")
    kind = found(read(types_db), "public.t").columns[0].type
    assert (kind.family, kind.name, kind.collation) == (family, name, None)


@pytest.fixture(scope="module")
def types_db(any_server: object) -> Iterator[str]:
    with any_server.database() as url:  # type: ignore[attr-defined]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                """
                CREATE SCHEMA ext; CREATE EXTENSION citext SCHEMA ext;
                CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TYPE public.text AS ENUM ('a');
                CREATE DOMAIN small AS int CHECK (value < 9); CREATE DOMAIN smaller AS small;
                CREATE DOMAIN insensitive AS ext.citext
                """
            )
            name = connection.info.dbname
            connection.execute(f'ALTER DATABASE "{name}" SET search_path = public, ext')
        yield url


def test_collations(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute('CREATE TABLE t (a text, b text COLLATE "C", c text COLLATE "default")')
    assert [c.type.collation for c in found(read(any_db), "public.t").columns] == [
        None,
        '"C"',
        None,
    ]


@notyet("embedded", "it is built without ICU", raises=psycopg.errors.FeatureNotSupported)
def test_a_collation_that_is_not_deterministic_joins_only_itself(
    owner: psycopg.Connection, any_db: str
) -> None:
    owner.execute(
        "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    owner.execute("CREATE TABLE t (a text COLLATE ci PRIMARY KEY, b text)")
    table = found(read(any_db), "public.t")
    assert table.column("a").type.family is Family.OTHER
    assert not table.column("a").type.joins_with(table.column("b").type)
    assert table.keys == {frozenset({"a"})}


def test_keys_are_unique_never_null_and_always_enforced(
    owner: psycopg.Connection, any_db: str
) -> None:
    owner.execute(
        """
        CREATE TABLE t (
          id int PRIMARY KEY, name text UNIQUE, code text NOT NULL UNIQUE,
          a int NOT NULL, b int NOT NULL, UNIQUE (a, b),
          late int NOT NULL UNIQUE DEFERRABLE);
        CREATE TABLE i (a int NOT NULL, b int NOT NULL, c text NOT NULL);
        CREATE UNIQUE INDEX ON i (a) WHERE a > 0;
        CREATE UNIQUE INDEX ON i ((a + 1));
        CREATE UNIQUE INDEX ON i (c text_pattern_ops);
        CREATE UNIQUE INDEX ON i (c COLLATE "C");
        CREATE UNIQUE INDEX ON i (b) INCLUDE (a);
        CREATE TABLE invalid (a int NOT NULL);
        CREATE UNIQUE INDEX later ON invalid (a);
        UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'later'::regclass;
        """
    )
    catalog = read(any_db)
    assert keys_of(catalog, "public.t") == [["a", "b"], ["code"], ["id"]]
    assert keys_of(catalog, "public.i") == [["b"]]
    assert keys_of(catalog, "public.invalid") == []


def test_columns_that_an_index_has_in_order(owner: psycopg.Connection, any_db: str) -> None:
    """The first ones of B-trees over all rows, as their type compares."""
    owner.execute(
        """
        CREATE TABLE t (a int, b int, c int, d int, e text, f text, g int, PRIMARY KEY (a, b));
        CREATE INDEX ON t (c DESC, a);
        CREATE INDEX ON t (d) WHERE d > 0;
        CREATE INDEX ON t (lower(e), b);
        CREATE INDEX ON t (f text_pattern_ops);
        CREATE INDEX ON t (e COLLATE "C");
        CREATE INDEX ON t USING hash (g);
        """
    )
    assert found(read(any_db), "public.t").index_leads == {"a", "c"}


def test_children_and_partitions_belong_to_their_parent(
    owner: psycopg.Connection, any_db: str
) -> None:
    owner.execute(
        """
        CREATE TABLE parent (a int PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
        INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1);
        CREATE TABLE parted (a int PRIMARY KEY, b int) PARTITION BY RANGE (a);
        CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9);
        """
    )
    catalog = read(any_db)
    assert [t.label for t in catalog.tables] == ["public.parent", "public.parted"]
    assert keys_of(catalog, "public.parent") == []
    assert found(catalog, "public.parent").columns[0].nullable
    assert keys_of(catalog, "public.parted") == [["a"]]
    with closing(open_engine(any_db)) as engine, pytest.raises(UsageError):
        engine.check_keys(catalog, {"parent": [["a"]]})


def test_parents_that_share_a_child_are_left_out(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute(
        """
        CREATE TABLE one (a int); CREATE TABLE two (a int); CREATE TABLE alone (a int);
        CREATE TABLE middle () INHERITS (two); CREATE TABLE shared () INHERITS (one, middle);
        CREATE TABLE own () INHERITS (alone);
        """
    )
    assert [t.label for t in read(any_db).tables] == ["public.alone"]


def test_a_materialised_view_is_left_out(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW m AS TABLE t")
    assert [t.label for t in read(any_db).tables] == ["public.t"]


def test_foreign_tables_promise_nothing(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute("CREATE EXTENSION file_fdw; CREATE SERVER s FOREIGN DATA WRAPPER file_fdw")
    owner.execute("CREATE FOREIGN TABLE f (a int NOT NULL) SERVER s OPTIONS (filename '/x')")
    catalog = read(any_db)
    assert found(catalog, "public.f").columns[0].nullable
    assert keys_of(catalog, "public.f") == []


@notyet("postgres<18", "no NOT NULL NOT VALID", raises=psycopg.errors.SyntaxError)
def test_an_unvalidated_not_null_may_be_null(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute("CREATE TABLE t (a int UNIQUE); INSERT INTO t VALUES (NULL)")
    owner.execute("ALTER TABLE t ADD CONSTRAINT n NOT NULL a NOT VALID")
    catalog = read(any_db)
    assert found(catalog, "public.t").columns[0].nullable
    assert keys_of(catalog, "public.t") == []


def test_views_name_their_tables_with_schemas(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute(
        """
        CREATE SCHEMA s; CREATE TABLE s."Odd" ("select" int, b int);
        CREATE VIEW v (p, q) AS SELECT "select", b FROM s."Odd" WHERE b > 0;
        CREATE TEMP TABLE hidden (a int); CREATE TEMP VIEW gone AS SELECT 1 AS a
        """
    )
    catalog = read(any_db)
    assert [t.label for t in catalog.tables] == ["s.Odd"]
    (view,) = catalog.views
    assert (view.schema, view.name) == ("public", "v")
    assert 's."Odd"' in view.sql and not view.sql.endswith(";")
    assert isinstance(compile_query("SELECT count(*) FROM v WHERE p = 1", catalog), Query)


def test_only_what_the_role_may_read_is_listed(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute(
        """
        CREATE TABLE t (a int, b int); CREATE TABLE closed (a int); CREATE TABLE policed (a int);
        ALTER TABLE policed ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON policed USING (a > 1);
        CREATE SCHEMA s; CREATE TABLE s.t (a int);
        DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'reader';
        GRANT SELECT (a) ON t TO reader; GRANT SELECT ON policed, s.t TO reader
        """
    )
    url = make_conninfo(any_db, user="reader", password="reader")
    parts = psycopg.conninfo.conninfo_to_dict(url)
    reader = "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**parts)
    with closing(open_engine(reader)) as engine:
        catalog = engine.catalog()
        assert [t.label for t in catalog.tables] == ["public.t"]
        assert [c.name for c in catalog.tables[0].columns] == ["a"]
        for name in ("policed", "closed"):
            with pytest.raises(EngineFailed, match="row-level"), engine.snapshot() as snapshot:
                snapshot.scalar(statement(f"SELECT count(*) FROM public.{name}"))
    owner.execute("DROP OWNED BY reader; DROP ROLE reader")
    assert len(read(any_db).tables) == 4


def test_the_search_path_is_read_and_then_pinned(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute(
        """
        CREATE SCHEMA "S x"; CREATE TABLE "S x".t (a int);
        CREATE FUNCTION "S x".lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''shadow'''
        """
    )
    with psycopg.connect(any_db) as connection:
        connection.execute('SET search_path = "S x", pg_catalog, public')
        connection.commit()
        with closing(open_engine(connection)) as engine:
            assert engine.catalog().search_path == ("S x", "public")
            with engine.snapshot() as snapshot:
                assert snapshot.rows(statement("SELECT lower('A')")) == [("a",)]
        shown = connection.execute("SHOW search_path").fetchone()
        assert shown == ('"S x", pg_catalog, public',)


def test_equality_of_a_type_outside_the_search_path_is_its_own(
    owner: psycopg.Connection, any_db: str
) -> None:
    owner.execute("CREATE SCHEMA ext; CREATE EXTENSION citext SCHEMA ext")
    owner.execute("CREATE TABLE t (a ext.citext); INSERT INTO t VALUES ('x'), ('X')")
    with closing(open_engine(any_db)) as engine, engine.snapshot() as snapshot:
        joined = "SELECT count(*) FROM public.t AS x JOIN public.t AS y ON x.a = y.a"
        assert snapshot.scalar(statement(joined)) == 4


def test_a_snapshot_does_not_see_later_changes(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    with closing(open_engine(any_db)) as engine, engine.snapshot() as snapshot:
        before = snapshot.scalar(COUNT)
        owner.execute("INSERT INTO t VALUES (2)")
        assert snapshot.scalar(COUNT) == before


@pytest.mark.parametrize(
    "text", ["INSERT INTO public.t VALUES (1)", "CREATE TABLE public.u (a int)", "DROP TABLE t"]
)
def test_a_snapshot_writes_nothing(owner: psycopg.Connection, any_db: str, text: str) -> None:
    owner.execute("CREATE TABLE t (a int)")
    with (
        closing(open_engine(any_db)) as engine,
        pytest.raises(EngineFailed, match="25006"),
        engine.snapshot() as snapshot,
    ):
        snapshot.rows(statement(text))
    assert owner.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_settings_are_pinned_inside_and_gone_after(any_db: str) -> None:
    names = (
        "search_path row_security standard_conforming_strings jit enable_memoize "
        "statement_timeout work_mem"
    )
    show = f"SELECT {', '.join(f'current_setting({name!r})' for name in names.split())}"
    with psycopg.connect(any_db) as connection:
        connection.execute("SET jit = on; SET work_mem = '1GB'")
        connection.commit()
        before = connection.execute(show).fetchone()
        connection.rollback()
        with closing(open_engine(connection, timeout=2.5)) as engine, engine.snapshot() as snapshot:
            assert snapshot.rows(statement(show)) == [
                ("pg_catalog, public", "off", "on", "off", "off", "2500ms", "1GB")
            ]
            assert snapshot.rows(statement("SELECT 'a\\b'")) == [("a\\b",)]
        assert connection.execute(show).fetchone() == before
        assert not connection.autocommit


def _status(connection: psycopg.Connection) -> TransactionStatus:
    return connection.info.transaction_status


def test_a_connection_inside_a_transaction_is_refused_and_left_alone(any_db: str) -> None:
    with psycopg.connect(any_db) as connection:
        connection.execute("CREATE TABLE t (a int)")
        with pytest.raises(UsageError, match="transaction"):
            open_engine(connection).catalog()
        assert _status(connection) is TransactionStatus.INTRANS
        connection.commit()
        assert [t.name for t in open_engine(connection).catalog().tables] == ["t"]
        assert _status(connection) is TransactionStatus.IDLE


def test_other_psycopg_objects_are_refused(any_db: str) -> None:
    connection = psycopg.connect(any_db)
    with pytest.raises(UsageError):
        open_engine(connection.cursor())
    connection.close()
    with pytest.raises(UsageError, match="closed"):
        open_engine(connection).catalog()


def test_a_sqlalchemy_engine_lends_its_connections(any_db: str) -> None:
    pool = sqlalchemy.create_engine(any_db.replace("postgresql:", "postgresql+psycopg:"))
    with pool.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE t (a int)"))
    with closing(open_engine(pool)) as engine:
        assert [t.name for t in engine.catalog().tables] == ["t"]
        with engine.snapshot() as one, engine.snapshot() as other:
            assert one.scalar(COUNT) == other.scalar(COUNT) == 0
    assert pool.pool.checkedout() == 0  # type: ignore[attr-defined]
    with pool.connect() as connection:
        assert connection.scalar(sqlalchemy.text("SELECT count(*) FROM t")) == 0
    pool.dispose()


def test_sqlalchemy_with_another_driver_is_refused(any_db: str) -> None:
    pool = sqlalchemy.create_engine("sqlite://")
    with pytest.raises(UsageError, match="sqlite"):
        open_engine(pool)


def test_snapshots_run_side_by_side_and_lost_connections_are_replaced(
    owner: psycopg.Connection, any_db: str
) -> None:
    owner.execute("CREATE TABLE t (a int)")
    end_others = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND datname = current_database()
        """
    with closing(open_engine(any_db)) as engine:
        with engine.snapshot() as one, engine.snapshot() as other:
            assert one.scalar(COUNT) == other.scalar(COUNT) == 0
        with pytest.raises(EngineFailed), engine.snapshot() as snapshot:
            owner.execute(end_others)
            snapshot.scalar(COUNT)
        with engine.snapshot() as snapshot:
            assert snapshot.scalar(COUNT) == 0


@pytest.mark.parametrize(
    "text", ["SELECT CAST(x AS int) FROM public.t", "SELECT 1 / length(x) - x::int FROM public.t"]
)
def test_errors_hold_nothing_of_the_data(owner: psycopg.Connection, any_db: str, text: str) -> None:
    owner.execute("CREATE TABLE t (x text)")
    owner.execute("INSERT INTO t VALUES (%s)", [SECRET])
    with (
        closing(open_engine(any_db)) as engine,
        pytest.raises(EngineFailed, match="22P02") as caught,
        engine.snapshot() as snapshot,
    ):
        snapshot.rows(statement(text))
    error = caught.value
    assert SECRET not in error.describe() + repr(error) + str(error.args)
    assert error.__cause__ is None and error.__context__ is None


def test_large_sums_are_exact_integers(any_db: str) -> None:
    wide = "SELECT sum(x) FROM (VALUES (9223372036854775807), (9223372036854775807)) AS v(x)"
    with closing(open_engine(any_db)) as engine, engine.snapshot() as snapshot:
        assert snapshot.scalar(statement(wide)) == 2 * (2**63 - 1)
        for text in ("NULL", "1.5", "2::float8", "TRUE", "'1'", "'NaN'::numeric"):
            with pytest.raises(EngineFailed):
                snapshot.scalar(statement(f"SELECT {text}"))


def test_a_percent_sign_is_a_percent_sign(owner: psycopg.Connection, any_db: str) -> None:
    owner.execute("CREATE TABLE t (x text); INSERT INTO t VALUES ('50%s'), ('x')")
    with closing(open_engine(any_db)) as engine, engine.snapshot() as snapshot:
        like = "SELECT count(*) FROM public.t WHERE x LIKE '%\\%s'"
        assert snapshot.scalar(statement(like)) == 1


@pytest.fixture
def texts(owner: psycopg.Connection) -> None:
    """Texts of every kind, the same words in two tables, some with blanks behind them."""
    columns = "id int PRIMARY KEY, v varchar(9), t text, c char(5), d char(9)"
    rows = "(1, 'a', 'a', 'a', 'a'), (2, 'a ', 'a ', 'a ', 'a '), (3, 'b', 'b  ', 'b', 'b  ')"
    for name in ("one", "two"):
        owner.execute(f"CREATE TABLE {name} ({columns})")
        owner.execute(f"INSERT INTO {name} VALUES {rows}")
    owner.execute("CREATE VIEW joined AS SELECT one.id FROM one JOIN two ON one.v = two.v")


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("one, two WHERE one.v::text = two.v::text", 3),
        ("one, two WHERE one.v::text = two.t", 2),
        ("one, two WHERE CAST(one.v AS varchar) = two.v", 3),
        # PostgreSQL keeps this view's condition as one.v::text = two.v::text.
        ("joined", 3),
        # Blanks behind a char(n) do not count, neither of the values nor of the widths.
        ("one, two WHERE one.c = two.c", 5),
        ("one, two WHERE one.c = two.d", 5),
        # Left to the engine, which strips them: 'a ' is no value of c::text.
        ("one WHERE c::text = 'a'", 2),
        ("one WHERE c::text = 'a '", 0),
        ("one WHERE c = 'a '", 2),
    ],
)
def test_texts_are_joined_as_their_types_compare(any_db: str, source: str, count: int) -> None:
    sql = f"SELECT count(*) FROM {source}"
    with closing(open_engine(any_db)) as engine, engine.snapshot() as snapshot:
        query = compile_query(sql, engine.catalog())
        assert isinstance(query, Query)
        compiled = plain(Residuals(query).of(query.everything))
        assert snapshot.scalar(compiled) == snapshot.scalar(statement(sql)) == count


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    "condition",
    [
        # A cast of char(n) strips its blanks, one to varchar(n) cuts: neither keeps the value.
        "one.c::text = two.c::text",
        "one.c::text = two.v",
        "one.v::varchar(1) = two.v",
        "one.v::char(9) = two.c",
        "one.c = two.v",
    ],
)
def test_a_join_on_a_cast_that_changes_values_is_refused(any_db: str, condition: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        compile_query(f"SELECT count(*) FROM one, two WHERE {condition}", read(any_db))
    assert caught.value.code == "type_mismatch"
