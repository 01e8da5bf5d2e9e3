"""The conversation without sockets: a scripted shadow, a recording backend."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sqlrs.errors import BudgetExhausted, EngineFailed, QueryRefused, Span, SqlrsError
from sqlrs.proxy import effects
from sqlrs.proxy.backend import CountOutcome, HistoryRow, TableOutcome, TableShape
from sqlrs.proxy.policy.decisions import split
from sqlrs.proxy.policy.parameters import inline
from sqlrs.proxy.policy.price import AnalystLimits
from sqlrs.proxy.protocol.codec import Frame, FrameBuffer, Reader, cstring, pack
from sqlrs.proxy.protocol.messages import (
    Bind,
    Close,
    CopyMessage,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Message,
    Parse,
    SimpleQuery,
    Sync,
    Terminate,
)
from sqlrs.proxy.protocol.replies import (
    Report,
    ResultColumn,
    count_description,
    data_row,
    read_row_description,
    report_fields,
    row_description,
)
from sqlrs.proxy.session import Session
from tests.proxy.test_policy import POLICY

COUNT = "SELECT count(*) FROM edge"


class World:
    """Carries out effects: a shadow that knows only shapes, and a backend that records."""

    def __init__(self) -> None:
        self.epsilon = "0.5"
        self.error_bars = "off"
        self.error = ""
        self.error_columns = ""
        self.status = b"I"
        self.skipping = False
        self.names: set[str] = set()
        self.parameters = 0
        self.described = count_description(b"count", False)
        self.to_client: list[Frame] = []
        self.to_shadow: list[Frame] = []
        self.counted: list[effects.Count] = []
        self.checked: list[str] = []
        self.refusal: SqlrsError | None = None
        self.failure: SqlrsError | None = None
        self.shape: TableShape | None = None
        self.hung_up = False
        self.session = Session(
            lambda: AnalystLimits(Decimal("0.5"), Decimal(1)),
            max_statement=500,
            max_prepared=5,
            max_prepared_bytes=4000,
        )

    def settings(self) -> tuple[str, ...]:
        """As the shadow would tell them, with the time limit."""
        return self.epsilon, self.error_bars, self.error, self.error_columns, "0"

    def say(self, *messages: Message) -> list[Frame]:
        """What the client gets for these messages."""
        before = len(self.to_client)
        for message in messages:
            steps = self.session.handle(message)
            try:
                effect = next(steps)
                while True:
                    try:
                        result = self._carry_out(effect)
                    except SqlrsError as problem:
                        effect = steps.throw(problem)
                    else:
                        effect = steps.send(result)
            except StopIteration:
                pass
        return self.to_client[before:]

    def kinds(self, *messages: Message) -> str:
        return b"".join(frame.kind for frame in self.say(*messages)).decode()

    def _carry_out(self, effect: effects.Effect) -> Any:
        match effect:
            case effects.Reply(data):
                buffer = FrameBuffer(None)
                buffer.feed(data)
                while (frame := buffer.next()) is not None:
                    self.to_client.append(frame)
            case effects.Ask(data, replies):
                return self._shadow(data, replies)
            case effects.Stream(data):
                return self._shadow(data, 1)[-1]
            case effects.Examine(sql):
                return [POLICY.plan(statement) for statement in split(sql)]
            case effects.Check(sql):
                self.checked.append(sql)
                if self.refusal:
                    raise self.refusal
                return self.shape
            case effects.Inline(sql, types, values, formats):
                return inline(sql, types, values, formats)
            case effects.Count():
                self.counted.append(effect)
                if self.failure:
                    raise self.failure
                if effect.types is not None:
                    more = ("1",) * (len(effect.types) - 2)
                    rows = (("car", "20", *more), ("home", None, *more))
                    return TableOutcome(rows, effect.epsilon)
                return CountOutcome(42, effect.epsilon)
            case effects.Remaining():
                return Decimal(9)
            case effects.History():
                return list[HistoryRow]()
            case effects.Hangup():
                self.hung_up = True
        return None

    def _shadow(self, data: bytes, replies: int) -> list[Frame]:
        buffer, frames, closing = FrameBuffer(None), list[Frame](), 0
        buffer.feed(data)
        while (frame := buffer.next()) is not None:
            self.to_shadow.append(frame)
            if self.skipping and frame.kind != b"S":
                continue
            for kind, body in self._answer(frame):
                frames.append(Frame(kind, body))
                closing += kind not in (b"t", b"D", b"E")
                if kind == b"E":
                    self.skipping = True
                    self.status = b"E" if self.status != b"I" else b"I"
                    return frames
        assert closing == replies
        return frames

    def _answer(self, frame: Frame) -> list[tuple[bytes, bytes]]:
        reader = Reader(frame.body)
        match frame.kind:
            case b"S":
                self.skipping = False
                return [(b"Z", self.status)]
            case b"P":
                name, sql = reader.string(), reader.string()
                if self.status == b"E":
                    return [(b"E", Report("ERROR", "25P02", "aborted").encode()[5:])]
                if "broken" in sql:
                    return [(b"E", Report("ERROR", "42703", "no column", position=8).encode()[5:])]
                self.names.add(name)
                return [(b"1", b"")]
            case b"B":
                reader.string()
                if reader.string() not in self.names:
                    return [(b"E", Report("ERROR", "26000", "missing").encode()[5:])]
                return [(b"2", b"")]
            case b"D" if frame.body[:1] == b"S":
                types = self.parameters.to_bytes(2, "big") + b"\0\0\0\x14" * self.parameters
                return [(b"t", types), (self.described[:1], self.described[5:])]
            case b"D":
                return [(b"n", b"")]
            case b"C":
                if reader.take(1) == b"S":
                    self.names.discard(reader.string())
                return [(b"3", b"")]
            case b"E" if reader.string().startswith("sqlrs_"):
                row = data_row([one.encode() for one in self.settings()])
                return [(b"D", row[5:]), (b"C", cstring("SELECT 1"))]
            case b"E":
                return [(b"C", cstring("OK"))]
        raise AssertionError(frame)


@pytest.fixture
def world() -> World:
    return World()


def sqlstates(frames: list[Frame]) -> list[str]:
    return [report_fields(frame.body)["C"] for frame in frames if frame.kind == b"E"]


@pytest.mark.parametrize("prepared", [False, True])
def test_a_price_in_the_text_is_for_its_statement_within_the_limits(
    world: World, prepared: bool
) -> None:
    def asked(epsilon: str) -> list[Frame]:
        clause = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {epsilon})"
        sql = COUNT.replace("SELECT", clause, 1)
        if not prepared:
            return world.say(SimpleQuery(sql))
        return world.say(Parse("", sql), Bind("", ""), Execute(""), Sync())

    asked("0.25")
    assert [count.epsilon for count in world.counted] == [Decimal("0.25")]
    assert "DIFFERENTIAL" not in world.counted[0].sql + "".join(world.checked)
    assert not any(b"DIFFERENTIAL" in frame.body for frame in world.to_shadow)
    assert sqlstates(asked("1.5")) == ["22023"]
    world.say(SimpleQuery(COUNT))
    assert [count.epsilon for count in world.counted] == [Decimal("0.25"), Decimal("0.5")]


def test_a_simple_count(world: World) -> None:
    frames = world.say(SimpleQuery(COUNT))
    assert [frame.kind for frame in frames] == [b"N", b"T", b"D", b"C", b"Z"]
    assert pack(*frames[2]) == data_row([b"42"])
    assert "epsilon 0.5 charged, 9 remains" in report_fields(frames[0].body)["M"]
    assert world.checked == [COUNT]
    assert [(c.sql, c.epsilon, c.error_bars) for c in world.counted] == [
        (COUNT, Decimal("0.5"), None)
    ]


def test_an_extended_count_in_binary(world: World) -> None:
    kinds = world.kinds(
        Parse("", COUNT), Bind("", "", result_formats=(1,)), Describe(b"P", ""), Execute(""), Sync()
    )
    assert kinds == "12TNDCZ"
    assert pack(*world.to_client[-3]) == data_row([(42).to_bytes(8, "big")])


def test_describe_never_spends(world: World) -> None:
    world.say(Parse("s", COUNT), Describe(b"S", "s"), Bind("p", "s"), Describe(b"P", "p"), Sync())
    assert world.counted == []


def test_a_portal_is_charged_once(world: World) -> None:
    world.say(Parse("", COUNT), Bind("p", ""))
    assert world.kinds(Execute("p", 1)) == "NDs"
    assert world.kinds(Execute("p", 1)) == "C"
    assert world.kinds(Execute("p")) == "C"
    assert len(world.counted) == 1


def test_a_portal_that_failed_is_not_run_again(world: World) -> None:
    world.failure = EngineFailed("the database failed")
    world.say(SimpleQuery("BEGIN"))
    world.status = b"T"
    world.say(Parse("", COUNT), Bind("p", ""))
    assert sqlstates(world.say(Execute("p"), Sync())) == ["58000"]
    world.failure, world.status, world.skipping = None, b"T", False
    world.say(Execute("p"))
    assert len(world.counted) == 1


def test_parameters_are_written_into_the_statement(world: World) -> None:
    world.parameters = 1
    world.say(Parse("", COUNT + " WHERE src = $1"))
    assert world.checked == []
    world.say(Bind("", "", (), (b"7",)), Execute(""))
    assert [c.sql for c in world.counted] == ["SELECT COUNT(*) FROM edge WHERE src = 7"]
    assert world.checked == ["SELECT COUNT(*) FROM edge WHERE src = 7"]


def test_after_an_error_everything_is_skipped_until_sync(world: World) -> None:
    kinds = world.kinds(
        Parse("", "SELECT pg_sleep(1)"),
        Parse("", COUNT),
        Bind("", ""),
        Execute(""),
        SimpleQuery(COUNT),
        Flush(),
        Sync(),
    )
    assert kinds == "EZ"
    assert world.counted == []
    assert world.kinds(SimpleQuery(COUNT)) == "NTDCZ"


def test_an_error_of_the_proxy_fails_the_shadows_transaction_too(world: World) -> None:
    world.status = b"T"
    frames = world.say(SimpleQuery("COPY edge TO STDOUT"))
    assert [frame.kind for frame in frames] == [b"E", b"Z"]
    assert frames[-1].body == b"E"


def test_in_a_failed_transaction_nothing_is_charged(world: World) -> None:
    world.status = b"E"
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ["25P02"]
    assert world.counted == []


def test_errors_of_the_shadow_keep_their_position_in_the_whole_text(world: World) -> None:
    frames = world.say(SimpleQuery("SELECT 1; SELECT broken FROM pg_class"))
    fields = report_fields(frames[-2].body)
    assert (fields["C"], fields["P"]) == ("42703", "18")


def test_refusals_carry_code_hint_and_position(world: World) -> None:
    world.refusal = QueryRefused("no", hint="do this", span=Span(7, 12))
    fields = report_fields(world.say(SimpleQuery("  " + COUNT))[0].body)
    assert fields["C"] == "0A000"
    assert fields["H"] == "do this"
    assert fields["P"] == "10"
    assert fields["D"] == "sqlrs code: unsupported"
    assert world.counted == []


def test_several_statements_are_refused_as_soon_as_one_is_a_count(world: World) -> None:
    for sql in (f"{COUNT}; SELECT 1", f"SELECT 1; {COUNT}", f"{COUNT}; {COUNT}", f"BEGIN; {COUNT}"):
        assert sqlstates(world.say(SimpleQuery(sql))) == ["0A000"]
    assert sqlstates(world.say(Parse("", "SELECT 1; SELECT 2"), Sync())) == ["42601"]
    assert (world.counted, world.checked) == ([], [])
    assert world.kinds(SimpleQuery("SELECT 1; SELECT 2")) == "CCZ"


def test_a_refused_statement_is_refused_before_any_other_of_its_text_runs(world: World) -> None:
    assert world.kinds(SimpleQuery("SET jit = off; COPY edge TO STDOUT")) == "EZ"
    assert all(frame.kind != b"P" for frame in world.to_shadow)


def test_only_a_single_int8_is_a_count(world: World) -> None:
    text = count_description(b"count", False).replace(b"\0\0\0\x14", b"\0\0\0\x19")
    assert text != world.described
    world.described = text
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ["0A000"]
    wrong = pack(b"T", (2).to_bytes(2, "big"), *(count_description(b"c", False)[7:] for _ in "ab"))
    world.described = wrong
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ["0A000"]
    assert world.counted == []


def test_a_name_refused_by_the_backend_is_free_again(world: World) -> None:
    world.refusal = QueryRefused("no")
    world.say(Parse("name", COUNT), Sync())
    assert Frame(b"C", b"Sname\0") in world.to_shadow
    assert sqlstates(world.say(Bind("", "name"), Sync())) == ["26000"]


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SET sqlrs.epsilon = 0.7", None),
        ("SET sqlrs.epsilon = 1", None),
        ("SET sqlrs.epsilon = 1.01", "22023"),
        ("SET sqlrs.epsilon = 0", "22023"),
        ("SET sqlrs.epsilon = -1", "22023"),
        ("SET sqlrs.epsilon = 'NaN'", "22023"),
        ("SET sqlrs.epsilon = 'Infinity'", "22023"),
        ("SET sqlrs.epsilon = off", "22023"),
        ("SET sqlrs.error_bars = off", None),
        ("SET sqlrs.error_bars = 0.1", None),
        ("SET sqlrs.error_bars = 2", "22023"),
    ],
)
def test_settings_are_checked_when_they_are_set(
    world: World, sql: str, sqlstate: str | None
) -> None:
    assert sqlstates(world.say(SimpleQuery(sql))) == ([sqlstate] if sqlstate else [])


@pytest.mark.parametrize("value", ["1.01", "0", "-1", "NaN", "1e400", "x" * 100])
def test_settings_are_checked_again_when_they_are_used(world: World, value: str) -> None:
    world.epsilon = value
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ["22023"]
    assert world.counted == []


def test_error_bars_are_asked_for_by_the_setting(world: World) -> None:
    world.error_bars = "0.25"
    world.say(SimpleQuery(COUNT))
    assert world.counted[0].error_bars == Decimal("0.25")


@pytest.mark.parametrize(
    ("epsilon", "bars", "sqlstate"), [("0.6", "0.4", None), ("0.6", "0.41", "22023")]
)
def test_the_maximum_holds_for_a_count_with_its_error_bars(
    world: World, epsilon: str, bars: str, sqlstate: str | None
) -> None:
    world.epsilon, world.error_bars = epsilon, bars
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ([sqlstate] if sqlstate else [])
    assert len(world.counted) == (sqlstate is None)


def test_a_wished_error_takes_the_place_of_error_bars(world: World) -> None:
    world.error, world.error_bars = "100", "0.25"
    world.say(SimpleQuery(COUNT))
    assert [(c.epsilon, c.error_bars, c.error) for c in world.counted] == [
        (Decimal("0.5"), None, Decimal(100))
    ]
    world.error = "-1"
    assert sqlstates(world.say(SimpleQuery(COUNT))) == ["22023"]


def test_the_ends_of_the_interval_are_columns_if_that_is_set(world: World) -> None:
    world.error_columns = "on"
    frames = world.say(SimpleQuery(COUNT))
    assert [frame.kind for frame in frames] == [b"N", b"T", b"D", b"C", b"Z"]
    assert b"count_low" in frames[1].body and b"count_high" in frames[1].body
    # Nobody paid for error bars, so nobody knows their ends.
    assert pack(*frames[2]) == data_row([b"42", None, None])


def test_the_columns_of_a_prepared_statement_stay(world: World) -> None:
    """Drivers keep what a statement was described with; a changed setting does not break it."""
    world.error_columns = "on"
    world.say(Parse("wide", COUNT), Describe(b"S", "wide"))
    world.error_columns = "off"
    world.say(Parse("narrow", COUNT), Describe(b"S", "narrow"))
    for name, kept in (("wide", 3), ("narrow", 1)):
        for world.error_columns in ("on", "off"):
            for world.error_bars in ("off", "0.1"):
                frames = world.say(Bind("", name), Execute(""), Sync())
                assert sqlstates(frames) == []
                (row,) = (frame for frame in frames if frame.kind == b"D")
                assert row.body[:2] == kept.to_bytes(2, "big")


def test_the_epsilon_is_the_one_at_execution(world: World) -> None:
    world.say(Parse("s", COUNT), Bind("p", "s"))
    world.epsilon = "0.25"
    world.say(Execute("p"))
    assert world.counted[0].epsilon == Decimal("0.25")


def test_an_exhausted_budget_has_its_sqlstate(world: World) -> None:
    world.failure = BudgetExhausted("nothing left")
    frames = world.say(SimpleQuery(COUNT))
    assert sqlstates(frames) == ["53400"]
    assert all(frame.kind not in (b"D", b"T") for frame in frames)


def test_budget_and_history_are_written_before_they_are_read(world: World) -> None:
    world.say(SimpleQuery("SELECT * FROM sqlrs.budget, sqlrs.history"))
    own = [frame for frame in world.to_shadow if frame.kind == b"B" and b"sqlrs_" in frame.body]
    assert [b"9" in frame.body or b"[]" in frame.body for frame in own] == [True, True]


def test_limits_on_statements(world: World) -> None:
    assert sqlstates(world.say(SimpleQuery("SELECT '" + "x" * 500 + "'"))) == ["54000"]
    for number in range(5):
        assert sqlstates(world.say(Parse(f"s{number}", "SELECT 1"))) == []
    assert sqlstates(world.say(Parse("s5", "SELECT 1"), Sync())) == ["54000"]
    world.say(Close(b"S", "s0"))
    assert sqlstates(world.say(Parse("s5", "SELECT 1"), Sync())) == []


def test_deallocate_frees_names(world: World) -> None:
    world.say(Parse("s", COUNT), SimpleQuery("DEALLOCATE s"))
    assert sqlstates(world.say(Bind("", "s"), Sync())) == ["26000"]
    world.say(Parse("s", COUNT), SimpleQuery("DISCARD ALL"))
    assert sqlstates(world.say(Bind("", "s"), Sync())) == ["26000"]


def test_portals_end_with_their_transaction(world: World) -> None:
    world.say(Parse("s", COUNT), Bind("p", "s"), Sync())
    assert sqlstates(world.say(Execute("p"), Sync())) == ["34000"]
    assert world.counted == []


@pytest.mark.parametrize(
    ("message", "sqlstate"),
    [
        (Bind("", "none"), "26000"),
        (Execute("none"), "34000"),
        (Describe(b"P", "none"), "34000"),
        (Describe(b"S", "none"), "26000"),
    ],
)
def test_unknown_names(world: World, message: Message, sqlstate: str) -> None:
    assert sqlstates(world.say(message, Sync())) == [sqlstate]


def test_messages_without_an_answer(world: World) -> None:
    assert world.kinds(CopyMessage()) == ""
    assert world.kinds(FunctionCall()) == "EZ"
    assert world.kinds(SimpleQuery("")) == "IZ"
    assert world.kinds(SimpleQuery(" -- nothing\n;")) == "IZ"
    world.say(Terminate())
    assert world.hung_up


def test_a_parameter_in_a_simple_query_is_refused(world: World) -> None:
    world.parameters = 1
    assert sqlstates(world.say(SimpleQuery(COUNT + " WHERE src = $1"))) == ["42P02"]
    assert world.counted == []


def test_wrong_result_formats_are_refused(world: World) -> None:
    world.say(Parse("", COUNT))
    assert sqlstates(world.say(Bind("", "", result_formats=(0, 1)), Sync())) == ["08P01"]


def test_the_unnamed_statement_does_not_outlive_a_failed_successor(world: World) -> None:
    world.say(Parse("", COUNT), Parse("", "SELECT pg_sleep(1)"), Sync())
    assert sqlstates(world.say(Bind("", ""), Sync())) == ["26000"]
    world.say(Parse("", COUNT), SimpleQuery("SELECT 1"))
    assert sqlstates(world.say(Bind("", ""), Sync())) == ["26000"]
    assert world.counted == []


def test_prepared_texts_are_bounded_together() -> None:
    world = World()
    long = f"SELECT {'1' + ' + 1' * 100}"
    kinds = "".join(world.kinds(Parse(f"s{n}", long), Sync()) for n in range(5))
    assert kinds.count("1") == 5
    world.say(Close(b"S", "s0"), Sync())
    wide = "SELECT '€" + "x" * 480 + "'"
    for _ in range(3):
        assert world.kinds(Parse("s0", wide), Sync()) == "1Z"
    # A text of two bytes a character takes twice the room; one of the old name is replaced.
    assert world.kinds(Parse("s1", wide), Sync()) == "1Z"
    (refused, _) = world.say(Parse("s2", wide), Sync())
    assert report_fields(refused.body)["C"] == "54000"
    world.say(Close(b"S", "s1"), Close(b"S", "s3"), Sync())
    assert world.kinds(Parse("s2", wide), Sync()) == "1Z"


def test_portals_count_against_the_same_bytes() -> None:
    world = World()
    world.parameters = 1
    world.session._prepared._bytes_limit = 500
    world.say(Parse("s", "SELECT count(*) FROM edge WHERE src = $1"), Sync())
    kinds = "".join(world.kinds(Bind(f"p{n}", "s", (0,), (b"7",), ())) for n in range(5))
    # About a hundred bytes each; after the error the rest is skipped.
    assert 2 <= kinds.count("2") <= 4
    assert kinds.endswith("E")


def test_every_message_that_works_is_admitted() -> None:
    world = World()
    asked: list[effects.Effect] = []
    carry_out = world._carry_out

    def noting(effect: effects.Effect) -> Any:
        asked.append(effect)
        return carry_out(effect)

    world._carry_out = noting  # type: ignore[method-assign]
    for message in (Parse("s", COUNT), Describe(b"S", "s"), Bind("p", "s"), Describe(b"P", "p")):
        asked.clear()
        world.say(message)
        assert asked.count(effects.Admit()) == 1, message
        assert isinstance(asked[0], effects.Admit), message


GROUPED = "SELECT src, count(*) FROM edge GROUP BY src"


@pytest.fixture
def grouped(world: World) -> World:
    columns = (ResultColumn(b"src", 1043), ResultColumn(b"count", 20))
    world.described = row_description(columns, ())
    world.shape = TableShape(((), ("_low", "_high")))
    return world


def _described(frames: list[Frame]) -> list[tuple[bytes, int]]:
    (found,) = [read_row_description(frame.body) for frame in frames if frame.kind == b"T"]
    return [(column.name, column.type_oid) for column in found]


def test_a_table_is_handed_out_by_the_shadow(grouped: World) -> None:
    frames = grouped.say(SimpleQuery(GROUPED))
    # The shadow of this test has no rows.
    assert [frame.kind for frame in frames] == [b"N", b"T", b"C", b"Z"]
    assert _described(frames) == [(b"src", 25), (b"count", 20)]
    assert [(one.sql, one.types) for one in grouped.counted] == [(GROUPED, (25, 20))]
    (carried,) = [one for one in grouped.to_shadow if one.kind == b"B" and b'"c0"' in one.body]
    assert b'[{"c0": "car", "c1": "20"}, {"c0": "home", "c1": null}]' in carried.body


def test_a_portal_of_a_table_is_charged_once(grouped: World) -> None:
    kinds = grouped.kinds(Parse("s", GROUPED), Describe(b"S", "s"), Bind("p", "s", (), (), (1, 0)))
    assert kinds == "1tT2"
    assert grouped.counted == []
    assert grouped.kinds(Describe(b"P", "p"), Execute("p", 1)) == "TNC"
    assert grouped.kinds(Execute("p", 1), Execute("p")) == "CC"
    assert len(grouped.counted) == 1


def test_a_table_that_failed_is_not_asked_for_again(grouped: World) -> None:
    grouped.status = b"T"
    grouped.failure = EngineFailed("the database failed")
    grouped.say(Parse("", GROUPED), Bind("p", ""))
    assert sqlstates(grouped.say(Execute("p"), Sync())) == ["58000"]
    grouped.failure, grouped.status, grouped.skipping = None, b"T", False
    assert grouped.kinds(Execute("p")) == "C"
    assert len(grouped.counted) == 1


def test_error_bars_are_columns_of_a_table(grouped: World) -> None:
    grouped.error_bars = "0.25"
    four = [(b"src", 25), (b"count", 20), (b"count_low", 20), (b"count_high", 20)]
    assert _described(grouped.say(SimpleQuery(GROUPED))) == four
    assert _described(grouped.say(Parse("s", GROUPED), Describe(b"S", "s"))) == four
    assert _described(grouped.say(Bind("p", "s"), Describe(b"P", "p"))) == four
    assert grouped.counted[0].types == (25, 20, 20, 20)


@pytest.mark.parametrize("described", ["statement", "portal"])
def test_the_columns_stay_those_that_were_told(grouped: World, described: str) -> None:
    grouped.say(Parse("s", GROUPED))
    grouped.say(Describe(b"S", "s") if described == "statement" else Bind("p", "s"))
    grouped.error_bars = "0.25"
    later = [Bind("p", "s")] if described == "statement" else []
    frames = grouped.say(*later, Execute("p"), Sync())
    assert sqlstates(frames) == ["0A000"]
    assert "must not change result type" in report_fields(frames[-2].body)["M"]
    assert grouped.counted == []


def test_formats_of_a_table_are_one_for_each_column(grouped: World) -> None:
    grouped.say(Parse("s", GROUPED))
    assert sqlstates(grouped.say(Bind("", "s", (), (), (1, 1, 1)), Sync())) == ["08P01"]
    assert sqlstates(grouped.say(Bind("", "s", (), (), (1,)), Sync())) == []


def test_a_type_that_the_shadow_cannot_carry_is_refused(grouped: World) -> None:
    columns = (ResultColumn(b"src", 17), ResultColumn(b"count", 20))
    grouped.described = row_description(columns, ())
    assert sqlstates(grouped.say(SimpleQuery(GROUPED))) == ["0A000"]
    assert grouped.counted == []
