"""Declaring a unit: who owns which rows, found or said, and everything that is wrong about it."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sqlrs
from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.cli import main
from sqlrs.config import Config
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.inputs.said_owners import SaidOwner, owners_by_table
from sqlrs.ledger import Charge
from sqlrs.ledger.store import StoreLedger
from sqlrs.measuring.drift import Schema, current_catalog, unchanged
from sqlrs.procedures.definition import Definition
from sqlrs.procedures.installable import installable
from sqlrs.procedures.table_definition import TableDefinition
from sqlrs.procedures.unit_definition import UnitDefinition
from sqlrs.proxy.config import ProxyConfig
from sqlrs.unit_declaration import with_unit
from sqlrs.units import Link, Owner
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer

Run = Callable[..., tuple[int, str, str]]
BIGINT = ColumnType(Family.INTEGER, "BIGINT")

SHOP = """
    CREATE TABLE nation (n INTEGER PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE customer (id BIGINT PRIMARY KEY, nation INTEGER REFERENCES nation (n),
                           email VARCHAR(50) NOT NULL UNIQUE);
    CREATE TABLE orders (o BIGINT PRIMARY KEY, customer BIGINT REFERENCES customer (id));
    CREATE TABLE lineitem (o BIGINT NOT NULL REFERENCES orders (o), line INTEGER NOT NULL,
                           PRIMARY KEY (o, line));
    CREATE TABLE parcel (line INTEGER, "order" BIGINT, FOREIGN KEY ("order", line)
                         REFERENCES lineitem (o, line));
    CREATE TABLE letter (address VARCHAR(50) REFERENCES customer (email), page INTEGER);
"""
BY_HAND = {
    "customer": (Owner("id"),),
    "orders": (Owner("customer"),),
    "lineitem": (Owner("customer", (Link(("o",), (None, "orders"), ("o",)),)),),
    "parcel": (
        Owner(
            "customer",
            (
                Link(("order", "line"), (None, "lineitem"), ("o", "line")),
                Link(("o",), (None, "orders"), ("o",)),
            ),
        ),
    ),
    "letter": (Owner("id", (Link(("address",), (None, "customer"), ("email",)),)),),
}


class Shop:
    """A database of one of the engines, and the owner's own connection to it."""

    def __init__(self, target: object, run: Callable[[str], object]) -> None:
        self.target, self.run = target, run

    def declared(self, **given: Any) -> Catalog:
        given = {"public": ["nation"], "unit": "customer.id", **given}
        with sqlrs.connect(self.target, schema_only=True, **given) as database:
            return database.catalog

    def owners(self, **given: Any) -> dict[str, tuple[Owner, ...]]:
        return {t.name: _bare(t.owners) for t in self.declared(**given).tables if t.private}

    def refuses(self, *words: str, hint: str = "", **given: Any) -> UsageError:
        with pytest.raises(UsageError) as caught:
            self.declared(**given)
        for word in words:
            assert word in caught.value.message
        assert hint in (caught.value.hint or "")
        return caught.value


def _bare(owners: Sequence[Owner]) -> tuple[Owner, ...]:
    """Without schemas, whose names differ between the engines."""
    return tuple(
        Owner(o.column, tuple(Link(k.columns, (None, k.table[1]), k.key) for k in o.links))
        for o in owners
    )


@pytest.fixture(params=["duckdb", "postgres"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    if request.param == "duckdb":
        connection = duckdb.connect()
        connection.execute(SHOP)
        yield Shop(connection, connection.execute)
        connection.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(SHOP)
        yield Shop(url, lambda sql: owner.execute(sql.encode()))


def test_owners_are_found_by_foreign_keys(shop: Shop) -> None:
    catalog = shop.declared()
    assert catalog.unit is not None
    assert catalog.unit.name == "customer.id"
    assert shop.owners() == BY_HAND
    assert all(not t.owners for t in catalog.tables if not t.private)


def test_the_name_does_not_depend_on_how_it_was_written(shop: Shop) -> None:
    label = next(t.label for t in shop.declared().tables if t.name == "customer")
    unit = shop.declared(unit=f"{label}.id").unit
    assert unit is not None
    assert unit.name == "customer.id"
    shop.run("CREATE SCHEMA other")
    shop.run("CREATE TABLE other.customer (id BIGINT PRIMARY KEY)")
    unit = shop.declared(unit=f"{label}.id", public=["nation", "other.customer"]).unit
    assert unit is not None
    assert unit.name == f"{label}.id"


def test_the_list_of_units_may_be_public(shop: Shop) -> None:
    shop.run("DROP TABLE letter")
    found = shop.owners(public=["nation", "customer"])
    assert found == {name: BY_HAND[name] for name in ("orders", "lineitem", "parcel")}


def test_an_owner_that_is_said_wins(shop: Shop) -> None:
    found = shop.owners(
        owners={"parcel": '"order"'.strip('"'), "lineitem": "o", "letter": "address->customer"}
    )
    assert found["parcel"] == (Owner("order"),)
    assert found["lineitem"] == (Owner("o"),)
    assert found["letter"] == BY_HAND["letter"]
    assert shop.owners(owners={"letter": ("address", "customer")})["letter"] == BY_HAND["letter"]
    shop.refuses("has no column customer", owners={"letter": ("customer", "address")})


def test_two_ways_are_not_guessed_between(shop: Shop) -> None:
    shop.run("CREATE TABLE gift (giver BIGINT REFERENCES customer (id), o BIGINT "
             "REFERENCES orders (o), note INTEGER)")  # fmt: skip
    shop.refuses(
        "gift can be owned in several ways: giver -> customer; o -> orders -> customer",
        hint="--owner 'gift=giver->customer' or --owner 'gift=o->orders'",
    )
    assert shop.owners(owners={"gift": "giver"})["gift"] == (Owner("giver"),)
    both = (Owner("giver"), Owner("customer", (Link(("o",), (None, "orders"), ("o",)),)))
    assert shop.owners(owners={"gift": ["giver", "o -> orders"]})["gift"] == both
    # Whoever refers to such a row has its owners too.
    shop.run("CREATE TABLE card (gift BIGINT NOT NULL)")
    shop.run("CREATE UNIQUE INDEX one_note ON gift (note)")
    shop.refuses("(note) is not a key", owners={"gift": "giver", "card": "gift -> gift(note)"})


def test_a_row_has_all_owners_of_the_row_that_it_refers_to(shop: Shop) -> None:
    shop.run("CREATE TABLE meeting (m BIGINT PRIMARY KEY, a BIGINT, b BIGINT)")
    shop.run("CREATE TABLE minute (m BIGINT REFERENCES meeting (m))")
    link = Link(("m",), (None, "meeting"), ("m",))
    found = shop.owners(owners={"meeting": "a,b"})
    assert found["minute"] == (Owner("a", (link,)), Owner("b", (link,)))


def test_a_table_that_refers_to_itself_is_owned_by_the_other_way(shop: Shop) -> None:
    shop.run("CREATE TABLE reply (r BIGINT PRIMARY KEY, up BIGINT REFERENCES reply (r), "
             "writer BIGINT REFERENCES customer (id))")  # fmt: skip
    assert shop.owners()["reply"] == (Owner("writer"),)


def test_a_private_table_without_an_owner_is_refused(shop: Shop) -> None:
    shop.run("CREATE TABLE stock (part INTEGER, nation INTEGER REFERENCES nation (n))")
    shop.refuses(
        "nobody owns the rows of", "stock", hint="declare it public or say who owns its rows"
    )
    assert "stock" not in shop.owners(public=["nation", "stock"])


def test_types_must_fit(shop: Shop) -> None:
    shop.run("CREATE TABLE visit (day DATE, who VARCHAR(9), x DOUBLE PRECISION, b BOOLEAN)")
    shop.refuses("visit.who does not compare with", owners={"visit": "who"})
    shop.refuses("visit.x cannot hold ids", hint="whole numbers", owners={"visit": "x"})
    shop.refuses("visit.b cannot hold ids", owners={"visit": "b"})
    shop.refuses("does not compare with", "orders.o", owners={"visit": "day -> orders"})
    shop.refuses("visit.x cannot hold ids", unit="visit.x")
    everything = {name: column for name, column in
                  zip(("customer", "orders", "lineitem", "parcel"), ("id", "o", "o", "order"),
                      strict=True)}  # fmt: skip
    shop.refuses(
        "does not compare with", unit="human", owners={**everything, "letter": "page",
                                                        "visit": "who"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"unit": "customer.ident"}, ["customer has no column ident"], "id, nation"),
        ({"unit": "client.id"}, ["there is no table client"], "the tables are"),
        ({"unit": "customer"}, ["customer is a table: which of its columns"], "write customer."),
        ({"unit": "row"}, ["a name that it cannot have"], "such as node"),
        ({"unit": "human"}, ["nobody owns the rows of", "customer"], "--owner customer=COLUMN"),
        ({"unit": None, "owners": {"orders": "o"}}, ["none is declared"], "unit="),
        ({"unit": None, "max_rows": {"orders": 3}}, ["none is declared"], "--unit"),
        ({"rows_per_unit": {"orders": 2}}, ["rows_per_unit"], "max_rows"),
        ({"owners": {"orders": "who"}}, ["orders has no column who"], "it has o, customer"),
        ({"owners": {"order": "o"}}, ["there is no table order"], "the tables are"),
        ({"owners": {"nation": "n"}}, ["nation is public: its rows have no owner"], "leave out"),
        ({"owners": {"customer": "nation"}}, ["each row owns itself"], "another unit"),
        ({"owners": {"orders": "customer -> client"}}, ["there is no table client"], ""),
        ({"owners": {"orders": "customer -> nation"}}, ["leads to", "which is public"], "private"),
        ({"owners": {"orders": "o->lineitem(line)"}}, ["o of", "not a key of"], "(line, o)"),
        ({"owners": {"letter": "page->parcel"}}, ["page of", "not a key of"], "no key"),
        ({"owners": {"orders": "o -> lineitem(lines)"}}, ["lineitem has no column lines"], ""),
        ({"owners": {"letter": "page -> customer"}}, ["which columns of", "do page of"],
         "page -> customer(email) or page -> customer(id)"),
        ({"owners": {"orders": "o->lineitem(o)", "lineitem": "o->orders"},
          "keys": {"lineitem": ["o"]}}, ["lineitem", "orders lead in a circle"], "one of these"),
        ({"owners": {"orders": ["customer", "customer -> customer(id)"]}}, ["are the same"], ""),
        ({"max_rows": {"orders": 0}}, ["max_rows.orders must be a whole number, 1"], ""),
        ({"max_rows": {"orders": 1001}}, ["max_rows of", "orders must be", "1 to 1000"], ""),
        ({"max_rows": {"nation": 3}}, ["nation, which is public"], "leave out"),
        ({"max_rows": {"order": 3}}, ["there is no table order"], ""),
        ({"max_rows": {"letter": 3}, "owners": {"letter": ["page", "address -> customer"]},
          "unit": "customer.nation"}, ["letter, whose rows have several owners"], "leave out"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(
    shop_schema: Catalog, given: dict[str, Any], words: list[str], hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        declared(shop_schema, **{"unit": "customer.id", **given})
    for word in words:
        assert word in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.fixture(scope="module")
def shop_schema() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.execute(SHOP)
    yield connection
    connection.close()


def declared(target: object, **given: Any) -> Catalog:
    given = {"public": ["nation"], **given}
    with sqlrs.connect(target, schema_only=True, **given) as database:
        return database.catalog


def test_max_rows_are_kept(shop_schema: object) -> None:
    catalog = declared(shop_schema, unit="customer.id", max_rows={"orders": 3, "main.letter": 1})
    most = {t.name: t.max_rows for t in catalog.tables}
    assert most == {"nation": None, "customer": None, "orders": 3, "lineitem": None,
                    "parcel": None, "letter": 1}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "serves"),
    [
        ("BIGINT", True), ("UTINYINT", True), ("HUGEINT", True), ("DECIMAL(20, 2)", True),
        ("VARCHAR", True), ("DATE", True), ("TIMESTAMP", True), ("UUID", True),
        ("VARCHAR COLLATE NOCASE", False), ("BOOLEAN", False), ("DOUBLE", False),
        ("FLOAT", False), ("UHUGEINT", False), ("TIMESTAMP_NS", False), ("TIMESTAMPTZ", False),
        ("BLOB", False), ("INTEGER[]", False), ("ENUM ('a', 'b')", False), ("TIME", False),
    ],
)  # fmt: skip
def test_which_types_hold_ids_in_duckdb(kind: str, serves: bool) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE person (id {kind})")
    check_served(connection, serves)


@pytest.mark.postgres
def test_which_types_hold_ids_in_postgres(postgres_db: str) -> None:
    kinds = {
        "bigint": True, "smallint": True, "text": True, "varchar(9)": True, "date": True,
        "timestamp": True, "uuid": True,
        # NaN is equal to itself there, and to nothing in Python.
        "numeric": False, "numeric(10)": False,
        "text COLLATE loose": False, 'text COLLATE "C"': False, "char(3)": False,
        "boolean": False, "real": False, "timestamptz": False, "point": False, "bytea": False,
        "inet": False,
    }  # fmt: skip
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', "
                      "deterministic = false)")  # fmt: skip
        for kind, serves in kinds.items():
            owner.execute(f"CREATE TABLE person (id {kind})".encode())
            check_served(postgres_db, serves)
            owner.execute("DROP TABLE person")


def check_served(target: object, serves: bool) -> None:
    try:
        with sqlrs.connect(target, unit="person.id", schema_only=True) as database:
            assert serves
            assert database.catalog.tables[0].owners == (Owner("id"),)
    except UsageError as refused:
        assert not serves
        assert "cannot hold ids" in refused.message


def test_composite_links_pair_by_schema_by_name_or_as_said() -> None:
    connection = duckdb.connect()
    connection.execute("""
        CREATE TABLE person (id BIGINT PRIMARY KEY);
        CREATE TABLE stay (ward INTEGER, bed INTEGER, person BIGINT, PRIMARY KEY (ward, bed));
        CREATE TABLE meal (bed INTEGER, ward INTEGER);
        CREATE TABLE pill (w INTEGER, b INTEGER);
    """)
    owners = {"stay": "person", "meal": "bed, ward -> stay", "pill": "w, b -> stay(ward, bed)"}
    catalog = declared(connection, unit="person.id", owners=owners, public=[])
    links = {t.name: [(k.columns, k.key) for k in t.links] for t in catalog.tables}
    assert links["meal"] == [(("bed", "ward"), ("bed", "ward"))]
    assert links["pill"] == [(("w", "b"), ("ward", "bed"))]
    with pytest.raises(UsageError, match=r"which columns of main\.stay do w, b"):
        declared(connection, unit="person.id", public=[],
                 owners={**owners, "pill": "w, b -> stay"})  # fmt: skip


@pytest.mark.postgres
def test_foreign_keys_of_all_kinds_in_postgres(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute("""
            CREATE TABLE person (id bigint PRIMARY KEY, tenant integer NOT NULL,
                                 UNIQUE (tenant, id));
            CREATE TABLE visit (day date NOT NULL, person bigint) PARTITION BY RANGE (day);
            CREATE TABLE old PARTITION OF visit FOR VALUES FROM ('2000-01-01') TO ('2020-01-01');
            ALTER TABLE visit ADD FOREIGN KEY (person) REFERENCES person (id);
            CREATE TABLE loose (who bigint);
            ALTER TABLE loose ADD FOREIGN KEY (who) REFERENCES person (id) NOT VALID;
            CREATE TABLE shared (who bigint, tenant integer,
                                 FOREIGN KEY (who, tenant) REFERENCES person (id, tenant));
            CREATE TABLE month (m integer PRIMARY KEY, p bigint REFERENCES person)
                PARTITION BY RANGE (m);
            CREATE TABLE january PARTITION OF month FOR VALUES FROM (1) TO (2);
            CREATE TABLE note (m integer REFERENCES month (m));
        """)
        found = declared(postgres_db, unit="person.id", public=[])
        owners = {t.name: _bare(t.owners) for t in found.tables}
        assert owners == {
            "person": (Owner("id"),),
            "visit": (Owner("person"),),
            "loose": (Owner("who"),),
            # The id is in the key itself: no join is needed.
            "shared": (Owner("who"),),
            "month": (Owner("p"),),
            "note": (Owner("p", (Link(("m",), (None, "month"), ("m",)),)),),
        }


def made(foreign_keys: Mapping[str, Sequence[str]], private: Sequence[str]) -> Catalog:
    """Tables with an id, and a column for each table that they refer to."""
    return Catalog(
        "duckdb",
        tuple(
            Table(
                name,
                (
                    Column("id", BIGINT, nullable=False),
                    *(Column(f"to_{i}", BIGINT) for i, _ in enumerate(others)),
                ),
                frozenset({frozenset({"id"})}),
                private=name in private,
                references=tuple(
                    Link((f"to_{i}",), (None, other), ("id",)) for i, other in enumerate(others)
                ),
            )
            for name, others in foreign_keys.items()
        ),
    )


def ways(foreign_keys: Mapping[str, Sequence[str]], private: Sequence[str], start: str) -> set[str]:
    """By definition: all first steps of ways to the unit that visit no table twice."""
    found = set()
    for length in range(len(foreign_keys)):
        for between in itertools.permutations(
            [t for t in private if t not in (start, "u")], length
        ):
            steps = [start, *between, "u"]
            if all(b in foreign_keys[a] for a, b in itertools.pairwise(steps)):
                found |= {f"to_{i}" for i, t in enumerate(foreign_keys[start]) if t == steps[1]}
    return found


@settings(max_examples=examples(60))
@given(data=st.data())
def test_found_owners_are_the_only_way(data: st.DataObject) -> None:
    names = ["u", "a", "b", "c", "d"]
    keys = {
        name: data.draw(st.lists(st.sampled_from(names), max_size=2), label=name) for name in names
    }
    public = data.draw(st.sets(st.sampled_from(names[1:]), max_size=1))
    private = [name for name in names if name not in public]
    catalog = made(keys, private)
    starts = {name: ways(keys, private, name) for name in private if name != "u"}
    try:
        found = {t.name: t.owners for t in with_unit(catalog, "u.id", {}, {}).tables}
    except UsageError:
        assert any(len(first) != 1 for first in starts.values())
        return
    for name, first in starts.items():
        ((owner,), (only,)) = found[name], first
        assert only == (owner.links[0].columns[0] if owner.links else owner.column)
        # The chain leads from table to table, and at last to a column that refers to the unit.
        place = name
        for link in owner.links:
            assert keys[place][int(link.columns[0][3:])] == link.table[1]
            place = link.table[1]
        assert keys[place][int(owner.column[3:])] == "u"


def test_declarations_survive_the_next_look_at_the_schema(shop: Shop) -> None:
    catalog = shop.declared(max_rows={"orders": 2})
    again = shop.declared(unit=None)
    assert again.as_found is not None
    assert current_catalog(catalog, Schema(again.as_found, ())) is catalog
    shop.run("CREATE TABLE another (x INTEGER)")
    now = shop.declared(unit=None).as_found
    assert now is not None
    later = current_catalog(catalog, Schema(now, ()))
    assert later.unit == catalog.unit
    assert set(catalog.tables) < set(later.tables)


@pytest.mark.parametrize(
    ("dropped", "changed"),
    [
        ("orders_customer_fkey", {"orders", "lineitem", "parcel"}),
        ("lineitem_o_fkey", {"lineitem", "parcel"}),
        ("parcel_order_line_fkey", {"parcel"}),
    ],
)
@pytest.mark.postgres
def test_a_dropped_foreign_key_takes_the_owners_with_it(
    postgres_db: str, dropped: str, changed: set[str]
) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute(SHOP)
        catalog = declared(postgres_db, unit="customer.id")
        owner.execute(f"ALTER TABLE {dropped.partition('_')[0]} DROP CONSTRAINT {dropped}".encode())
        now = declared(postgres_db).as_found
    assert now is not None
    later = current_catalog(catalog, Schema(now, ()))
    assert {t.name for t in later.tables if t.private and not t.owners} == changed
    assert later.unit == catalog.unit


@pytest.mark.postgres
def test_a_snapshot_without_a_foreign_key_is_refused(postgres_db: str) -> None:
    def same(current: Catalog) -> bool:
        return set(catalog.tables) <= set(current.tables)

    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute(SHOP)
        with sqlrs.connect(postgres_db, public=["nation"], unit="customer.id") as database:
            catalog, engine = database.catalog, database.engine
            read = [table for table in catalog.tables if table.name == "lineitem"]
            with unchanged(read, engine, catalog, same):
                pass
            owner.execute("ALTER TABLE orders DROP CONSTRAINT orders_customer_fkey")
            with (
                pytest.raises(UsageError, match=r"table public\.lineitem has changed") as caught,
                unchanged(read, engine, catalog, same),
            ):
                pass
    assert caught.value.code == "schema_changed"


def test_undirected_edges_are_owned_by_both_ends(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    data: dict[str, Any] = {
        "tables": {"edge": tmp_path / "graph.txt"},
        "graphs": {"edge": "undirected"},
        "public": [],
    }
    catalog = declared("duckdb://", unit="node", owners={"edge": ["src", "dst"]}, **data)
    (edge,) = catalog.tables
    assert edge.owners == (Owner("src"), Owner("dst"))
    assert edge.rows_per_unit == 1
    with pytest.raises(UsageError, match=r"each edge of main\.edge is two rows") as caught:
        declared("duckdb://", unit="node", owners={"edge": "src"}, **data)
    assert "src,dst" in (caught.value.hint or "")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shop_file: Path
) -> Run:
    """Runs the command line in the folder of the file."""
    monkeypatch.chdir(shop_file)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sqlrs", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call


@pytest.fixture
def shop_file(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.db")) as connection:
        connection.execute(SHOP)
    return tmp_path


def test_tables_tells_who_owns_what(run: Run) -> None:
    data = ("--db", "duckdb:///shop.db", "--public", "nation")
    unit = ("--unit", "customer.id", "--owner", "letter=address->customer", "--max-rows",
            "orders=20")  # fmt: skip
    code, out, err = run("tables", *data, *unit)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "customer.id  [unit, protected with all rows that it owns]"
    at = lines.index("main.parcel  [private, no key]")
    assert lines[at + 1 : at + 3] == [
        "  owned by order, line -> lineitem.o -> orders.customer",
        "  rows without order or line or orders.customer take part in nothing",
    ]
    assert "main.orders  [private, at most 20 rows of a unit used, key (o)]" in lines
    told = json.loads(run("tables", *data, *unit, "--json")[1])
    assert told["unit"] == "customer.id"
    tables = {table["name"]: table for table in told["tables"]}
    assert tables["main.orders"]["max_rows"] == 20
    assert tables["main.lineitem"]["owners"] == [
        {"column": "customer",
         "links": [{"columns": ["o"], "table": "main.orders", "key": ["o"]}]}
    ]  # fmt: skip
    assert tables["main.lineitem"]["rows_left_out_without"] == ["orders.customer"]
    assert tables["main.nation"]["owners"] == []


def test_options_and_files_say_one_unit(run: Run, shop_file: Path) -> None:
    (shop_file / "sqlrs.toml").write_text(
        '[data]\ndb = "duckdb:///shop.db"\npublic = ["nation"]\nledger = "sqlite:///l.db"\n'
        '[unit]\nid = "customer.id"\nmax_rows = { orders = 3 }\n'
        '[unit.owners]\nletter = "address -> customer(email)"\n'
        "[proxy]\nport = 6543\n"
    )
    for arguments, told in [
        ((), "customer.id  [unit"),
        (("--unit", "customer.id", "--max-rows", "orders=7"), "at most 7 rows of a unit used"),
        (("--owner", "letter=page"), "  owned by page"),
    ]:
        _, out, err = run("tables", *arguments)
        assert told in out, err
    # A limit on rows is no threshold, and which neighbours are meant may be said for a query.
    count = "SELECT count(*) FROM orders a CROSS JOIN orders b"
    for arguments in ((), ("--neighbours", "add-remove")):
        _, out, _ = run("explain", count, *arguments)
        assert "what one unit may add\n" in out
        _, _, err = run("query", count, "--epsilon", "1", *arguments)
        assert "budget_exhausted" in err
    for arguments, told in [
        (("--unit", "orders.o"), "two units are declared: customer.id and orders.o"),
        (("--unit", "customer.id", "--unit", "orders.o"), "two units are declared"),
        (("--owner", "letter"), "--owner 'letter' is not of the form NAME=VALUE"),
        (("--owner", "letter=page", "--owner", "letter=address"), "names letter twice"),
        (("--max-rows", "orders=many"), "--max-rows orders must be a whole number"),
        (("--max-rows", "orders=0"), "max_rows.orders must be a whole number, 1 or more"),
    ]:
        code, _, err = run("tables", *arguments)
        assert code == 2
        assert told in err
    assert ProxyConfig.read(shop_file / "sqlrs.toml").port == 6543
    assert Config.read(shop_file / "sqlrs.toml").unit.id == "customer.id"


def test_a_graph_says_which_node_is_protected(run: Run, shop_file: Path) -> None:
    (shop_file / "graph.txt").write_text("1 2\n2 3\n3 1\n")
    for form in ((), ("--undirected",)):
        _, _, err = run("graph", "triangle", "graph.txt", "--epsilon", "1", "--node", *form)
        assert "one node with all its edges is protected" in err


def test_budgets_are_shown_with_their_unit(run: Run) -> None:
    store = StoreLedger("sqlite:///budget.db")
    store.grant(analyst="ada", epsilon=2)
    for dataset, unit in (("clinic", "patient.id"), ("graph", "row"), ("new", None)):
        store.grant(dataset=dataset, epsilon=1)
        if unit is not None:
            store.reserve(Charge("ada", dataset, "SELECT 1", "noise", Decimal("0.5"), unit))
    store.close()
    ledger = ("--ledger", "sqlite:///budget.db")
    _, out, _ = run("budget", "show", *ledger)
    assert [line.split()[1:] for line in out.splitlines() if "unit" in line] == [
        ["clinic", "1", "0.5", "0.5", "0.5", "unit", "patient.id"]
    ]
    _, out, _ = run("budget", "history", *ledger)
    assert "clinic  ε 0.5  unit patient.id  reserved" in out
    assert "graph  ε 0.5  reserved" in out


def test_neighbours_are_said_where_a_database_is_opened() -> None:
    with sqlrs.connect(neighbours="add-remove") as database:
        assert database.settings.neighbours == "add-remove"
    with pytest.raises(UsageError, match="one of strict, add-remove"):
        sqlrs.connect(neighbours="near")


def test_functions_of_rows_do_not_protect_units() -> None:
    catalog = replace(made({"u": []}, ["u"]), dialect="postgres")
    count = "SELECT count(*) FROM u"
    assert installable(count, catalog, name="f").name == "f"
    owned = with_unit(catalog, "u.id", {}, {})
    assert isinstance(installable(count, owned, name="f"), UnitDefinition)
    for define in (Definition.of, TableDefinition.of):
        with pytest.raises(UsageError, match=r"single rows, not units of u\.id"):
            define(count, owned, name="f")


def test_owners_as_they_are_written() -> None:
    assert owners_by_table("owners", {"edge": ["src", "a,b -> t(x,y)"], "v": "src,dst"}) == {
        "edge": (SaidOwner(("src",)), SaidOwner(("a", "b"), "t", ("x", "y"))),
        "v": (SaidOwner(("src",)), SaidOwner(("dst",))),
    }
    assert str(SaidOwner(("a", "b"), "t", ("x", "y"))) == "a, b -> t(x, y)"
    # As a shell reads it without quotes.
    assert owners_by_table("owners", {"v": "a@t"}) == {"v": (SaidOwner(("a",), "t"),)}


@settings(max_examples=examples(100))
@given(text=st.text(alphabet="ab ,->@().\0\ud800", max_size=12))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    try:
        found = owners_by_table("owners", {"t": text})["t"]
    except SqlrsError:
        return
    assert owners_by_table("owners", {"t": [str(one) for one in found]})["t"] == found
