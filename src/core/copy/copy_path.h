/*
 * way.h - the ways in which bytes get from one end of a copy to the other.
 *
 * Which way is taken is decided by the two memories' kinds and by what their backends offer; where
 * a backend answers UNSUPPORTED the next way is tried. Ends are pinned by the caller, and no lock
 * is held.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_PATH_H
#define QUIRE_SRC_CORE_COPY_COPY_PATH_H

#include "quire/transfer.h"
#include "src/core/copy/copy_region.h"
#include "src/core/state/memory.h"

/* One end of a copy; offsets of its box count from the page's first byte or from `host`. */
typedef struct qi_end {
    quire_memory *memory; /* NULL: host memory */
    uint32_t slot;        /* pinned */
    const qi_device_page *page;
    char *host; /* of that first byte; NULL where the host cannot reach it */
} qi_end;

typedef struct qi_copy {
    qi_end to, from; /* one of them is in a memory */
    qi_copy_region region;
    char *bounce; /* host memory that both ends are copied through, or NULL: not needed yet */
    uint64_t bounce_size;
} qi_copy;

/* The ways in the order in which they are tried. */
typedef enum qi_copy_path {
    QI_COPY_PATH_NONE = 0,
    QI_COPY_PATH_PAGES,     /* copy_pages */
    QI_COPY_PATH_PEER,      /* copy_peer */
    QI_COPY_PATH_HOST,      /* by the host, which reaches both */
    QI_COPY_PATH_TO_PAGE,   /* copy_to_page, from host memory or a mapping */
    QI_COPY_PATH_FROM_PAGE, /* copy_from_page, into them */
    QI_COPY_PATH_BOUNCE     /* copy_from_page and copy_to_page through host memory of quire's */
} qi_copy_path;

/* The best way, and the one after it: NONE behind the last. NULL is host memory. */
qi_copy_path qi_copy_path_first(const quire_memory *to, const quire_memory *from);
qi_copy_path qi_copy_path_next(qi_copy_path way, const quire_memory *to, const quire_memory *from);

/* What a way is to the caller, for these memories. */
quire_copy_path qi_copy_path_public(qi_copy_path way, const quire_memory *to,
                                    const quire_memory *from);

/* Copies a part of a transfer's box by the best way that is supported. */
QUIRE_MUST_USE quire_result qi_copy_execute(qi_copy *transfer, const qi_copy_region *part);

/* Gives back what copying took. */
void qi_copy_finish(qi_copy *transfer);

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

QUIRE_MUST_USE quire_result qi_copy_call(const qi_copy *transfer, const qi_copy_region *part,
                                         const qi_job_call *call);

#endif
