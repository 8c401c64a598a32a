"""The parser of a stream of Server-Sent Events (HTML Living Standard, section 9.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, List

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")


@dataclass(frozen=True)
class Frame:
    id: str | None
    data: str


class FrameParser:
    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._data: List[str] = []

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yields the frames that end in this chunk."""
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        for line in lines:
            if line == b"":
                frame = Frame(self._id, "\n".join(self._data))
                self._id, self._data = None, []
                if frame.data or frame.id is not None:
                    yield frame
                continue
            name, _, text = line.decode(errors="replace").partition(":")
            value = text[1:] if text.startswith(" ") else text
            if name == "id":
                self._id = value
            elif name == "data":
                self._data.append(value)
