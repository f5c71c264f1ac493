/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/device.h - devices: one backend opened on one physical device, with its memory kinds.
 *
 * The header of a backend has the function that opens a device (quire_host_open in quire/host.h).
 *
 * Thread-safety: any thread may call any function on a live device, except quire_device_destroy,
 * which requires that no other call on the device runs or follows.
 */
#ifndef QUIRE_DEVICE_H
#define QUIRE_DEVICE_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_device quire_device;
typedef struct quire_stream quire_stream; /* quire/stream.h */

/* Properties of a memory kind. The values are Vulkan's VkMemoryPropertyFlagBits. */
typedef uint32_t quire_memory_flags;
#define QUIRE_DEVICE_LOCAL UINT32_C(0x01)
#define QUIRE_HOST_VISIBLE UINT32_C(0x02)
#define QUIRE_HOST_COHERENT UINT32_C(0x04)
#define QUIRE_HOST_CACHED UINT32_C(0x08)
#define QUIRE_LAZILY_ALLOCATED UINT32_C(0x10)
#define QUIRE_PROTECTED UINT32_C(0x20)
#define QUIRE_DEVICE_COHERENT UINT32_C(0x40)
#define QUIRE_DEVICE_UNCACHED UINT32_C(0x80)
/*
 * quire's own flag; the Vulkan backend masks Vulkan's bit of this value. Only native objects use
 * the memory. It has no bytes that can be mapped, written or read.
 */
#define QUIRE_OBJECTS_ONLY UINT32_C(0x100)

/*
 * Returns the name of one flag as Vulkan spells it, without prefix: "DEVICE_LOCAL". Returns NULL
 * for a value that is not exactly one known flag. The text is static. Thread-safe.
 */
QUIRE_API const char *quire_memory_flag_name(quire_memory_flags flag);

/* Properties of a heap. The values are Vulkan's VkMemoryHeapFlagBits. */
#define QUIRE_HEAP_DEVICE_LOCAL UINT32_C(0x01)
#define QUIRE_HEAP_MULTI_INSTANCE UINT32_C(0x02)

#define QUIRE_MAX_HEAPS 16
#define QUIRE_MAX_KINDS 32

typedef struct quire_heap {
    uint64_t size;  /* bytes */
    uint32_t flags; /* QUIRE_HEAP_ bits */
    uint32_t reserved;
} quire_heap;

/* A memory kind: a memory type of Vulkan; in other backends a location and a handle type. */
typedef struct quire_kind {
    quire_memory_flags flags;
    uint32_t heap; /* index into quire_device_info.heaps */
} quire_kind;

/* What a driver demands of elastic pages: bits of quire_limits.elastic_rules. With one of them
   elastic memories are UNSUPPORTED. */
typedef uint32_t quire_elastic_rules;
/* Memory that a page loses returns to the driver only when the page is destroyed. */
#define QUIRE_ELASTIC_KEEPS_MEMORY UINT32_C(1)
/* Memory comes and goes only while no work runs on the device. */
#define QUIRE_ELASTIC_NEEDS_IDLE UINT32_C(2)

/* Constraints of the backend on pages and placements, in bytes. 0 means no constraint. */
typedef struct quire_limits {
    uint64_t page_granularity;         /* page sizes are multiples of it; a power of two */
    uint64_t page_alignment;           /* alignment of the native address of every page; 0: each
                                          page is aligned as quire_page_request asks */
    uint64_t max_page;                 /* maximum size of one page; 0: no limit */
    uint64_t usual_page;               /* larger pages may fail: quire makes one only for a single
                                          allocation that needs it; 0: max_page alone limits */
    uint64_t max_buffer;               /* maximum size of one buffer; 0: no limit. A page is larger
                                          only for a single allocation that needs it */
    uint64_t max_pages;                /* maximum number of live pages of the device; 0: no limit */
    uint64_t buffer_image_granularity; /* linear and optimal resources share no block of it: see
                                          quire_space_options.buffer_image_granularity */
    uint64_t non_coherent_atom;        /* flush and invalidate work on multiples of it */
    uint64_t buffer_alignment;         /* minimum alignment of a buffer, a power of two */
    uint64_t image_row_alignment;      /* rows of linear images are multiples of it */
    uint64_t elastic_kinds;            /* bit i: pages of kind i can be elastic, as
                                          quire_memory_options.elastic needs */
    uint64_t elastic_granularity;      /* an elastic page gets and returns memory in multiples of
                                          it; a power of two. 0: page_granularity */
    uint64_t max_chunks;               /* parts of its memory that an elastic page gets and returns
                                          one by one, at most; quire makes them as large as that
                                          requires. 0: no limit */
    quire_elastic_rules elastic_rules; /* QUIRE_ELASTIC_...; 0: none */
    bool max_pages_is_advice;          /* more pages may exist: then the backend refuses, or not */
    bool elastic_unmapped;             /* elastic pages cannot be mapped: elastic memories of
                                          host-visible kinds count as not host-visible */
    uint64_t max_elastic_page;         /* maximum bytes of addresses of an elastic page; 0: no
                                          limit but max_page */
    const char *elastic_missing;       /* what kinds that are not in elastic_kinds lack, as a clause
                                          that lives as long as the device; NULL: unknown */
    uint64_t unused[2];
} quire_limits;

typedef struct quire_device_info {
    char name[256];
    const char *backend; /* "host", "vulkan", "cuda", ...; valid as long as the device */
    uint32_t heap_count;
    uint32_t kind_count;
    quire_heap heaps[QUIRE_MAX_HEAPS];
    quire_kind kinds[QUIRE_MAX_KINDS];
    quire_limits limits;
    bool exportable; /* pages can be exported to another API or process */
    /* The child of a fork can keep using the device (docs/threading.md, "Fork"). If false, every
       call on it returns NOT_PERMITTED in the child, except calls that destroy. */
    bool survives_fork;
    uint64_t unused[4];
} quire_device_info;

/*
 * How the host and the device will use memory, combined with |. The first row that applies is the
 * request from which quire_device_choose_kind finds the kind:
 *   flags set                 required       preferred                         avoided
 *   HOST_WRITE and HOST_READ  host-visible   cached, device-local, coherent    -
 *   HOST_READ                 host-visible   cached, coherent                  device-local
 *   UPLOAD                    host-visible   coherent                          device-local
 *   HOST_WRITE                host-visible   device-local, coherent            -
 *   DEVICE                    device-local   -                                 -
 * In words: memory that the host reads is cached wherever a host-visible kind is, even if that kind
 * is not coherent or not device-local. What the host only writes is not cached if there is a
 * choice, and is coherent. Memory of the device alone is not host-visible if there is a choice.
 * quire_write and quire_read flush and invalidate by themselves; through a mapped pointer a program
 * calls quire_flush and quire_invalidate, which do nothing on coherent kinds. The flags of the kind
 * that a memory got are in quire_memory_info.
 */
typedef uint64_t quire_intent;
#define QUIRE_INTENT_DEVICE UINT64_C(0x01) /* the device uses it, as it does with every intent */
#define QUIRE_INTENT_HOST_READ UINT64_C(0x02)
#define QUIRE_INTENT_HOST_WRITE UINT64_C(0x04)
/* The host writes once, in order, and the device copies from it. Excludes HOST_READ. */
#define QUIRE_INTENT_UPLOAD UINT64_C(0x08)
/* Pages will be exported to another API or process. UNSUPPORTED if the backend cannot export, and
   where the pages are of a default memory. */
#define QUIRE_INTENT_EXPORT UINT64_C(0x10)

/*
 * Which memory kinds may be chosen, and which are better. Either an intent, or flags that a kind
 * must have, should have and should not have. Without both, {0}: a mask of one bit selects that
 * kind; otherwise the function that takes the request says what it chooses.
 */
typedef struct quire_kind_request {
    quire_intent intent;
    quire_memory_flags required;
    quire_memory_flags preferred;
    quire_memory_flags avoided; /* none that is required or preferred */
    uint32_t mask;              /* bit i allows kind i, also with an intent; 0: all kinds */
    bool exact; /* the kind's flags must equal `required`; preferred and avoided must be 0 */
    uint64_t unused[4]; /* must be zero */
} quire_kind_request;

/* Writes the description of a device. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_info(const quire_device *device,
                                                            quire_device_info *info);

/*
 * Finds the kind that fits best. A kind is a candidate if it has all required flags; one that is
 * lazily allocated, protected, objects only, or AMD's device-coherent or device-uncached only if
 * the request names that flag as required or preferred, or is exact. Two candidates are compared
 * flag by flag. The first flag that only one of them has decides, in this order:
 *   1. the preferred and avoided flags: objects only, protected, lazily allocated, device-coherent,
 *      device-uncached, host-cached, device-local, host-visible, host-coherent. The candidate with
 *      a preferred flag wins, and the one without an avoided flag.
 *   2. the flags that the request does not name: host-visible, device-local, host-cached,
 *      host-coherent. The candidate without the flag wins.
 *   3. Of candidates with equal flags the lowest index wins. Vulkan lists these by the speed of
 *      their heaps, the fastest first.
 * The order of kinds with different flags, and the sizes of heaps, do not matter.
 * Without an intent and flags device-local kinds are preferred.
 * Errors: INVALID_ARGUMENT (also for an intent with flags, and for UPLOAD with HOST_READ),
 * UNSUPPORTED (no kind fits, or an intent to export where the backend cannot; *kind is 0).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_choose_kind(const quire_device *device,
                                                               const quire_kind_request *request,
                                                               uint32_t *kind);

/* ---- budgets -------------------------------------------------------------------------------- */

/* The current budget of a heap, in bytes. */
typedef struct quire_budget_info {
    uint64_t size;      /* of the heap */
    uint64_t limit;     /* set by quire_device_set_heap_limit; 0: none */
    uint64_t budget;    /* what the backend advises to use of the heap, for quire's pages and for
                           everything else it counts in `usage`; the heap's size if the backend
                           reports none */
    uint64_t reserved;  /* by pages of this device, also those being created or destroyed */
    uint64_t usage;     /* in use as the backend reports it; `reserved` if it reports nothing */
    uint64_t available; /* for further pages: the smaller remainder of `limit` and `budget` */
    uint64_t unused[4];
} quire_budget_info;

/*
 * Queries the backend and writes what is left of a heap. Others may take it before the caller does.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such heap), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_budget(const quire_device *device,
                                                              uint32_t heap,
                                                              quire_budget_info *info);

/*
 * The first limits the bytes of the pages of one heap (0: no limit). The second limits the number
 * of live pages of the device (0: only the backend's own limit). Both may be called at any time.
 *
 * A page that would exceed a byte limit fails with OVER_BUDGET; one that would exceed a page count
 * fails with TOO_MANY_PAGES. The backend is not called for it. This holds for every memory and
 * thread. quire tries smaller pages first. A limit below the current use releases nothing: quire
 * creates no page until enough pages are released, and a memory that needs a page first releases
 * its empty ones. Running calls may still use the previous limit.
 *
 * The budget that the backend reports is not a limit: it is advice, unless a memory or a request
 * has the option within_budget (quire/memory.h). To enforce a number of bytes, set it as the limit.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such heap).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_set_heap_limit(quire_device *device,
                                                                  uint32_t heap, uint64_t bytes);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_set_page_limit(quire_device *device,
                                                                  uint64_t pages);

/*
 * Destroys a device. Errors: INVALID_ARGUMENT, BUSY. BUSY means that memories or streams live on
 * it, or that live allocations of another device were used on a capture stream of it that is
 * already destroyed. The sentence names what is in the way, and the log names live memories.
 * Nothing changes, and *device stays valid.
 */
QUIRE_API quire_result quire_device_destroy(quire_device **device);

#ifdef __cplusplus
}
#endif

#endif
