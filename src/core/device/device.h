/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.h - a device: the record, and every call into its backend.
 *
 * A device owns its budgets and a copy of the backend's function table.
 * Other code calls functions of the table in two places: streams (deferred/stream.c), through
 * backend.c, and the handlers of a fork (memory/fork.c). Each qi_device_* function that calls
 * the backend asserts that the thread holds no lock, counts the call for the device and for the
 * memory that causes it, and checks what the backend promised, so that backends stay simple.
 *
 * `lock` guards the lists of memories and streams. The counters and accounts are atomic. The table,
 * the description and the log do not change after creation, except in the child of a fork, which
 * has one thread (qi_device_disable).
 */
#ifndef QUIRE_SRC_CORE_DEVICE_DEVICE_H
#define QUIRE_SRC_CORE_DEVICE_DEVICE_H

#include "quire/backend.h"
#include "quire/insight.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"
#include "src/base/lock.h"
#include "src/base/log.h"
#include "src/core/device/budget.h"
#include "src/core/device/disabled.h"

/* Calls into the backend, and the time spent in those that are timed. */
typedef struct qi_calls {
    qi_atomic_u64 count;
    qi_atomic_u64 nanoseconds;
} qi_calls;

struct quire_device {
    quire_backend table; /* a copy; functions that the backend does not know are NULL */
    const quire_backend *original;
    void *state; /* the backend's */
    quire_device_info info;
    quire_log log;
    qi_host host;
    qi_calls calls;
    qi_account pages; /* count of pages of all memories, including pages being made */
    qi_heap heaps[QUIRE_MAX_HEAPS];
    qi_atomic_u64 reserved_bytes; /* bytes of all pages */
    qi_atomic_u64 peak_reserved_bytes;
    qi_lock lock;           /* guards the lists of memories and streams */
    quire_memory *memories; /* linked by next_of_device, in the order of creation */
    quire_memory *last_memory;
    uint32_t memory_count;
    void *_Atomic defaults[QUIRE_MAX_KINDS]; /* a quire_memory, or NULL; changes under the lock */
    quire_memory_options *default_options;   /* of each kind, or NULL: {0}; guarded by the lock */
    quire_memory_options user_options;       /* of QUIRE_OPTIONS (memory/options.h) */
    quire_hook hook;        /* kinds 0: none; changes while no other thread uses the device */
    void *_Atomic watchers; /* the first qi_watcher (state/event.h), or NULL; with the lock */
    qi_atomic_u64 events;   /* how many were reported */
    bool is_ending;         /* no default memory is made any more; protected by the lock */
    quire_stream *streams;  /* linked by next_of_device */
    /* streams, and destroyed capture streams that recorded uses of allocations still name */
    qi_atomic_u64 stream_records;
    /* nanoseconds that the destruction of a memory waits while no point of a stream passes; tests
       shorten it */
    uint64_t stall_timeout;
    /* the devices of the process: guarded by the lock of base/system.h */
    quire_device *next_of_process, *previous_of_process;
    bool is_copy;     /* this process is a fork made after the device was created */
    bool is_disabled; /* a copy that does not survive the fork: it can only be destroyed */
};

/* Returns the device of a query, which takes it const: its locks, counters and backend change. */
static inline quire_device *qi_device_queried(const quire_device *device)
{
    return (quire_device *)(uintptr_t)device;
}

static inline bool qi_device_offers(const quire_device *device, quire_backend_features feature)
{
    return (device->table.features & feature) != 0;
}

/* ---- creation ----------------------------------------------------------------------------- */

/*
 * Creates the record of a device: copies and checks the backend's table, and queries and checks its
 * description. `options` must have passed the check of its unused fields. The caller owns the
 * record and frees it with qi_device_free. On failure *out is unchanged.
 */
QUIRE_MUST_USE quire_result qi_device_create(const quire_backend *table, void *state,
                                             const quire_device_options *options,
                                             quire_device **out);

/* Frees the record. Does not call the backend. */
void qi_device_free(quire_device *device);

/*
 * Closes the backend and frees the record. Requires that no thread uses the device, and that it has
 * no memory and no stream. In the child of a fork the record stays if allocations still name
 * destroyed streams: the thread that would release the last one may not exist there.
 */
void qi_device_destroy(quire_device *device);

/* Checks the table of `device` and fills in and checks its description. Calls `describe`. */
QUIRE_MUST_USE quire_result qi_device_describe(quire_device *device);

/* ---- after a fork ------------------------------------------------------------------------- */

/*
 * Replaces the table: from now on its functions answer NOT_PERMITTED and those that destroy do
 * nothing. If the backend handles forks (QUIRE_BACKEND_FORK) its destroying functions stay.
 * Only for the child of a fork, before other threads run there.
 */
void qi_device_disable(quire_device *device);

/* ---- memory kinds ------------------------------------------------------------------------- */

/* The memory flags that this version knows. */
#define QI_KNOWN_FLAGS ((quire_memory_flags)0x1ff)

/* The name of one flag; NULL for 0, for several flags and for an unknown flag. */
const char *qi_memory_flag_name(quire_memory_flags flag);

/* Flags as text: "DEVICE_LOCAL|HOST_VISIBLE" or "no flags". Use within one expression, as
   qi_flags(flags).text. */
typedef struct qi_flags_text {
    char text[160];
} qi_flags_text;

qi_flags_text qi_flags(quire_memory_flags flags);

/* Whether the request has flags. */
bool qi_kind_has_flags(const quire_kind_request *request);

/* Turns the intent of a request into flags. Fails with INVALID_ARGUMENT, and with UNSUPPORTED if
   the backend cannot export. */
QUIRE_MUST_USE quire_result qi_kind_resolve(const quire_device *device,
                                            const quire_kind_request *given,
                                            quire_kind_request *request);

/* Chooses the kind that serves a resolved request best, as quire_device_choose_kind. */
QUIRE_MUST_USE quire_result qi_kind_choose(const quire_device *device,
                                           const quire_kind_request *request, uint32_t *kind);

/* Resolves a request and chooses. Without an intent and flags a mask of one bit selects its kind;
   otherwise `open` stands for the request. */
QUIRE_MUST_USE quire_result qi_kind_find(const quire_device *device,
                                         const quire_kind_request *given,
                                         const quire_kind_request *open, uint32_t *kind);

/* Fails with UNSUPPORTED for kinds that are for objects only: their bytes cannot be read or
   written. The calls that copy to and from pages, and fill them, check it as well. */
QUIRE_MUST_USE quire_result qi_device_check_bytes(const quire_device *device, uint32_t kind);

/* ---- budgets ------------------------------------------------------------------------------ */

/* Sets the limit on the bytes of pages in a heap; 0 means none. Fails with OUT_OF_RANGE. */
QUIRE_MUST_USE quire_result qi_device_set_heap_limit(quire_device *device, uint32_t heap,
                                                     uint64_t bytes);

/* As quire_device_get_budget. Calls the backend if it reports budgets. */
QUIRE_MUST_USE quire_result qi_device_get_budget(quire_device *device, uint32_t heap,
                                                 quire_budget_info *info);

/*
 * The same for a report. If the backend fails it returns false, writes what the device itself knows
 * (size, limit, reserved) and leaves the thread's last error. The heap exists.
 */
bool qi_device_describe_heap(quire_device *device, uint32_t heap, quire_budget_info *info);

/*
 * ---- calls into the backend ----------------------------------------------------------------
 *
 * None may be called with a lock held. `calls` is the counter of the memory that causes the call;
 * NULL counts it for the device alone. Each returns what the backend answers, with BACKEND_FAILURE
 * in place of an answer that no backend may give.
 */

/* Queries the usage and budget of a heap. The backend must offer QUIRE_BACKEND_BUDGET. */
QUIRE_MUST_USE quire_result qi_device_heap_budget(quire_device *device, uint32_t heap,
                                                  quire_heap_budget *budget);

/* ---- pages -------------------------------------------------------------------------------- */

/* A page, mapped if its kind is host-visible, unless it is mapped on demand. */
typedef struct qi_device_page {
    quire_native_page native; /* offsets below native.size are valid */
    uint64_t bytes; /* that the page has, and that count: native.size, unless it is elastic */
    uint32_t kind;
    bool on_demand; /* qi_device_page_create does not map it; set before */
    void *host;     /* NULL while the page is not mapped */
} qi_device_page;

/*
 * Creates and maps a page. Claims it from the page count of the device, the account of the memory
 * and the heap before it calls the backend, so that threads cannot exceed a limit together. `terms`
 * (budget.h) say whether the page may exceed the backend's budget. If the backend makes a larger
 * page than requested the rest is claimed too; if that fails the page is destroyed again. Fails
 * with TOO_MANY_PAGES, OVER_BUDGET and what the backend answers.
 */
QUIRE_MUST_USE quire_result qi_device_page_create(quire_device *device, qi_calls *calls,
                                                  qi_account *account, qi_budget_terms *terms,
                                                  const quire_page_request *request,
                                                  qi_device_page *page);

/*
 * Map and unmap a page whose kind is host-visible. The map sets page->host on success only; the
 * unmap clears it. One thread at a time calls them for a page.
 */
QUIRE_MUST_USE quire_result qi_device_page_map(quire_device *device, qi_calls *calls,
                                               qi_device_page *page);
void qi_device_page_unmap(quire_device *device, qi_calls *calls, qi_device_page *page);

/* Destroys a page, which it unmaps before if it is mapped, then returns what was claimed for it. */
void qi_device_page_destroy(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page);

/*
 * Backs spans of an elastic page, all or none. `held` of their bytes are claimed already; the
 * others are claimed as for a new page. The caller sets page->bytes. `name` is the memory's, for
 * the message.
 */
QUIRE_MUST_USE quire_result qi_device_page_back(quire_device *device, qi_calls *calls,
                                                qi_account *account, qi_budget_terms *terms,
                                                const char *name, const qi_device_page *page,
                                                const quire_span *spans, uint32_t count,
                                                uint64_t held);

/* Takes the memory of spans of an elastic page. Cannot fail. Returns what was claimed for it,
   unless `holds`: then qi_device_page_back or qi_device_page_give_up follows. The caller sets
   page->bytes. */
void qi_device_page_unback(quire_device *device, qi_calls *calls, qi_account *account,
                           const qi_device_page *page, const quire_span *spans, uint32_t count,
                           bool holds);

/* Returns the claim of bytes that are held. */
void qi_device_page_give_up(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page, uint64_t bytes);

/* ---- contents of pages -------------------------------------------------------------------- */

QUIRE_MUST_USE quire_result qi_device_flush(quire_device *device, qi_calls *calls,
                                            const qi_device_page *page, uint64_t offset,
                                            uint64_t size);
QUIRE_MUST_USE quire_result qi_device_invalidate(quire_device *device, qi_calls *calls,
                                                 const qi_device_page *page, uint64_t offset,
                                                 uint64_t size);
/* Like the calls above, for a list of ranges. Makes one call for each if the backend takes no
   lists. */
QUIRE_MUST_USE quire_result qi_device_flush_many(quire_device *device, qi_calls *calls,
                                                 const quire_page_range *ranges, uint32_t count);
QUIRE_MUST_USE quire_result qi_device_invalidate_many(quire_device *device, qi_calls *calls,
                                                      const quire_page_range *ranges,
                                                      uint32_t count);

/* Fail with UNSUPPORTED if the backend has no such function. */
QUIRE_MUST_USE quire_result qi_device_copy_to_page(quire_device *device, qi_calls *calls,
                                                   const qi_device_page *page, uint64_t offset,
                                                   const void *data, uint64_t size);
QUIRE_MUST_USE quire_result qi_device_copy_from_page(quire_device *device, qi_calls *calls,
                                                     const qi_device_page *page, uint64_t offset,
                                                     void *data, uint64_t size);
/* The backend must offer QUIRE_BACKEND_FILL. */
QUIRE_MUST_USE quire_result qi_device_fill_page(quire_device *device, qi_calls *calls,
                                                const qi_device_page *page, uint64_t offset,
                                                uint64_t size, uint8_t value);

/* ---- copies ------------------------------------------------------------------------------- */

/*
 * The backend must offer the function. For copy_pages and copy_peer, `to` of the job is a page of
 * the device; for a stream at least one end is.
 */
QUIRE_MUST_USE quire_result qi_device_copy_pages(quire_device *device, qi_calls *calls,
                                                 const quire_copy_job *job);
QUIRE_MUST_USE quire_result qi_device_copy_peer(quire_device *device, qi_calls *calls,
                                                const quire_copy_job *job);
QUIRE_MUST_USE quire_result qi_device_stream_copy(quire_device *device, qi_calls *calls,
                                                  uint64_t stream, const quire_copy_job *job);

/* Lists of copies between pages of the device and host memory. The backend must offer the
   function. */
QUIRE_MUST_USE quire_result qi_device_write_many(quire_device *device, qi_calls *calls,
                                                 const quire_page_copy *copies, uint64_t count);
QUIRE_MUST_USE quire_result qi_device_read_many(quire_device *device, qi_calls *calls,
                                                const quire_page_copy *copies, uint64_t count);
QUIRE_MUST_USE quire_result qi_device_stream_write_many(quire_device *device, qi_calls *calls,
                                                        uint64_t stream,
                                                        const quire_page_copy *copies,
                                                        uint64_t count);

/* Bytes of a page that are set to one value. */
typedef struct qi_stream_fill {
    uint64_t offset, size;
    uint8_t value;
} qi_stream_fill;

QUIRE_MUST_USE quire_result qi_device_stream_fill(quire_device *device, qi_calls *calls,
                                                  uint64_t stream, const qi_device_page *page,
                                                  const qi_stream_fill *fill);

/* ---- objects ------------------------------------------------------------------------------ */

/*
 * The device address of a page, or of a buffer in it. `buffer` is the native buffer that the
 * backend created from quire_buffer_options; 0 means the page. Returns 0 if the backend has no
 * device addresses.
 */
uint64_t qi_device_address(quire_device *device, qi_calls *calls, const qi_device_page *page,
                           uint64_t buffer);

QUIRE_MUST_USE quire_result qi_device_image_requirements(quire_device *device, qi_calls *calls,
                                                         const quire_image_options *options,
                                                         quire_requirements *requirements);
/* The caller destroys *native, unless the request says that it is borrowed. */
QUIRE_MUST_USE quire_result qi_device_object_create(quire_device *device, qi_calls *calls,
                                                    const quire_object_request *request,
                                                    uint64_t *native,
                                                    quire_requirements *requirements);
QUIRE_MUST_USE quire_result qi_device_object_bind(quire_device *device, qi_calls *calls,
                                                  quire_object object, uint64_t native,
                                                  const qi_device_page *page, uint64_t offset);
void qi_device_object_destroy(quire_device *device, qi_calls *calls, quire_object object,
                              uint64_t native);

/* ---- streams ------------------------------------------------------------------------------ */

/* The functions of quire_backend of the same names, which the backend must offer. */
QUIRE_MUST_USE quire_result qi_device_stream_create(quire_device *device, const void *description,
                                                    uint64_t *native);
void qi_device_stream_destroy(quire_device *device, uint64_t native);
QUIRE_MUST_USE quire_result qi_device_stream_mark(quire_device *device, uint64_t native,
                                                  uint64_t *value);
QUIRE_MUST_USE quire_result qi_device_stream_passed(quire_device *device, uint64_t native,
                                                    uint64_t *value);
QUIRE_MUST_USE quire_result qi_device_stream_await(quire_device *device, uint64_t native,
                                                   uint64_t value, uint64_t nanoseconds,
                                                   bool *has_passed);
QUIRE_MUST_USE quire_result qi_device_stream_order(quire_device *device, uint64_t later,
                                                   uint64_t earlier, uint64_t value);

/*
 * Returns what a backend answered. Fails with BACKEND_FAILURE if a backend may not answer that,
 * and adds a sentence if the backend failed without one. `errors_before` is qi_error_count from
 * before the call.
 */
quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before);

#endif
