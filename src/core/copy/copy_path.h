/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_path.h - chooses the path on which bytes get from one end of a copy to the other, and
 * copies.
 *
 * The kinds of the two memories and the features of their backends decide the path. If a backend
 * answers UNSUPPORTED the next path is tried. The caller holds a use of the allocation at each end,
 * so that page and record stay. No lock may be held. A qi_copy belongs to the calling thread.
 * Invariant: every path writes the same bytes; a path may refuse a copy, but not change its result.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_PATH_H
#define QUIRE_SRC_CORE_COPY_COPY_PATH_H

#include "quire/base.h"
#include "quire/transfer.h"
#include "src/core/state/memory.h"

/* ---- regions ------------------------------------------------------------------------------ */

/*
 * The shape of a copy: rows of bytes at two ends. Pure arithmetic on integers, without state or
 * locks.
 *
 * Row i of slice k begins at offset + i * row + k * slice, at either end. Invariant: rows and
 * slices have ascending addresses and do not overlap, that is, row >= size, and slice >= the bytes
 * from the first byte to the last byte of a slice.
 */

/* Positions of the rows at one end; bytes. */
typedef struct qi_copy_region_side {
    uint64_t offset;
    uint64_t row, slice; /* distance from one to the next */
} qi_copy_region_side;

typedef struct qi_copy_region {
    uint64_t size, rows, slices; /* bytes of a row, rows of a slice, slices; each above 0 */
    qi_copy_region_side to, from;
} qi_copy_region;

/* Bytes of all rows. Requires that the extents were checked, so that nothing overflows. */
static inline uint64_t qi_copy_region_bytes(const qi_copy_region *region)
{
    return region->size * region->rows * region->slices;
}

/* The offset of a row at one end. */
static inline uint64_t qi_copy_region_at(const qi_copy_region_side *side, uint64_t row,
                                         uint64_t slice)
{
    return side->offset + row * side->row + slice * side->slice;
}

/* Computes the bytes from the first to the last at one end, gaps included. Returns true if they
   exceed 64 bits. */
QUIRE_MUST_USE bool qi_copy_region_extent_overflows(const qi_copy_region *region,
                                                    const qi_copy_region_side *side,
                                                    uint64_t *extent);

/* Returns the extent at one end, for a region whose extents were checked. */
uint64_t qi_copy_region_extent(const qi_copy_region *region, const qi_copy_region_side *side);

/* Joins rows that have no gap between them at both ends, so that fewer and longer rows remain. */
void qi_copy_region_merge(qi_copy_region *region);

/*
 * Returns the next part to copy after the first `done` bytes, which are fewer than all: as many
 * whole slices, or whole rows of one slice, or bytes of one row, as `room` bytes hold. `room` is
 * above 0.
 */
qi_copy_region qi_copy_region_part(const qi_copy_region *region, uint64_t done, uint64_t room);

/* Whether a row of one end shares a byte with a row of the other. The offsets of both ends must
   count from the same address. */
bool qi_copy_region_overlaps(const qi_copy_region *region);

/* ---- paths -------------------------------------------------------------------------------- */

/* One end of a copy. Offsets of the region count from the page's first byte, or from `host`. */
typedef struct qi_end {
    quire_memory *memory; /* NULL: host memory */
    uint32_t slot;        /* in use while the copy runs */
    const qi_device_page *page;
    /* the page's first byte or the caller's pointer; NULL: the host cannot reach it, or not yet
       (qi_copy_reach) */
    char *host;
} qi_end;

typedef struct qi_copy {
    qi_end to, from; /* at least one of them is in a memory */
    qi_copy_region region;
    char *bounce; /* host memory between the two ends; NULL until it is needed */
    uint64_t bounce_size;
} qi_copy;

/* The paths in the order in which they are tried. */
typedef enum qi_copy_path {
    QI_COPY_PATH_NONE = 0,
    QI_COPY_PATH_PAGES,     /* copy_pages of the backend */
    QI_COPY_PATH_PEER,      /* copy_peer of the backend */
    QI_COPY_PATH_HOST,      /* memcpy: the host reaches both ends */
    QI_COPY_PATH_TO_PAGE,   /* copy_to_page, from host memory or a mapping */
    QI_COPY_PATH_FROM_PAGE, /* copy_from_page, into host memory or a mapping */
    QI_COPY_PATH_BOUNCE     /* copy_from_page, then copy_to_page, through the bounce buffer */
} qi_copy_path;

/* The best path, and the one to try after `path`; NONE after the last. NULL means host memory. */
qi_copy_path qi_copy_path_first(const quire_memory *to, const quire_memory *from);

/* What quire_copy_get_path reports for a path between these memories. */
quire_copy_path qi_copy_path_public(qi_copy_path path, const quire_memory *to,
                                    const quire_memory *from);

/* Copies a part of a copy's region on the best supported path. May allocate the bounce buffer. */
QUIRE_MUST_USE quire_result qi_copy_execute(qi_copy *copy, const qi_copy_region *part);

/*
 * Maps the pages that the host reads or writes on a path, if they are mapped on
 * demand, until leave_ends. Fails with what the backend answers. May be called again for another
 * path.
 */
QUIRE_MUST_USE quire_result qi_copy_reach(qi_copy *copy, qi_copy_path path);

/* Frees the bounce buffer and ends the maps of qi_copy_reach, if there are any. */
void qi_copy_finish(qi_copy *copy);

/* A function of a backend that takes jobs, with its arguments. */
typedef struct qi_job_call {
    quire_result (*call)(const struct qi_job_call *self, const quire_copy_job *job);
    quire_device *device;
    qi_calls *calls;
    /* For stream_copy only: the native stream, and what becomes true with the first call of the
       backend that succeeds. */
    uint64_t stream;
    bool *has_submitted;
} qi_job_call;

/* Calls it for a part of a copy: once if the backend takes rows, or once for each row. */
QUIRE_MUST_USE quire_result qi_copy_call(const qi_copy *copy, const qi_copy_region *part,
                                         const qi_job_call *call);

#endif
