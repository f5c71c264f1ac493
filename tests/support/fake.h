/*
 * fake.h - a backend for tests, written on quire/backend.h alone: pages in plain memory at invented
 * addresses, native objects, every call counted and made to fail, slow or absent at will.
 */
#ifndef QUIRE_TESTS_SUPPORT_FAKE_H
#define QUIRE_TESTS_SUPPORT_FAKE_H

#include <pthread.h>
#include <sys/types.h>

#include "quire/backend.h"

/* Calls that can fail, in the order of the table. */
typedef enum fake_call {
    FAKE_DESCRIBE = 0,
    FAKE_PAGE_CREATE,
    FAKE_MAP,
    FAKE_FLUSH,
    FAKE_INVALIDATE,
    FAKE_COPY_TO,
    FAKE_COPY_FROM,
    FAKE_IMAGE_REQUIREMENTS,
    FAKE_OBJECT_CREATE,
    FAKE_OBJECT_BIND,
    FAKE_HEAP_BUDGET,
    FAKE_FILL_PAGE,
    FAKE_FLUSH_MANY,
    FAKE_INVALIDATE_MANY,
    FAKE_COPY_PAGES,
    FAKE_COPY_PEER,
    FAKE_STREAM_CREATE,
    FAKE_STREAM_MARK,
    FAKE_STREAM_PASSED,
    FAKE_STREAM_AWAIT,
    FAKE_STREAM_ORDER,
    FAKE_STREAM_COPY,
    FAKE_STREAM_FILL,
    FAKE_PAGE_RESIZE, /* to a larger size */
    FAKE_CALLS
} fake_call;

typedef struct fake_backend {
    quire_backend table;    /* may be changed before fake_open */
    quire_device_info info; /* what describe tells; may be changed before fake_open */
    pthread_mutex_t lock;
    pid_t process; /* that called fake_init */

    /* what is alive, and what happened */
    uint64_t pages, page_bytes, objects, maps;
    uint64_t heap_bytes[QUIRE_MAX_HEAPS]; /* of the pages */
    uint64_t peak_pages, peak_heap_bytes[QUIRE_MAX_HEAPS];
    uint64_t calls[FAKE_CALLS]; /* by kind */
    uint64_t fallible_calls;    /* all of them in order */
    bool ended;                 /* destroy was called */
    uint32_t forks;             /* between fake_init and this process */
    uint64_t last_sync_offset, last_sync_size;
    uint64_t synced_ranges, synced_bytes; /* of flush and invalidate, singly and in lists */
    quire_page_request last_page;

    /* faults */
    uint64_t fail_at;    /* this fallible call fails, counted from 1; 0: none */
    bool fail_from_then; /* and all later ones */
    quire_result fail_with;
    int64_t fail_native;
    fake_call failed_call;      /* the last that failed so */
    uint64_t page_budget;       /* bytes of pages that can be had; 0: any number */
    uint32_t slow_ms;           /* making and destroying a page takes this long */
    uint32_t slow_dedicated_ms; /* making a dedicated page takes this long on top */

    uint64_t page_rounding; /* pages come out as multiples of this; 0: as asked */

    /* what is told of the heaps, where fake_offer_budget was called; see fake_set_budget */
    uint64_t budget[QUIRE_MAX_HEAPS], others[QUIRE_MAX_HEAPS];

    fake_call unsupported;    /* this call answers UNSUPPORTED; FAKE_DESCRIBE: none does */
    uint64_t streams;         /* alive */
    quire_copy_job last_copy; /* of copy_pages, copy_peer or stream_copy */

    uint64_t device_address; /* what every question for one is answered with; 0 */
    uint64_t address_step;   /* each page's address is this much above a multiple of 4 GiB */
    uint64_t next_address;
    quire_requirements object_needs; /* what objects ask; size 0: as large as the options say */
} fake_backend;

/*
 * Two heaps of 1 GiB; kinds: 0 device-local, 1 host-visible and coherent, 2 host-visible, cached
 * and not coherent (atom 64), 3 device-local and host-visible. Offers everything but budgets,
 * fills, lists of ranges, growth, copies between pages and streams. An object described by a
 * uint64_t needs that many bytes.
 */
void fake_init(fake_backend *fake);

/* The group QUIRE_BACKEND_BUDGET, which fake_init leaves out. Before fake_open. */
void fake_offer_budget(fake_backend *fake);

/* The group QUIRE_BACKEND_FILL, likewise. */
void fake_offer_fill(fake_backend *fake);

/* The group QUIRE_BACKEND_FLUSH_MANY, likewise. */
void fake_offer_flush_many(fake_backend *fake);

/* The group QUIRE_BACKEND_ELASTIC, likewise, for all kinds. page_budget and slow_ms hold. */
void fake_offer_growth(fake_backend *fake);

/* The group QUIRE_BACKEND_FORK, likewise. Whether it survives is in `info`. */
void fake_offer_fork(fake_backend *fake);

/* The group QUIRE_BACKEND_DEVICE_ADDRESS, likewise. */
void fake_offer_device_address(fake_backend *fake);

/* Bytes of a page that may be used now. */
uint64_t fake_usable(const quire_native_page *page);

/*
 * fake_copy.c: the groups QUIRE_BACKEND_COPY_PAGES, QUIRE_BACKEND_COPY_PEER and QUIRE_BACKEND_ROWS,
 * likewise. Peers are devices opened on one fake. A page whose size the job goes beyond ends the
 * program.
 */
void fake_offer_copies(fake_backend *fake);

/* Takes groups of copies, fills and streams away again: bits and functions. */
void fake_leave_out(fake_backend *fake, quire_backend_features features);

/* Counts a fallible call; the failure it is to end with, or success. For the other files of it. */
quire_result fake_enter(fake_backend *fake, fake_call call);
unsigned char *fake_bytes(const quire_native_page *page);

/* Copies the bytes of a job, or ends the program where it breaks the rules of quire/backend.h. */
void fake_do_copy(const fake_backend *fake, const quire_copy_job *job);

/*
 * fake_stream.c: the groups of streams, likewise. A stream is a list of work in order, of which
 * nothing is done before somebody says so: a test by fake_stream_run, or an await without a limit
 * of time. Values count the pieces of work from 2 on; 1 has always passed.
 */
void fake_offer_streams(fake_backend *fake);

/* Work that does nothing, as a kernel that a program submits; returns its value. */
uint64_t fake_stream_submit(uint64_t stream);

/* Does the next `count` pieces; what is ordered behind another stream's stops there until that is
   done. Returns how many were done. */
uint64_t fake_stream_run(uint64_t stream, uint64_t count);

/* Pieces that wait. */
uint64_t fake_stream_waiting(uint64_t stream);

/* From now on tells this budget (0: none) of a heap, and bytes in use beside the pages. */
void fake_set_budget(fake_backend *fake, uint32_t heap, uint64_t budget, uint64_t others);

/* What lives becomes the peak. */
void fake_reset_peaks(fake_backend *fake);

/* Opens a device on it with the given host memory (NULL: malloc). */
quire_result fake_open(fake_backend *fake, const quire_host_memory *memory, quire_device **device);

/* Counts from 0 again, and fails the given fallible call (0: none). */
void fake_fail(fake_backend *fake, uint64_t call, bool from_then, quire_result with);

#endif
