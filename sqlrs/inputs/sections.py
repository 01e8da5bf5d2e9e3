"""A TOML file -> frozen dataclasses: every key is described once, by the field that holds it.

The description reads the value, names what is wrong with it, and writes docs/configuration.md. A
kind is a function of ``sqlrs.inputs.arguments`` with a name for people, so that a value is checked
in one way wherever it comes from.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar

from sqlrs.errors import SqlrsError, UsageError
from sqlrs.inputs import arguments
from sqlrs.records import dataclass

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Section = TypeVar("Section")

_HEADER = re.compile(r"\[([^\[\]]+)\](?:\s*#.*)?")


@dataclass(frozen=True)
class KeyKind(Generic[T_co]):
    """A kind of value: what the page calls it, and how it is read under a name for errors."""

    shown: str
    read: Callable[[str, object], T_co]


@dataclass(frozen=True)
class Key:
    """What a key of the file means. ``option`` and ``argument`` say the same elsewhere.

    ``relative``: a path counts from the file's folder. ``section``: the key is a section of the
    file by itself. ``inner``: the class that describes the keys of the section below.
    """

    kind: KeyKind[Any]
    default: object
    meaning: str
    option: str | None
    argument: str | None
    relative: bool
    section: bool
    inner: type[Any] | None
    name: str = ""


def key(
    kind: KeyKind[T],
    default: T,
    meaning: str,
    option: str | None = None,
    argument: str | None = None,
    *,
    relative: bool = False,
    section: bool = False,
    inner: type[Any] | None = None,
) -> T:
    """A field of a section's dataclass, with its description as a ``Key``."""
    about = {"key": Key(kind, default, meaning, option, argument, relative, section, inner)}
    if isinstance(default, Mapping):
        made: T = field(default_factory=lambda: default, metadata=about)
        return made
    return field(default=default, metadata=about)


def keys_of(described: type[Any]) -> dict[str, Key]:
    """The keys of a section by their names, in their order."""
    return {f.name: replace(f.metadata["key"], name=f.name) for f in fields(described)}


TEXT = KeyKind("text", arguments.text)
TRUTH = KeyKind("true or false", arguments.truth)
SECONDS = KeyKind("seconds", arguments.positive_seconds)
SIZE = KeyKind("size, as `4GB`", arguments.size)
NAMES = KeyKind("list of texts", arguments.names)
FILE = KeyKind("path", lambda name, value: Path(arguments.path(name, value)))


def whole(least: int, most: int | None = None) -> KeyKind[int]:
    """A whole number within bounds, both included."""
    shown = f"whole number, {least} or more" if most is None else f"whole number, {least} to {most}"
    return KeyKind(shown, lambda name, value: arguments.whole_number(name, value, least, most))


def one_of(*words: str) -> KeyKind[str]:
    """One of a few words."""
    shown = ", ".join(f"`{word}`" for word in words[:-1]) + f" or `{words[-1]}`"
    return KeyKind(shown, lambda name, value: arguments.one_of(name, value, words))


def mapped(kind: KeyKind[T], shown: str) -> KeyKind[Mapping[str, T]]:
    """A section of names of the owner's choice, each with a value of the kind."""

    def read(name: str, value: object) -> Mapping[str, T]:
        found = _table(name, value)
        return {one: _read(kind, f"{name}.{one}", inner) for one, inner in found.items()}

    return KeyKind(shown, read)


def nested(described: type[Section]) -> KeyKind[Section]:
    """A section with the keys of a dataclass."""
    return KeyKind("section", lambda name, value: build(described, name, _table(name, value)))


def build(described: type[Section], name: str, values: Mapping[str, object]) -> Section:
    """The section with these values; an unknown key, or one of the wrong kind, is an error."""
    known = keys_of(described)
    _refuse_unknown(f"[{name}] has no key", name, values, known)
    return described(**{n: _read(known[n].kind, f"{name}.{n}", v) for n, v in values.items()})


def sections_of(home: str, described: type[Any]) -> tuple[str, ...]:
    """The sections of the file that a dataclass describes, its own first."""
    return (home, *(name for name, one in keys_of(described).items() if one.section))


def read_file(file: Path, name: str, described: type[Section], *others: str) -> Section:
    """The section ``name`` of a file, and the sections that its dataclass describes as keys.

    ``others`` are the sections that somebody else reads.
    """
    text, document = _load(file)
    known = keys_of(described)
    apart = {n for n, one in known.items() if one.section}
    try:
        _refuse_unknown("there is no section", "", document, {name, *apart, *others})
        inside = _table(name, document.get(name, {}))
        _refuse_unknown(f"[{name}] has no key", name, inside, set(known) - apart)
        found = {n: (f"{name}.{n}", v) for n, v in inside.items()}
        found |= {n: (n, document[n]) for n in apart & set(document)}
        values = {n: _read(known[n].kind, place, value) for n, (place, value) in found.items()}
    except _Misplaced as problem:
        # The line itself stays out: it may hold the password of a database.
        line = _line_of(problem.place, text)
        where = f"{file}, line {line}" if line else str(file)
        raise UsageError(f"{where}: {problem.message}", hint=problem.hint) from None
    for one in known.values():
        path = values.get(one.name, one.default)
        if one.relative and path is not None:
            values[one.name] = _below(file.parent, path)
    return described(**values)


def has_section(file: Path, name: str) -> bool:
    """Whether a file has a section of this name."""
    return name in _load(file)[1]


class _Misplaced(UsageError):
    """What is wrong with the part of a file that stands at the dotted name ``place``."""

    def __init__(self, message: str, hint: str | None, place: str) -> None:
        super().__init__(message, hint=hint)
        self.place = place


def _read(kind: KeyKind[T], name: str, value: object) -> T:
    try:
        return kind.read(name, value)
    except _Misplaced:
        raise
    except SqlrsError as problem:
        raise _Misplaced(problem.message, problem.hint, name) from None


def _table(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _Misplaced(f"{name} must be a section", f"write [{name}]", name)
    return value


def _refuse_unknown(
    what: str, section: str, given: Mapping[str, object], known: Collection[str]
) -> None:
    for name in sorted(set(given) - set(known)):
        near = get_close_matches(name, list(known), n=1)
        listed = f"there are {', '.join(sorted(known))}"
        hint = f"did you mean {near[0]}? {listed}" if near else listed
        raise _Misplaced(f"{what} {name!r}", hint, f"{section}.{name}" if section else name)


def _load(file: Path) -> tuple[str, dict[str, object]]:
    try:
        text = file.read_text(encoding="utf-8")
        # Numbers with a point keep the digits that were written.
        return text, tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from None


def _line_of(place: str, text: str) -> int | None:
    """The line on which a key or section begins, as far as plain TOML tells; else its section's."""
    section, found = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.fullmatch(line.strip()):
            section = _bare(header[1])
            found.setdefault(section, number)
        elif "=" in line:
            name = _bare(line.partition("=")[0])
            found.setdefault(f"{section}.{name}" if section else name, number)
    while place:
        if place in found:
            return found[place]
        place = place.rpartition(".")[0]
    return None


def _bare(name: str) -> str:
    """A dotted name without blanks and quotes."""
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _below(folder: Path, value: Any) -> Any:
    """A path, or several by their names, as seen from the file's folder."""
    if isinstance(value, Mapping):
        return {name: _below(folder, one) for name, one in value.items()}
    return folder / value if isinstance(value, Path) else str(folder / value)
