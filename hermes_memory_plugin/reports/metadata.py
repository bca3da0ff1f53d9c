"""What a report says of itself: first page, file name, PDF properties. Nothing is guessed: unsure is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_memory_plugin.reports.document import Metadata, Page


def metadata(pages: Sequence[Page], file_name: str, properties: Mapping[str, str]) -> Metadata:
    """The metadata of a report.

    properties   the PDF's own: Title, Author, CreationDate …
    """
    return Metadata(title=properties.get("Title", "") or file_name)
