/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake.h - a backend for tests, written on quire/backend.h alone: pages in plain memory at invented
 * addresses, and native objects. Tests count every call and can make it fail, slow or absent.
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
    FAKE_PAGE_BACK,
    FAKE_WRITE_MANY,
    FAKE_READ_MANY,
    FAKE_STREAM_WRITE_MANY,
    FAKE_CALLS
} fake_call;

typedef struct fake_backend {
    quire_backend table;    /* may be changed before fake_open */
    quire_device_info info; /* reported by describe; may be changed before fake_open */
    pthread_mutex_t lock;
    uint64_t unbacks; /* calls of page_unback, which cannot fail */
    pid_t process;    /* the process that called fake_init */

    /* live objects, and counts */
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
    uint64_t fail_at;    /* this fallible call fails, counted from 1; 0 means none */
    bool fail_from_then; /* and all later ones */
    quire_result fail_with;
    int64_t fail_native;
    fake_call failed_call;      /* the last call that failed by fail_at */
    uint64_t page_budget;       /* bytes of all pages together; 0 means no limit */
    uint32_t slow_ms;           /* duration of creating and destroying a page */
    uint32_t slow_dedicated_ms; /* additional duration of creating a dedicated page */

    bool zero_pages; /* pages that are requested for zeros have them */

    /* page sizes are rounded up to multiples of this; 0 means no rounding */
    uint64_t page_rounding;

    /* the reported heap budgets, after fake_offer_budget; see fake_set_budget */
    uint64_t budget[QUIRE_MAX_HEAPS], others[QUIRE_MAX_HEAPS];
    uint64_t budget_lifetime; /* nanoseconds, of each answer */

    fake_call unsupported;    /* this call returns UNSUPPORTED; FAKE_DESCRIBE means none */
    uint64_t streams;         /* live streams */
    quire_copy_job last_copy; /* of copy_pages, copy_peer or stream_copy */
    uint64_t longest_list;    /* of write_many, read_many and stream_write_many */

    uint64_t device_address; /* the result of every query for an address; 0 */
    uint64_t address_step;   /* each page's address is this far above a multiple of 4 GiB */
    uint64_t next_address;
    /* requirements of objects; size 0 means the size of the options */
    quire_requirements object_needs;
} fake_backend;

/*
 * Two heaps of 1 GiB. Kinds: 0 device-local, 1 host-visible and coherent, 2 host-visible, cached
 * and not coherent (atom 64), 3 device-local and host-visible. Offers everything except budgets,
 * fills, lists of ranges, growth, copies between pages, and streams. The description of an object
 * is a uint64_t, its size in bytes.
 */
void fake_init(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_BUDGET, which fake_init omits. Call it before fake_open. */
void fake_offer_budget(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_FILL, likewise. */
void fake_offer_fill(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_FLUSH_MANY, likewise. */
void fake_offer_flush_many(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_ELASTIC for all kinds, likewise. page_budget and slow_ms apply. */
void fake_offer_growth(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_FORK, likewise. `info` states whether the device survives. */
void fake_offer_fork(fake_backend *fake);

/* Adds the group QUIRE_BACKEND_DEVICE_ADDRESS, likewise. */
void fake_offer_device_address(fake_backend *fake);

/* Usable bytes of a page now. */
uint64_t fake_usable(const quire_native_page *page);

/*
 * fake_copy.c: adds the groups QUIRE_BACKEND_COPY_PAGES, QUIRE_BACKEND_COPY_PEER and
 * QUIRE_BACKEND_ROWS, likewise. Peers are devices opened on one fake. A job that exceeds its page
 * ends the program.
 */
void fake_offer_copies(fake_backend *fake);

/*
 * fake_copy.c: adds the group QUIRE_BACKEND_COPY_MANY, and QUIRE_BACKEND_STREAM_WRITE_MANY if
 * streams are offered. A copy that exceeds its page ends the program.
 */
void fake_offer_batches(fake_backend *fake);

/* Removes groups of copies, fills and streams: bits and functions. */
void fake_leave_out(fake_backend *fake, quire_backend_features features);

/* Counts a fallible call; returns its planned failure, or success. For the other files of the fake.
   */
quire_result fake_enter(fake_backend *fake, fake_call call);
unsigned char *fake_bytes(const quire_native_page *page);

/* Copies the bytes of a job. Ends the program if the job breaks the rules of quire/backend.h. */
void fake_do_copy(const fake_backend *fake, const quire_copy_job *job);

/* fake_stream.c: submits each copy of the list as a piece of work. */
quire_result fake_stream_write_many(void *state, uint64_t stream, const quire_page_copy *copies,
                                    uint64_t count);

/*
 * fake_stream.c: adds the groups of streams, likewise. A stream is an ordered list of work. Nothing
 * is executed before a test calls fake_stream_run, or a wait has no time limit. Values count the
 * pieces of work from 2 on; 1 has always passed.
 */
void fake_offer_streams(fake_backend *fake);

/* Submits work without an effect, like a kernel of a program; returns its value. */
uint64_t fake_stream_submit(uint64_t stream);

/* Executes the next `count` pieces. A piece ordered after another stream's work stops there until
   that work is executed. Returns the number of executed pieces. */
uint64_t fake_stream_run(uint64_t stream, uint64_t count);

/* The number of pieces not yet executed. */
uint64_t fake_stream_waiting(uint64_t stream);

/* From now on reports this budget (0 means none) of a heap, and bytes in use in addition to the
   pages. */
void fake_set_budget(fake_backend *fake, uint32_t heap, uint64_t budget, uint64_t others);

/* Sets the peak to the live pages. */
void fake_reset_peaks(fake_backend *fake);

/* Opens a device on it with the given host memory (NULL: malloc). */
quire_result fake_open(fake_backend *fake, const quire_host_memory *memory, quire_device **device);

/* Restarts counting from 0 and fails the given fallible call (0 means none). */
void fake_fail(fake_backend *fake, uint64_t call, bool from_then, quire_result with);

#endif
