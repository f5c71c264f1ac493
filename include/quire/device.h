/*
 * quire/device.h - devices: one backend opened on one physical device, and the memory kinds it has.
 *
 * A device is opened by its backend's header (quire_host_open in quire/host.h).
 */
#ifndef QUIRE_DEVICE_H
#define QUIRE_DEVICE_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_device quire_device;

/* Properties of a memory kind; the values are Vulkan's VkMemoryPropertyFlagBits. */
typedef uint32_t quire_memory_flags;
#define QUIRE_DEVICE_LOCAL UINT32_C(0x01)
#define QUIRE_HOST_VISIBLE UINT32_C(0x02)
#define QUIRE_HOST_COHERENT UINT32_C(0x04)
#define QUIRE_HOST_CACHED UINT32_C(0x08)
#define QUIRE_LAZILY_ALLOCATED UINT32_C(0x10)
#define QUIRE_PROTECTED UINT32_C(0x20)
#define QUIRE_DEVICE_COHERENT UINT32_C(0x40)
#define QUIRE_DEVICE_UNCACHED UINT32_C(0x80)
/* quire's own (Vulkan's bit of this value is masked): native objects use the memory and nobody
   else. It has no bytes that could be mapped, written or read. */
#define QUIRE_OBJECTS_ONLY UINT32_C(0x100)

/*
 * The word for one flag ("DEVICE_LOCAL"), as Vulkan spells it without prefix; NULL for a value that
 * is not exactly one known flag. Thread-safety: safe.
 */
QUIRE_API const char *quire_memory_flag_name(quire_memory_flags flag);

/* Properties of a heap; the values are Vulkan's VkMemoryHeapFlagBits. */
#define QUIRE_HEAP_DEVICE_LOCAL UINT32_C(0x01)
#define QUIRE_HEAP_MULTI_INSTANCE UINT32_C(0x02)

#define QUIRE_MAX_HEAPS 16
#define QUIRE_MAX_KINDS 32

typedef struct quire_heap {
    uint64_t size;  /* bytes */
    uint32_t flags; /* QUIRE_HEAP_ */
    uint32_t reserved;
} quire_heap;

/* A memory kind: Vulkan's memory type, elsewhere a location and handle type. */
typedef struct quire_kind {
    quire_memory_flags flags;
    uint32_t heap; /* index into the heaps */
} quire_kind;

/* What the backend asks of placements; 0 where it asks nothing. */
typedef struct quire_limits {
    uint64_t page_granularity;         /* page sizes are multiples of it, bytes, a power of two */
    uint64_t page_alignment;           /* of every page's native address; 0: as the core asks */
    uint64_t max_page;                 /* bytes of one page; 0: no limit */
    uint64_t max_pages;                /* pages of the device at one time; 0: no limit */
    uint64_t buffer_image_granularity; /* linear and optimal resources keep this apart */
    uint64_t non_coherent_atom;        /* flush and invalidate work on multiples of it */
    uint64_t buffer_alignment;         /* least alignment of a buffer, a power of two */
    uint64_t image_row_alignment;      /* rows of linear images are multiples of it */
    uint64_t elastic_kinds;            /* bit per kind whose pages can grow in place: see
                                          quire_memory_options.contiguous */
    uint64_t unused[3];
} quire_limits;

typedef struct quire_device_info {
    char name[256];
    const char *backend; /* "host", "vulkan", "cuda", ...; lives as long as the device */
    uint32_t heap_count;
    uint32_t kind_count;
    quire_heap heaps[QUIRE_MAX_HEAPS];
    quire_kind kinds[QUIRE_MAX_KINDS];
    quire_limits limits;
    bool exportable; /* pages can be handed to another API or process */
    /* the child of a fork can go on with the device: docs/threading.md, "Fork". Else every call on
       it is NOT_PERMITTED there, but those that destroy */
    bool survives_fork;
    uint64_t unused[4];
} quire_device_info;

/*
 * What the host and the device will do with memory; {0} is work of the device alone.
 *   host_write and host_read: host-visible, cached preferred, then device-local
 *   host_read:                host-visible, cached and coherent preferred, not device-local
 *   host_write:               device-local and host-visible preferred, coherent
 *   host_write with upload:   host-visible, coherent preferred, neither device-local nor cached
 *   none:                     device-local
 * (after Taichi's AllocParams; each backend's outcome is told by quire_memory_get_info)
 */
typedef struct quire_intent {
    bool host_read;
    bool host_write;
    bool upload;     /* written once, in order, to be copied from; needs host_write, excludes
                        host_read */
    bool exportable; /* the pages shall be handed to another API or process; UNSUPPORTED where the
                        backend cannot */
} quire_intent;

/* What a kind must, should and should not have. */
typedef struct quire_kind_request {
    quire_memory_flags required;
    quire_memory_flags preferred;
    quire_memory_flags avoided;
    bool exact;         /* the flags must equal `required`; preferred and avoided must be 0 */
    uint32_t kind_mask; /* bit i allows kind i; 0: all */
} quire_kind_request;

/* Describes a device. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_info(const quire_device *device,
                                                            quire_device_info *info);

/*
 * The kind that fits best: all required flags, then the most preferred and the fewest avoided
 * flags, then the fewest flags nobody asked for, then the lowest index. Lazily allocated, protected
 * and AMD's device-coherent kinds are taken only when a request names their flag (or with exact).
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no kind fits; *kind is 0).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_choose_kind(const quire_device *device,
                                                               const quire_kind_request *request,
                                                               uint32_t *kind);

/* The kind for an intent. Errors as above; INVALID_ARGUMENT for contradictions. */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_choose_kind_for(const quire_device *device,
                                                                   const quire_intent *intent,
                                                                   uint32_t *kind);

/* ---- budgets -------------------------------------------------------------------------------- */

/* A heap's budget as it is now. All are bytes. */
typedef struct quire_budget_info {
    uint64_t size;   /* of the heap */
    uint64_t limit;  /* set by quire_device_set_heap_limit; 0: none */
    uint64_t budget; /* what the backend lets the heap hold, of quire's pages and of whatever else
                           it counts; the heap's size where it says nothing */
    uint64_t used;   /* by pages of this device, those being made or given back among them */
    uint64_t usage;  /* in use as the backend sees it; `used` where it says nothing */
    uint64_t available; /* for further pages: what limit and budget leave, whichever is less */
    uint64_t unused[4];
} quire_budget_info;

/*
 * Asks the backend, and tells what is left of a heap. Others may take it before the caller does.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such heap), and what the backend answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_budget(quire_device *device, uint32_t heap,
                                                              quire_budget_info *info);

/*
 * Limits the bytes of the pages of one heap (0: no limit), or the pages of the device at one time
 * (0: the backend's own limit alone). May be called at any time. Pages that would exceed a limit,
 * or the backend's budget, are OVER_BUDGET, or TOO_MANY_PAGES, before the backend is asked for
 * them, whichever memory and thread wants them; smaller pages are tried first. A limit below what
 * is in use takes nothing away: no page is made until enough is given back, and a memory that needs
 * one gives its empty pages back first. Calls that are running may still use the limit there was.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such heap).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_set_heap_limit(quire_device *device,
                                                                  uint32_t heap, uint64_t bytes);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_set_page_limit(quire_device *device,
                                                                  uint64_t pages);

/*
 * Ends a device. BUSY while memories live on it: they are named in the error and in the log,
 * nothing changes, and *device stays valid.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_destroy(quire_device **device);

#ifdef __cplusplus
}
#endif

#endif
