"""Put a name into a list of a YAML text, or take it out, touching no other character.

The parser says where everything stands; the text is changed at those places only. A caller reads the result back and
compares, so that a text too odd for this is never written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from yaml import MappingNode, Node, ScalarNode, SequenceNode


class TooOdd(Exception):
    """The text has a form that is not edited here."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace text[start:end] by `new`."""

    start: int
    end: int
    new: str


Place: TypeAlias = tuple[Node, Node] | None


class Text:
    """One YAML document and the edits to be made to it."""

    def __init__(self, text: str) -> None:
        import yaml

        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._edits: list[Edit] = []
        self._json = _is_json(text)
        self._root = yaml.compose(text, Loader=yaml.SafeLoader)

    def result(self) -> str:
        """The edited text."""
        text = self._text
        for edit in sorted(self._edits, key=lambda one: (one.start, one.end), reverse=True):
            text = text[: edit.start] + edit.new + text[edit.end :]
        return text

    def add(self, section: str, key: str, name: str) -> None:
        """Append `name` to the list `section.key`; makes what is missing."""
        if self._root is None or _is_null(self._root):
            self._at_the_end(f"{section}:{{n}}  {key}:{{n}}  - {name}{{n}}")
            return
        outer = self._find(self._root, section)
        if outer is None:
            self._new_section(section, key, name)
            return
        inner = self._find(outer[1], key) if not _is_null(outer[1]) else None
        if inner is not None:
            self._append(inner, name)
        elif _is_null(outer[1]):
            self._fill(outer, f"{{{self._quoted(key)}: [{self._quoted(name)}]}}")
        else:
            self._first_key(outer[1], key, name)

    def remove(self, section: str, key: str, name: str) -> None:
        """Take every `name` out of the list `section.key`."""
        outer = self._find(self._root, section) if self._root is not None else None
        inner = self._find(outer[1], key) if outer is not None and not _is_null(outer[1]) else None
        if inner is None or not isinstance(inner[1], SequenceNode):
            return
        items: list[Node] = inner[1].value
        kept = [item for item in items if item.value != name]
        if len(kept) == len(items):
            return
        if inner[1].flow_style:
            start, end = self._start(inner[1]) + 1, self._end(inner[1]) - 1
            if "\n" in self._text[start:end]:
                self._remove_from_lines(items, name)
            else:
                self._edit(start, end, ", ".join(self._slice(item) for item in kept))
            return
        for item in items:
            if item.value == name:
                start, end = self._line_of(item)
                line, rest = self._text[start:end], self._text[self._end(item) : end]
                if not line.lstrip().startswith("-") or (rest.strip() and not rest.lstrip().startswith("#")):
                    raise TooOdd
                indent = line[: len(line) - len(line.lstrip())]
                self._edit(start, end, indent + rest.lstrip() if rest.strip() else "")  # a comment stays
        if not kept:
            self._edit(self._after_colon(inner[0]), self._after_colon(inner[0]), " []")

    def _remove_from_lines(self, items: list[Node], name: str) -> None:
        """Take `name` out of a flow list of several lines: itself and one comma, no comment."""
        text = self._text
        commas = [self._comma_after(item) for item in items]
        last = max((n for n, item in enumerate(items) if item.value != name), default=-1)
        if last >= 0 and commas[-1] < 0 and commas[last] >= 0:  # what is last now has no comma, as before
            self._edit(commas[last], commas[last] + 1, "")
        for item, comma in zip(items, commas, strict=True):
            if item.value != name:
                continue
            start, end = self._start(item), self._end(item)
            if comma >= 0 and not text[end:comma].strip(" \t"):
                end = comma + 1
            elif comma >= 0:
                self._edit(comma, comma + 1, "")
            line, line_end = self._line_of(item)
            after = len(text[end:line_end]) - len(text[end:line_end].lstrip(" \t"))
            if not text[line:start].strip():
                if not text[end:line_end].strip():
                    start, end = line, line_end
                else:
                    end += after
            elif comma < 0:
                start = len(text[:start].rstrip(" \t"))
            elif text[end + after : end + after + 1] != "#":
                end += after
            self._edit(start, end, "")

    def _comma_after(self, item: Node) -> int:
        """Where the comma behind an item of a flow list is; -1 when there is none."""
        at = self._end(item)
        while at < len(self._text):
            if self._text[at] == ",":
                return at
            if self._text[at] == "#":
                at = self._text.find("\n", at)
                if at < 0:
                    return -1
            elif not self._text[at].isspace():
                return -1
            at += 1
        return -1

    def _append(self, place: tuple[Node, Node], name: str) -> None:
        value = place[1]
        if _is_null(value):
            self._fill(place, f"[{self._quoted(name)}]")
        elif not isinstance(value, SequenceNode):
            raise TooOdd
        elif value.flow_style:
            at = self._end(value.value[-1]) if value.value else self._start(value) + 1
            self._edit(at, at, (", " if value.value else "") + self._quoted(name))
        else:
            last = value.value[-1]
            start, end = self._line_of(last)
            line = self._text[start:end]
            if not line.lstrip(" ").startswith("-"):
                raise TooOdd
            indent = line[: len(line) - len(line.lstrip(" "))]
            missing = "" if line.endswith("\n") else self._newline
            self._edit(end, end, f"{missing}{indent}- {name}{self._newline}")

    def _new_section(self, section: str, key: str, name: str) -> None:
        root = self._root
        if not isinstance(root, MappingNode):
            raise TooOdd
        if root.flow_style:
            inner = f"{self._quoted(section)}: {{{self._quoted(key)}: [{self._quoted(name)}]}}"
            self._edit(self._start(root) + 1, self._start(root) + 1, inner + (", " if root.value else ""))
        elif root.start_mark.column:
            raise TooOdd
        else:
            self._at_the_end(f"{section}:{{n}}  {key}:{{n}}  - {name}{{n}}")

    def _first_key(self, mapping: Node, key: str, name: str) -> None:
        if not isinstance(mapping, MappingNode):
            raise TooOdd
        if mapping.flow_style:
            inner = f"{self._quoted(key)}: [{self._quoted(name)}]"
            at = self._start(mapping) + 1
            self._edit(at, at, inner + (", " if mapping.value else ""))
            return
        start, _ = self._line_of(mapping.value[0][0])
        indent = " " * mapping.start_mark.column
        if self._text[start : self._start(mapping)] != indent:
            raise TooOdd
        self._edit(start, start, f"{indent}{key}:{self._newline}{indent}- {name}{self._newline}")

    def _fill(self, place: tuple[Node, Node], flow: str) -> None:
        """Write a value where there is none, or a null."""
        key, value = place
        if self._start(value) == self._end(value):
            at = self._after_colon(key)
            self._edit(at, at, f" {flow}")
        else:
            self._edit(self._start(value), self._end(value), flow)

    def _at_the_end(self, form: str) -> None:
        missing = "" if not self._text.strip("\ufeff") or self._text.endswith("\n") else self._newline
        self._edit(len(self._text), len(self._text), missing + form.replace("{n}", self._newline))

    def _find(self, mapping: Node, key: str) -> Place:
        if not isinstance(mapping, MappingNode):
            raise TooOdd
        found: Place = None
        for name, value in mapping.value:
            if isinstance(name, ScalarNode) and name.value == key:
                found = (name, value)  # of two equal keys the last one counts
        return found

    def _after_colon(self, key: Node) -> int:
        end = self._end(key)
        colon = self._text.find(":", end)
        if colon < 0 or self._text[end:colon].strip():
            raise TooOdd
        return colon + 1

    def _line_of(self, node: Node) -> tuple[int, int]:
        start = self._text.rfind("\n", 0, self._start(node)) + 1
        end = self._text.find("\n", max(self._start(node), self._end(node) - 1))
        return start, len(self._text) if end < 0 else end + 1

    def _slice(self, node: Node) -> str:
        return self._text[self._start(node) : self._end(node)]

    def _start(self, node: Node) -> int:
        return int(node.start_mark.index)

    def _end(self, node: Node) -> int:
        return int(node.end_mark.index)

    def _quoted(self, word: str) -> str:
        return json.dumps(word) if self._json else word

    def _edit(self, start: int, end: int, new: str) -> None:
        self._edits.append(Edit(start, end, new))


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True
