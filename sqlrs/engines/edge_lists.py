"""Edge lists as the world writes them: their form is found once, recorded, and the same ever after.

Comments begin with # or %. The form is what the first line with an edge says: what separates its
fields, how many there are, integers or other names, whether a header stands above it. Every other
line must have that form: a release from a file with another line fails.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from sqlglot import exp

from sqlrs.engines.file_schema import filled
from sqlrs.engines.loaded_files import Run
from sqlrs.engines.schema_records import schema_file, toml
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.trees.identifiers import column, identifier

INTEGERS, NAMES = "BIGINT", "VARCHAR"
_SEPARATORS = {"space": r"\s", "tab": r"\t", "comma": ",", "semicolon": ";"}
_COMMENT = re.compile(r"\s*([#%]|$)")
_INTEGER = re.compile(r"[+-]?\d+")
# Words by which the ends of an edge are called: a line of two of them is no edge between names.
_HEADINGS = frozenset(
    """
    a b u v i j x y id1 id2 src dst source target from to head tail start end fromnode tonode
    fromnodeid tonodeid from_node_id to_node_id node1 node2 node_1 node_2 source_id target_id
    from_id to_id user1 user2 vertex1 vertex2 numeric_id_1 numeric_id_2
    """.split()  # noqa: SIM905
)
_MOST_FIELDS = 100
_KEYS = frozenset({"format", "separator", "fields", "header", "ids"})


@dataclass(frozen=True)
class EdgeForm:
    """How the lines of an edge list look; the first two fields are the ends, others are ignored.

    ``header``: the line above the edges. ``matrix``: a Matrix Market file, whose first line without
    a comment tells its size.
    """

    separator: str = "space"
    fields: int = 2
    header: str | None = None
    ids: str = INTEGERS
    matrix: bool = False

    def __post_init__(self) -> None:
        if self.separator not in _SEPARATORS or self.ids not in (INTEGERS, NAMES):
            raise ValueError("not the form of an edge list")
        if not 2 <= self.fields <= _MOST_FIELDS:
            raise ValueError("an edge has two ends and few other fields")

    def __str__(self) -> str:
        parts = [
            "integers" if self.ids == INTEGERS else "names",
            f"separated by {self.separator}s" if self.separator != "space" else "",
            "below a header" if self.header is not None else "",
            f"{self.fields - 2} further field(s) ignored" if self.fields > 2 else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def pattern(self) -> str:
        """The form of a line as a regular expression that captures the two ends."""
        gap = _SEPARATORS[self.separator]
        if self.separator == "space":
            end, between, other = r"\S+", r"\s+", r"\s+\S+"
        else:
            # Names may have spaces inside, not around.
            end, between, other = rf"[^{gap}]*?[^{gap}\s]", rf"\s*{gap}\s*", rf"\s*{gap}[^{gap}]*"
        if self.ids == INTEGERS:
            end = r"[+-]?\d+"
        rest = rf"(?:{other}){{{self.fields - 2}}}" if self.fields > 2 else ""
        return rf"^\s*({end}){between}({end}){rest}\s*$"

    def rows(self, path: exp.Literal, skip: int) -> exp.Select:
        """The statement that reads the edges; an end is NULL where a line is no edge."""
        query = filled(
            "duckdb/read_edges.sql",
            path=path,
            skip=exp.Literal.number(skip),
            form=exp.Literal.string(self.pattern),
        )
        ends = {one.alias: one.this for one in query.selects}
        return query.select(
            *(exp.Alias(this=self._id(ends[name]), alias=identifier(name)) for name in ends),
            append=False,
        )

    def _id(self, text: exp.Expression) -> exp.Expression:
        if self.ids == INTEGERS:
            return exp.TryCast(this=text, to=exp.DataType.build(INTEGERS, dialect="duckdb"))
        return exp.Nullif(this=text, expression=exp.Literal.string(""))

    def find_unfit(self, path: exp.Literal, skip: int, run: Run) -> str | None:
        """Where the first line is that is no edge, and of what kind it is."""
        fits: exp.Expression = _matches(column("line"), self.pattern)
        if self.ids == INTEGERS:
            ends = [
                _call(
                    "regexp_extract",
                    column("line"),
                    exp.Literal.string(self.pattern),
                    exp.Literal.number(place),
                )
                for place in (1, 2)
            ]
            held = [exp.Not(this=exp.Is(this=self._id(end), expression=exp.Null())) for end in ends]
            fits = exp.Paren(this=exp.and_(fits, *held))
        statement = filled(
            "duckdb/unfit_line.sql",
            path=path,
            skip=exp.Literal.number(skip),
            fits=fits,
        )
        found = run(statement.sql(dialect="duckdb", comments=False))
        if not found:
            return None
        place, line = found[0]
        return f"line {int(str(place)) + skip} {self._kind(str(line))}"

    def _kind(self, line: str) -> str:
        """What is wrong with a line, in words that hold nothing of it."""
        fields = _split(line, self.separator)
        if len(fields) != self.fields:
            return f"has {len(fields)} field{'s' * (len(fields) != 1)} instead of {self.fields}"
        for place, text in enumerate(fields[:2], 1):
            if self.ids == INTEGERS and not _INTEGER.fullmatch(text):
                return f"has {_text_kind(text)} instead of an integer in field {place}"
        return "has an integer of more than 64 bits" if self.ids == INTEGERS else "lacks an end"


def _text_kind(text: str) -> str:
    if not text:
        return "nothing"
    try:
        float(text)
    except ValueError:
        return "a text in quotes" if text[0] in "\"'" else "a text"
    return "a number with a fraction or exponent"


def form_of(path: Path, head: Sequence[str], *, matrix: bool, directed: bool) -> EdgeForm:
    """The recorded form of an edge list, else the one that its head has, recorded from now on."""
    if matrix:
        return _matrix_form(path, head, directed)
    found = _recorded(path)
    if found is None:
        found = _inferred([line for line in head if not _COMMENT.match(line)])
        _record(path, found)
    return found


def is_edge_record(path: Path) -> bool:
    """Whether what is recorded beside a file is the form of an edge list."""
    try:
        return tomllib.loads(schema_file(path).read_text(encoding="utf-8")).get("format") == "edges"
    except (OSError, ValueError):
        return False


def lines_above(path: Path, form: EdgeForm, head: Sequence[str]) -> int:
    """How many lines stand before the edges. A header that is not there is refused."""
    if form.header is None and not form.matrix:
        return 0
    place = next((i for i, line in enumerate(head) if not _COMMENT.match(line)), None)
    if place is None:
        return 0
    if not form.matrix and head[place].strip() != form.header:
        raise UsageError(
            f"the first line of {path} is not {form.header}",
            code="file_unfit",
            hint=f"what is recorded in {schema_file(path).name} says so",
        )
    return place + 1


def _matrix_form(path: Path, head: Sequence[str], directed: bool) -> EdgeForm:
    """By the first line of a Matrix Market file, which says what the file is and is no row."""
    words = head[0].lower().split() if head else []
    kinds = {"pattern": 2, "integer": 3, "real": 3, "complex": 4}
    if words[:3] != ["%%matrixmarket", "matrix", "coordinate"] or words[3:4][0:1] == []:
        raise UsageError(
            f"{path} is no Matrix Market file of coordinates",
            hint="its first line is %%MatrixMarket matrix coordinate pattern general, say",
        )
    if words[3] not in kinds:
        raise UsageError(f"{path} has entries of an unknown kind", hint=", ".join(kinds))
    if directed and words[4:5] != ["general"]:
        raise UsageError(
            f"{path} holds each edge of an undirected graph once",
            hint='read it both ways: --undirected, graphs={"edge": "undirected"}',
        )
    return EdgeForm(fields=kinds[words[3]], matrix=True)


def _inferred(lines: Sequence[str]) -> EdgeForm:
    """The form of the first lines; that of plain integers where they are no edges of any form."""
    if not lines:
        return EdgeForm()
    first = lines[0]
    separator = next((name for name in ("comma", "semicolon") if _sign(name) in first), "space")
    ends = _split(first, separator)[:2]
    header = None
    below = lines[1] if len(lines) > 1 else None
    if not _integers(ends):
        if below is not None and _integers(_split(below, separator)[:2]):
            header, first = first.strip(), below
        elif _is_heading(ends, lines[1:], separator):
            header, first = first.strip(), below or "1" + _sign(separator) + "1"
    ids = INTEGERS if _integers(_split(first, separator)[:2]) else NAMES
    if separator == "space" and ids == NAMES and "\t" in first:
        separator = "tab"
    fields = len(_split(first, separator))
    if not 2 <= fields <= _MOST_FIELDS:
        return EdgeForm()
    return EdgeForm(separator, fields, header, ids)


def _is_heading(ends: Sequence[str], lines: Sequence[str], separator: str) -> bool:
    """Whether these words are what ends are called; nodes may be called a and b, and come again."""
    if len(ends) != 2 or not {end.strip('"').lower() for end in ends} <= _HEADINGS:
        return False
    return not any({*ends} & {*_split(line, separator)[:2]} for line in lines)


def _sign(separator: str) -> str:
    return {"space": " ", "tab": "\t", "comma": ",", "semicolon": ";"}[separator]


def _split(line: str, separator: str) -> list[str]:
    if separator == "space":
        return line.split()
    return [field.strip() for field in line.split(_sign(separator))]


def _integers(ends: Sequence[str]) -> bool:
    return len(ends) == 2 and all(_INTEGER.fullmatch(end) for end in ends)


def _recorded(path: Path) -> EdgeForm | None:
    place = schema_file(path)
    try:
        document = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{place} is not TOML") from None
    if document.keys() != _KEYS or document["format"] != "edges":
        raise UsageError(
            f"{place} does not say how an edge list is read", hint=f"{', '.join(sorted(_KEYS))}"
        )
    separator, fields, ids = document["separator"], document["fields"], document["ids"]
    header = document["header"]
    known = isinstance(separator, str) and isinstance(ids, str) and type(fields) is int
    if known and (header is False or isinstance(header, str)):
        try:
            return EdgeForm(separator, fields, header if isinstance(header, str) else None, ids)
        except ValueError:
            pass
    raise UsageError(
        f"{place} does not say how an edge list is read",
        hint=f"separator: {', '.join(_SEPARATORS)}; ids: {INTEGERS}, {NAMES}; header: a text or "
        "false; fields: 2 or more",
    )


def _record(path: Path, form: EdgeForm) -> None:
    text = "\n".join(
        [
            f"# How sqlrs reads {toml(path.name)}: the form of its lines, which is public.",
            "# Found once in its first lines; edit it, or delete it to have it found anew.",
            'format = "edges"',
            f'separator = "{form.separator}"',
            f"fields = {form.fields}",
            f"header = {'false' if form.header is None else toml(form.header)}",
            f'ids = "{form.ids}"',
            "",
        ]
    )
    try:
        with schema_file(path).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        # Two integers a line are what an edge list is taken for without any look at it.
        if schema_file(path).exists() or form == EdgeForm():
            return
        raise UsageError(
            f"the form of {path} cannot be recorded beside it: {error.strerror}",
            hint=f"read as {form}; only two integers a line need no record",
        ) from None


def _matches(text: exp.Expression, pattern: str) -> exp.Expression:
    return _call("regexp_matches", text, exp.Literal.string(pattern))


def _call(function: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=function, expressions=list(arguments))
