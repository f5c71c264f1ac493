# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What notebooks show: the page map of a memory and its statistics, as HTML."""

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .memory import Memory

_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_text(size: int) -> str:
    """Return a size for people.

    >>> size_text(1536)
    '1.5 KiB'
    """
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


def memory_page(memory: "Memory") -> str:
    """Return the page map of a memory, its statistics, and a report to unfold."""
    if not memory.is_alive:
        return f"<p>{html.escape(repr(memory))}</p>"
    s = memory.statistics
    rows = (("live", size_text(s.live_bytes)), ("peak live", size_text(s.peak_live_bytes)),
            ("reserved", size_text(s.reserved_bytes)), ("largest free", size_text(s.largest_free)),
            ("allocations", str(s.allocation_count)), ("pages", str(s.page_count)), ("refused", str(s.failures)))
    cells = "".join(f"<th style='text-align:left'>{name}</th><td>{value}</td>" for name, value in rows)
    picture = memory.svg()
    return (f"<div><b>{html.escape(memory.name)}</b> on {html.escape(memory.device.name)}"
            f"<table><tr>{cells}</tr></table>{picture[picture.index('<svg'):]}"
            f"<details><summary>report</summary><pre>{html.escape(memory.report())}</pre></details></div>")
