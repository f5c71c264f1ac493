/*
 * way.h - the ways in which bytes get from one end of a copy to the other.
 *
 * Which way is taken is decided by the two memories' kinds and by what their backends offer; where
 * a backend answers UNSUPPORTED the next way is tried. Ends are pinned by the caller, and no lock
 * is held.
 */
#ifndef QUIRE_SRC_MEMORY_WAY_H
#define QUIRE_SRC_MEMORY_WAY_H

#include "quire/transfer.h"
#include "src/memory/box.h"
#include "src/memory/memory.h"

/* One end of a copy; offsets of its box count from the page's first byte or from `host`. */
typedef struct qi_end {
    quire_memory *memory; /* NULL: host memory */
    uint32_t slot;        /* pinned */
    const qi_device_page *page;
    char *host; /* of that first byte; NULL where the host cannot reach it */
} qi_end;

typedef struct qi_transfer {
    qi_end to, from; /* one of them is in a memory */
    qi_box box;
    char *bounce; /* host memory that both ends are copied through, or NULL: not needed yet */
    uint64_t bounce_size;
} qi_transfer;

/* The ways in the order in which they are tried. */
typedef enum qi_way {
    QI_WAY_NONE = 0,
    QI_WAY_PAGES,     /* copy_pages */
    QI_WAY_PEER,      /* copy_peer */
    QI_WAY_HOST,      /* by the host, which reaches both */
    QI_WAY_TO_PAGE,   /* copy_to_page, from host memory or a mapping */
    QI_WAY_FROM_PAGE, /* copy_from_page, into them */
    QI_WAY_BOUNCE     /* copy_from_page and copy_to_page through host memory of quire's */
} qi_way;

/* The best way, and the one after it: NONE behind the last. NULL is host memory. */
qi_way qi_way_first(const quire_memory *to, const quire_memory *from);
qi_way qi_way_next(qi_way way, const quire_memory *to, const quire_memory *from);

/* What a way is to the caller, for these memories. */
quire_copy_path qi_way_path(qi_way way, const quire_memory *to, const quire_memory *from);

/* Copies a part of a transfer's box by the best way that is supported. */
QUIRE_MUST_USE quire_result qi_transfer_copy(qi_transfer *transfer, const qi_box *part);

/* Gives back what copying took. */
void qi_transfer_finish(qi_transfer *transfer);

/*
 * Calls a function of a backend that takes jobs, for a part of a transfer: once where it takes
 * rows, else for each row.
 */
typedef struct qi_job_call {
    quire_result (*call)(const struct qi_job_call *self, const quire_copy_job *job);
    quire_device *device;
    qi_calls *calls;
    uint64_t stream; /* of stream_copy */
} qi_job_call;

QUIRE_MUST_USE quire_result qi_transfer_call(const qi_transfer *transfer, const qi_box *part,
                                             const qi_job_call *call);

#endif
