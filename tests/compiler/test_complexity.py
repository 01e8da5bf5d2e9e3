"""Texts whose work grows faster than they do: fuzzed, seeded, and refused before they take long."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from types import FrameType

import pytest
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Bounds, Catalog, Column, View
from sqlrs.compiled import Compiled, compiled_text
from sqlrs.compiler.complexity import MAX_NESTING, parse_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.effort import TooComplex, bounded, spend
from sqlrs.errors import QueryRefused
from sqlrs.mechanisms import mechanism_named
from sqlrs.settings import Settings
from sqlrs.units import Owner, Unit
from tests.compiler.schema import BIGINT, EDGE, INTEGER, PERSON, TEXT, table

SEED = 20_261_117
DIALECTS = ("duckdb", "postgres")
# Against endless work, not a measure: honest machines need a tenth of it.
GUARD = 30.0

DOUBLING = [View("d0", "SELECT src, dst FROM edge")] + [
    View(f"d{n}", f"SELECT src + src + dst AS src, dst + dst AS dst FROM d{n - 1}")
    for n in range(1, 40)
]
JOINING = [View("j0", "SELECT src, dst FROM edge")] + [
    View(f"j{n}", f"SELECT a.src, b.dst FROM j{n - 1} a, j{n - 1} b WHERE a.dst = b.src")
    for n in range(1, 12)
]
LONG = View("long", "SELECT src FROM edge WHERE " + " OR ".join(f"src = {n}" for n in range(140)))
WIDE = table("wide", "c0", **{f"c{n}": BIGINT for n in range(100)})
WORDS = table("words", "c0", **{f"c{n}": TEXT for n in range(20)})
CATALOGS = {
    dialect: Catalog(
        dialect,
        tuple(replace(entry, private=True) for entry in (EDGE, PERSON, WIDE, WORDS)),
        (*DOUBLING, *JOINING, LONG),
        search_path=("public",),
    )
    for dialect in DIALECTS
}


class Endless(BaseException):
    """The guard's time is over."""


@contextmanager
def guarded(text: str) -> Iterator[None]:
    """Fail instead of hanging."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, GUARD)
    try:
        yield
    except Endless:
        pytest.fail(f"takes more than {GUARD} s: {text[:300]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compiles(sql: str, dialect: str = "duckdb") -> str:
    """The code of the refusal, or "" if the text can be charged; it ends soon in any case."""
    with guarded(sql):
        try:
            compiled = Compiled.of(sql, CATALOGS[dialect], Settings())
            if not isinstance(compiled, Contradiction):
                mechanism_named("polylaplace", Decimal(1)).prepare(compiled.residuals)
        except QueryRefused as refusal:
            assert len(refusal.describe()) < 3 * len(sql) + 1000
            return refusal.code
    return ""


# The parser.


def openings() -> list[tuple[str, str]]:
    """What can stand around an expression: every keyword before a bracket, and more."""
    words = set[str]()
    for name in DIALECTS:
        dialect = Dialect.get_or_raise(name)
        words |= {word for word in dialect.tokenizer_class.KEYWORDS if word[:1].isalpha()}
    found = [(f"{word.lower()}{o}", c) for word in sorted(words) for o, c in ("()", "[]")]
    found += [("(", ")"), ("[", "]"), ("{'a': ", "}"), ("f(", ")"), ("x[", "]"), ("(1, ", ")")]
    found += [("case when ", " then 1 end"), ("case x when 1 then ", " end"), ("- ", "")]
    found += [("x::decimal(", ")"), ("x::int[", "]"), ("cast(x as struct(a ", "))"), ("not ", "")]
    found += [("cast(", " as int)"), ("x -> ", ""), ("(x, y) -> ", ""), ("interval (", ")")]
    found += [("sum(x) over (partition by ", ")"), ("sum(x) over (rows between ", " preceding)")]
    found += [("x between ", " and 2"), ("x in (", ")"), ("exists (select ", ")"), ("a || ", "")]
    found += [("(select 1 union select ", ")"), ("(values (", "))"), ("/* ", " */"), ("'a' ", "")]
    found += [("extract(year from ", ")"), ("substring(x from ", ")"), ("x at time zone ", "")]
    found += [("(with a as (select ", ") select 1)"), ("count(distinct ", ")"), ("(select ", ")")]
    return found


OPENINGS = openings()
PLACES = (
    *("SELECT {}", "SELECT * FROM {}", "SELECT 1 FROM t WHERE {}", "SELECT x::{}"),
    *("SELECT cast(x AS {})", 'SELECT x::"{}"'),
)


def parsed(sql: str, dialect: str) -> str:
    """How the text ended; it ends soon in any case."""
    with guarded(sql):
        try:
            parse_text(sql, dialect)
        except (SqlglotError, TooComplex, ValueError) as problem:
            return type(problem).__name__
        return ""


def fuzz_the_parser(texts: int, seed: int) -> dict[str, int]:
    """Nest random constructs in each other, one kind or several."""
    chance = random.Random(seed)
    ends: dict[str, int] = {}
    for _ in range(texts):
        kinds = chance.sample(OPENINGS, chance.choice((1, 1, 1, 2, 3)))
        opened = [chance.choice(kinds) for _ in range(chance.randrange(10, MAX_NESTING))]
        inner = "".join(o for o, _ in opened) + "1" + "".join(c for _, c in reversed(opened))
        end = parsed(chance.choice(PLACES).format(inner), chance.choice(DIALECTS))
        ends[end] = ends.get(end, 0) + 1
    return ends


def test_no_nesting_keeps_the_parser_busy() -> None:
    ends = fuzz_the_parser(250, SEED)
    # Some are read, some are no SQL, some would not have ended.
    assert set(ends) == {"", "ParseError", "TooComplex"}
    assert ends["TooComplex"] > 20


@pytest.mark.slow
def test_no_nesting_keeps_the_parser_busy_for_many_texts() -> None:
    fuzz_the_parser(30_000, SEED + 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "word",
    ("char", "varchar", "time", "timestamp", "decimal", "int", "date", "interval", "array", "map"),
)
def test_words_that_may_be_types_do_not_double_the_time(word: str, dialect: str) -> None:
    for opened, closed in ("()", "[]"):
        for place in PLACES:
            nested = f"{word}{opened}" * 30 + "1" + closed * 30
            assert parsed(place.format(nested), dialect) in ("", "ParseError", "TooComplex")


def test_repeated_shallow_retries_are_counted_together() -> None:
    sql = "SELECT " + ", ".join(["char(char(char(char(char(1)))))"] * 500)
    assert parsed(sql, "postgres") == "TooComplex"


# The compiler.


def chain(count: int, expression: str) -> str:
    """Derived tables, each computed from the one before."""
    tables = "".join(f", c{n} AS (SELECT {expression} FROM c{n - 1})" for n in range(1, count))
    return f"WITH c0 AS (SELECT src, dst FROM edge){tables} SELECT count(*) FROM c{count - 1}"


def joined(count: int, conditions: str = "", name: str = "edge") -> str:
    tables = ", ".join(f"{name} e{n}" for n in range(count))
    return f"SELECT count(*) FROM {tables}" + (f" WHERE {conditions}" if conditions else "")


def all_of(parts: Iterator[str]) -> str:
    """A conjunction of many, in groups: the parser's depth is limited."""
    every = list(parts)
    groups = (every[n : n + 50] for n in range(0, len(every), 50))
    return " AND ".join(f"({' AND '.join(group)})" for group in groups)


FAMILIES: dict[str, Callable[[int], str]] = {
    "doubling": lambda n: chain(n, "src + src AS src, dst") + " WHERE src > 1",
    "doubling twice": lambda n: chain(n, "src + dst AS src, src * dst AS dst") + " WHERE src > dst",
    "doubling views": lambda n: f"SELECT count(*) FROM d{min(n, 39)} WHERE src > dst",
    "joining views": lambda n: f"SELECT count(*) FROM j{min(n, 11)}",
    "long views": lambda n: joined(min(n, 60), name="long"),
    "nested with": lambda n: (
        "WITH a AS (" * min(n, 39)
        + "SELECT src FROM edge"
        + ") SELECT src FROM a" * (min(n, 39) - 1)
        + ") SELECT count(*) FROM a"
    ),
    "stars": lambda n: (
        "SELECT count(*) FROM "
        + "(SELECT *, *, * FROM " * min(n, 39)
        + "edge"
        + "".join(f") s{k}" for k in range(min(n, 39)))
    ),
    "commas": lambda n: joined(4 * n),
    "wide commas": lambda n: joined(min(n, 60), name="wide"),
    "natural": lambda n: (
        "SELECT count(*) FROM " + " NATURAL JOIN ".join(f"wide e{k}" for k in range(min(n, 60)))
    ),
    "arguments": lambda n: (
        f"SELECT count(*) FROM words WHERE coalesce({', '.join(['c1'] * 40 * n)}) = 'x'"
    ),
    "cases": lambda n: (
        "SELECT count(*) FROM edge WHERE CASE "
        + " ".join(f"WHEN src = {k} THEN {k}" for k in range(15 * n))
        + " END > 1"
    ),
    "not or": lambda n: (
        "SELECT count(*) FROM edge WHERE NOT ("
        + " OR ".join(f"({' OR '.join(['src = 1'] * 100)})" for _ in range(n // 4))
        + ")"
    ),
    "in lists": lambda n: joined(
        10, " AND ".join(f"e{k}.src IN ({', '.join(map(str, range(4 * n)))})" for k in range(10))
    ),
    "bounds": lambda n: joined(
        2, "e0.c1 = e1.c1 AND " + all_of(f"e0.c1 < '{k}'" for k in range(10 * n)), "words"
    ),
    "comparisons": lambda n: joined(
        10, all_of(f"e{k}.c{m}<e{k + 1}.c{m}" for m in range(min(n, 99)) for k in range(9)), "wide"
    ),
    "cycles": lambda n: joined(
        10,
        all_of(f"e{k % 10}.c{k // 10}<=e{(k + 1) % 10}.c{(k + 1) // 10}" for k in range(n))
        + f" AND e{n % 10}.c{n // 10} <= e0.c0",
        "wide",
    ),
    "inequalities": lambda n: joined(
        10, all_of(f"e{k}.c{m}<>e{k + 1}.c{m}" for m in range(min(n, 99)) for k in range(9)), "wide"
    ),
    "sums": lambda n: joined(
        10,
        all_of(f"e{k}.c{m}+e{k + 1}.c{m}>1" for m in range(min(n, 60)) for k in range(9)),
        "wide",
    ),
    "orders": lambda n: joined(
        10, all_of(f"e{k}.src<e{m}.dst" for k in range(10) for m in range(10) if (k * m) % 97 < n)
    ),
    "equalities": lambda n: joined(
        10, all_of(f"e{k}.c{m}=e{k + 1}.c{m}" for m in range(min(n, 99)) for k in range(9)), "wide"
    ),
    "distinct": lambda n: (
        f"SELECT count(DISTINCT ({', '.join(f'e{k}.c{m}' for k in range(9) for m in range(n))}))"
        f" FROM {', '.join(f'wide e{k}' for k in range(9))}"
    ),
    "rows": lambda n: (
        f"SELECT count(*) FROM edge WHERE ({', '.join(['src'] * 20 * n)}) = "
        f"({', '.join(['dst'] * 20 * n)})"
    ),
    "exists": lambda n: (
        "SELECT count(*) FROM edge a WHERE "
        + " AND ".join(f"EXISTS (SELECT 1 FROM edge b{k} WHERE b{k}.src = a.dst)" for k in range(n))
    ),
}


def nested(form: str, depth: int) -> str:
    """A sum in which each form holds the one before."""
    inner = "n"
    for _ in range(depth):
        inner = form.format(inner)
    return f"SELECT sum({inner}) FROM sale"


SALE = table("sale", "id", id=INTEGER, customer=INTEGER, n=BIGINT, m=BIGINT)
OWNED = Catalog(
    "duckdb",
    (replace(SALE, private=True, owners=(Owner("customer"),)),),
    unit=Unit("customer.id"),
)


@pytest.mark.parametrize(
    "form", ["coalesce({},m)*n", "least({},m)*m", "CASE WHEN n=1 THEN {} ELSE m END*m"]
)
def test_what_holds_itself_twice_in_a_sum_is_counted(form: str) -> None:
    """Held between ends, a value that tells its own NULLs was written twice at every level."""
    text = nested(form, 10)
    with guarded(text), pytest.raises(QueryRefused) as refused:
        compiled_text(text, OWNED, Settings())
    assert refused.value.code == "too_complex"
    compiled_text(nested(form, 2), OWNED, Settings())


def test_products_of_sums_are_counted_before_they_are_multiplied_out() -> None:
    both = "+".join(["a.n*b.n"] * 15)
    tables = (replace(SALE, columns=tuple(map(_between, SALE.columns)), private=True),)
    text = f"SELECT sum(({both})*({both})) FROM sale a, sale b WHERE a.id = b.id"
    with bounded(3000), pytest.raises(QueryRefused, match="more than 16 sums"):
        compiled_text(text, Catalog("duckdb", tables), Settings())


def _between(column: Column) -> Column:
    return replace(column, bounds=Bounds(Decimal(-5), Decimal(5), "a test"))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_texts_ends_soon(name: str) -> None:
    compiles(FAMILIES[name](90))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_texts_ends_soon_at_every_size(name: str, dialect: str) -> None:
    for size in (2, 5, 12, 30, 60):
        compiles(FAMILIES[name](size), dialect)


def calls(sql: str) -> int:
    """How many calls of functions the compiler makes: a measure that no busy machine changes."""
    made = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        compiles(sql)
    finally:
        sys.setprofile(before)
    return made


def test_the_work_grows_with_the_columns_and_no_faster() -> None:
    """Tables of 100 columns: what each column equals was looked for among all columns."""
    text = FAMILIES["wide commas"]
    assert calls(text(24)) < 2.5 * calls(text(12))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_chain_of_brackets_is_counted(dialect: str) -> None:
    assert parsed(f"SELECT x{'[1]' * 3000}", dialect) == "TooComplex"
    assert parsed(f"SELECT x{'[1]' * 20}", dialect) == ""


@pytest.mark.parametrize(
    "name", ["doubling", "doubling views", "nested with", "stars", "bounds", "sums"]
)
def test_what_grows_without_end_is_refused(name: str) -> None:
    assert compiles(FAMILIES[name](90 if name != "nested with" else 20)) == "too_complex"


def fuzz_the_compiler(texts: int, seed: int) -> None:
    """Chains of derived tables with random expressions, filters, joins and views."""
    chance = random.Random(seed)
    ends: dict[str, int] = {}
    for _ in range(texts):
        end = compiles(random_text(chance), chance.choice(DIALECTS))
        ends[end] = ends.get(end, 0) + 1
    assert ends.get("", 0) > texts / 20, ends
    assert ends.get("too_complex", 0) > texts / 20, ends


def random_text(chance: random.Random) -> str:
    def value(depth: int) -> str:
        column = chance.choice(("a.src", "a.dst"))
        if depth == 0 or chance.random() < 0.3:
            return column
        form = chance.choice(("{} + {}", "coalesce({}, {})", "({} * {})", "greatest({}, {}, 1)"))
        return form.format(value(depth - 1), value(depth - 1))

    tables = ["c0 AS (SELECT src, dst FROM edge)"]
    for n in range(1, chance.choice((2, 3, 5, 15, 40))):
        more = f", c{chance.randrange(n)} b" if chance.random() < 0.2 else ""
        where = f" WHERE {value(2)} {chance.choice('<>=')} {chance.randrange(9)}"
        keep = "" if chance.random() < 0.5 else where
        tables.append(
            f"c{n} AS (SELECT {value(1)} AS src, {value(2)} AS dst FROM c{n - 1} a{more}{keep})"
        )
    last = f"c{len(tables) - 1}"
    test = chance.choice(("a.src > 1", "NOT (a.src = 1 OR a.dst = 2)", "a.src IN (1, 2, 3)"))
    return f"WITH {', '.join(tables)} SELECT count(*) FROM {last} a WHERE {test}"


def test_random_chains_end_soon() -> None:
    fuzz_the_compiler(10, SEED + 2)


@pytest.mark.slow
def test_many_random_chains_end_soon() -> None:
    fuzz_the_compiler(2000, SEED + 3)


# The account.


def test_steps_are_counted_inside_a_block_only() -> None:
    spend(10**9)
    with bounded(10):
        spend(10)
        with pytest.raises(TooComplex):
            spend()
    spend(10**9)


def test_an_inner_block_takes_from_the_outer_one() -> None:
    with bounded(10):
        with bounded(1000):
            spend(9)
        with pytest.raises(TooComplex):
            spend(2)
