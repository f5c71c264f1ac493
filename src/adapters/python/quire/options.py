# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of memories: the fit, the page policy and presets of other allocators."""

import dataclasses
from typing import Tuple

from .enums import Dedicated, Fit, Growth


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How a memory places allocations in pages; see ``quire_fit_options`` in ``quire/space.h``."""

    algorithm: Fit = Fit.SEGREGATED
    least_fragmentation: bool = False  #: fewer refusals in a nearly full memory, a somewhat slower allocation
    slabs: bool = False  #: small ranges share slabs
    granule: int = 0  #: smallest unit, in bytes, a power of two; 0: by the fit
    max_alignment: int = 0  #: largest alignment of a request, in bytes; 0: 2 MiB


@dataclasses.dataclass(frozen=True)
class PagePolicy:
    """How a memory creates and keeps pages; see ``quire_page_policy`` in ``quire/page_policy.h``. Sizes are bytes.

    By default page sizes follow use. Set `page_size` for pages of one size.
    """

    page_size: int = 0
    first_page_size: int = 0
    growth_percent: int = 0
    max_pages: int = 0  #: maximum number of live pages; 0: only the limit of the device
    max_page: int = 0
    growth: Growth = Growth.LAST
    request_factor: int = 0
    page_granularity: int = 0
    dedicated: Dedicated = Dedicated.BY_SIZE
    dedicated_threshold: int = 0  #: requests of this size or more get a page of their own; 0: none
    size_granularity: int = 0
    extra_padding: int = 0
    #: bytes of empty pages that are kept; 1: none, 2**64 - 1: all; 0: no bound, or a second if both are 0
    retained_empty_bytes: int = 0
    retention_nanoseconds: int = 0  #: time that an empty page is kept; 0: no bound, or a second if both are 0
    classes: Tuple[Tuple[int, int], ...] = ()  #: pairs of the largest request and the page size, at most 4
