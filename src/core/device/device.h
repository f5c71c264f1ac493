/*
 * device.h - a device: the one door to the functions of its backend.
 *
 * Nothing else calls the table. Each door function asserts that no lock is held, counts the call
 * and its time for the device and for the memory on whose behalf it is made, and checks what the
 * backend promised, so that backends stay simple.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_DEVICE_H
#define QUIRE_SRC_CORE_DEVICE_DEVICE_H

#include "quire/backend.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"
#include "src/base/lock.h"
#include "src/base/log.h"
#include "src/core/device/budget.h"

/* Calls into the backend and the time spent there. */
typedef struct qi_calls {
    qi_atomic_u64 count;
    qi_atomic_u64 nanoseconds;
} qi_calls;

struct quire_device {
    quire_backend table; /* copied; functions the backend did not know are NULL */
    const quire_backend *original;
    void *state;
    quire_device_info info;
    quire_log log;
    qi_host host;
    qi_calls calls;
    qi_account pages; /* made or being made, of all memories */
    qi_heap heaps[QUIRE_MAX_HEAPS];
    qi_atomic_u64 reserved_bytes;
    qi_atomic_u64 peak_reserved_bytes;
    qi_lock lock;           /* the lists of memories and streams */
    quire_memory *memories; /* linked by their next_of_device */
    uint32_t memory_count;
    quire_stream *streams; /* linked by their next_of_device */
    /* of these, and of held ones that are gone while uses of allocations name them */
    qi_atomic_u64 stream_records;
    /* nanoseconds that a memory that ends waits for streams of which no point passes meanwhile;
       tests shorten it */
    uint64_t stall_timeout;
    /* see fork.h; under the lock there, or set in the child of a fork before anything runs in it */
    quire_device *next_of_process, *previous_of_process;
    bool is_copy;     /* made before the fork of this process */
    bool is_disabled; /* likewise, and it does not survive: nothing but its end is left */
};

static inline bool qi_device_offers(const quire_device *device, quire_backend_features feature)
{
    return (device->table.features & feature) != 0;
}

/* kind.c: memory flags in words, "DEVICE_LOCAL|HOST_VISIBLE" or "no flags"; as qi_bytes is used. */
/* All flags of memory kinds that there are. */
#define QI_KNOWN_FLAGS ((quire_memory_flags)0x1ff)

typedef struct qi_flags_text {
    char text[160];
} qi_flags_text;

qi_flags_text qi_flags(quire_memory_flags flags);

/* kind.c: what an intent asks of a kind; refuses contradictions and what the backend cannot do. */
QUIRE_MUST_USE quire_result qi_kind_request_for(const quire_device *device,
                                                const quire_intent *intent,
                                                quire_kind_request *request);

void qi_device_add_memory(quire_device *device, quire_memory *memory);
void qi_device_remove_memory(quire_device *device, quire_memory *memory);

/* A page, mapped when its kind is host-visible. */
typedef struct qi_device_page {
    quire_native_page native;
    uint64_t size; /* bytes of it; less than native.size where it may grow */
    uint32_t kind;
    void *host; /* NULL where not host-visible */
} qi_device_page;

/*
 * Makes and maps a page. Takes it from the device's pages, its memory's account and its heap before
 * the backend is asked, so that threads cannot overshoot together, and gives all that back once it
 * is destroyed. A page that comes out larger than it was asked to be takes the rest then, and where
 * that is too much it is destroyed again. Fails with TOO_MANY_PAGES, OVER_BUDGET and what the
 * backend answers.
 */
QUIRE_MUST_USE quire_result qi_device_page_create(quire_device *device, qi_calls *calls,
                                                  qi_account *account,
                                                  const quire_page_request *request,
                                                  qi_device_page *page);
void qi_device_page_destroy(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page);

/*
 * Makes a page that may grow larger, likewise, or smaller, which cannot fail. Its size is for the
 * caller to set.
 */
QUIRE_MUST_USE quire_result qi_device_page_grow(quire_device *device, qi_calls *calls,
                                                qi_account *account, const char *name,
                                                const qi_device_page *page, uint64_t to);
void qi_device_page_shrink(quire_device *device, qi_calls *calls, qi_account *account,
                           const qi_device_page *page, uint64_t from, uint64_t to);

/* What the backend tells of a heap, which offers it. Counted for the device alone. */
QUIRE_MUST_USE quire_result qi_device_heap_budget(quire_device *device, uint32_t heap,
                                                  quire_heap_budget *budget);

QUIRE_MUST_USE quire_result qi_device_flush(quire_device *device, qi_calls *calls,
                                            const qi_device_page *page, uint64_t offset,
                                            uint64_t size);
QUIRE_MUST_USE quire_result qi_device_invalidate(quire_device *device, qi_calls *calls,
                                                 const qi_device_page *page, uint64_t offset,
                                                 uint64_t size);
/* The same for a list, one by one where the backend takes none. */
QUIRE_MUST_USE quire_result qi_device_flush_many(quire_device *device, qi_calls *calls,
                                                 const quire_page_range *ranges, uint32_t count);
QUIRE_MUST_USE quire_result qi_device_invalidate_many(quire_device *device, qi_calls *calls,
                                                      const quire_page_range *ranges,
                                                      uint32_t count);
/* UNSUPPORTED for kinds that are for objects only; the copies and fills below ask it too. */
QUIRE_MUST_USE quire_result qi_device_check_bytes(const quire_device *device, uint32_t kind);

QUIRE_MUST_USE quire_result qi_device_copy_to_page(quire_device *device, qi_calls *calls,
                                                   const qi_device_page *page, uint64_t offset,
                                                   const void *data, uint64_t size);
QUIRE_MUST_USE quire_result qi_device_copy_from_page(quire_device *device, qi_calls *calls,
                                                     const qi_device_page *page, uint64_t offset,
                                                     void *data, uint64_t size);
/* Of a backend that offers QUIRE_BACKEND_FILL. */
QUIRE_MUST_USE quire_result qi_device_fill_page(quire_device *device, qi_calls *calls,
                                                const qi_device_page *page, uint64_t offset,
                                                uint64_t size, uint8_t value);
/* door_copy.c: of a backend that offers the function; `to` is a page of the device, at least one of
   both of the device of a stream. */
QUIRE_MUST_USE quire_result qi_device_copy_pages(quire_device *device, qi_calls *calls,
                                                 const quire_copy_job *job);
QUIRE_MUST_USE quire_result qi_device_copy_peer(quire_device *device, qi_calls *calls,
                                                const quire_copy_job *job);
QUIRE_MUST_USE quire_result qi_device_stream_copy(quire_device *device, qi_calls *calls,
                                                  uint64_t stream, const quire_copy_job *job);

/* Bytes of a page that become one value. */
typedef struct qi_stream_fill {
    uint64_t offset, size;
    uint8_t value;
} qi_stream_fill;

QUIRE_MUST_USE quire_result qi_device_stream_fill(quire_device *device, qi_calls *calls,
                                                  uint64_t stream, const qi_device_page *page,
                                                  const qi_stream_fill *fill);

/* The device address of a page, or of a buffer in it that the backend made of
   quire_buffer_options (0: of the page). 0: the backend tells none. */
uint64_t qi_device_address(quire_device *device, qi_calls *calls, const qi_device_page *page,
                           uint64_t buffer);

QUIRE_MUST_USE quire_result qi_device_image_requirements(quire_device *device, qi_calls *calls,
                                                         const quire_image_options *options,
                                                         quire_requirements *requirements);
QUIRE_MUST_USE quire_result qi_device_object_create(quire_device *device, qi_calls *calls,
                                                    const quire_object_request *request,
                                                    uint64_t *native,
                                                    quire_requirements *requirements);
QUIRE_MUST_USE quire_result qi_device_object_bind(quire_device *device, qi_calls *calls,
                                                  quire_object object, uint64_t native,
                                                  const qi_device_page *page, uint64_t offset);
void qi_device_object_destroy(quire_device *device, qi_calls *calls, quire_object object,
                              uint64_t native);

/* cut.c: NOT_PERMITTED, of a device that is cut. */
quire_result qi_refuse_disabled(void);

/* What a backend answered, turned into BACKEND_FAILURE where it may not be, with a sentence. */
quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before);

#endif
