"""Where the boxes of a query go: one column of boxes after the other, linked ones side by side.

The columns are the distances from an outer table, so that a link leads to the next column or stays
in its own: no line has to pass behind a box. Layout libraries of this kind bring more glue than
this is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlrs.records import dataclass

_GAP_Y = 28
_SWEEPS = 4


@dataclass(frozen=True)
class Box:
    """A rectangle in its column; ``x`` and ``y`` are those of its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    column: int

    @property
    def right(self) -> float:
        """The x of its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of its lower side."""
        return self.y + self.height


def columns_of(count: int, links: Iterable[tuple[int, int]]) -> list[list[list[int]]]:
    """The boxes of each connected part, column by column, those of a column in order."""
    near: dict[int, set[int]] = {i: set() for i in range(count)}
    for one, other in links:
        if one != other:
            near[one].add(other)
            near[other].add(one)
    parts: list[list[list[int]]] = []
    left = set(near)
    while left:
        # From one end to the other, beginning with the one that the query names first.
        end = _farthest(min(left), near)
        found = _distances(min(end, _farthest(end, near)), near)
        left -= found.keys()
        columns: list[list[int]] = [[] for _ in range(max(found.values()) + 1)]
        for box in sorted(found):
            columns[found[box]].append(box)
        parts.append(_ordered(columns, near))
    return parts


def _farthest(start: int, near: Mapping[int, set[int]]) -> int:
    found = _distances(start, near)
    return max(found, key=lambda i: (found[i], -len(near[i]), -i))


def _distances(start: int, near: Mapping[int, set[int]]) -> dict[int, int]:
    found, front = {start: 0}, [start]
    while front:
        box = front.pop(0)
        for other in sorted(near[box] - found.keys()):
            found[other] = found[box] + 1
            front.append(other)
    return found


def _ordered(columns: list[list[int]], near: Mapping[int, set[int]]) -> list[list[int]]:
    """Each column sorted by the middle of the linked boxes beside it, a few times to and fro."""
    for sweep in range(_SWEEPS):
        places = range(1, len(columns)) if sweep % 2 == 0 else range(len(columns) - 2, -1, -1)
        for place in places:
            beside = columns[place - 1 if sweep % 2 == 0 else place + 1]
            rank = {box: i for i, box in enumerate(beside)}

            def middle(box: int, rank: dict[int, int] = rank) -> tuple[float, int]:
                linked = [rank[o] for o in near[box] if o in rank]
                return (sum(linked) / len(linked) if linked else 0.0, box)

            columns[place].sort(key=middle)
    return columns


def placed(
    parts: list[list[list[int]]],
    sizes: Mapping[int, tuple[float, float]],
    gap_after: Mapping[int, float],
    margin: float,
) -> dict[int, Box]:
    """The boxes of all parts, one part below the other, each column centred.

    ``gap_after``: how much room a box needs to its right for what is written there.
    """
    boxes: dict[int, Box] = {}
    top = margin
    for columns in parts:
        heights = [sum(sizes[b][1] + _GAP_Y for b in column) - _GAP_Y for column in columns]
        tallest = max(heights)
        x = margin
        for place, column in enumerate(columns):
            width = max(sizes[b][0] for b in column)
            y = top + (tallest - heights[place]) / 2
            for box in column:
                boxes[box] = Box(x, y, width, sizes[box][1], place)
                y += sizes[box][1] + _GAP_Y
            x += width + max(gap_after[b] for b in column)
        top += tallest + 2 * _GAP_Y
    return boxes
