/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/allocation.h - allocations: ranges of a memory's pages, access by the host, and views.
 *
 * Thread-safety: any thread may call any function on a live memory. A call that works on an
 * allocation counts as a use of it while it runs: freeing the allocation at that time returns BUSY.
 *
 * Errors of handles, which every function with an allocation can return: INVALID_ARGUMENT (the
 * handle is {0}), STALE_HANDLE (it was freed), FOREIGN_HANDLE (it belongs to another memory),
 * WRONG_STATE (it is reserved and not committed), BUSY (262,143 other calls or objects use it).
 */
#ifndef QUIRE_ALLOCATION_H
#define QUIRE_ALLOCATION_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A handle of an allocation: a plain value that may be copied freely. {0} is no allocation. Using a
 * handle after its free is STALE_HANDLE, in another memory FOREIGN_HANDLE, in release builds too.
 */
typedef struct quire_allocation {
    uint64_t id;
} quire_allocation;

/* Maximum length of the name of an allocation or memory, in bytes without the terminating 0. */
#define QUIRE_MAX_NAME 255

typedef struct quire_allocation_info quire_allocation_info;

typedef struct quire_allocation_options {
    uint64_t size;      /* bytes, above 0 */
    uint64_t alignment; /* of the native address, a power of two; 0: 1 */
    const char *name;   /* copied; NULL: none */
    bool host_write;    /* The host will write: NOT_HOST_VISIBLE if the memory cannot be mapped. */
    bool host_read;     /* The host will read: likewise. */
    bool zero;          /* fill the range with zeros */
    bool dedicated;     /* give it a dedicated page */
    /*
     * Mapped from this call until it is freed: quire_allocation_info.host has the pointer, and the
     * free needs no unmap. NOT_HOST_VISIBLE if the memory cannot be mapped. quire_map and
     * quire_unmap work as for any allocation, and their maps must end before the free. A free in
     * the order of a stream ends the validity of the pointer at once, not at its point.
     */
    bool mapped;
    /*
     * Take only a range of a page that exists, or with `dedicated` an empty dedicated page that the
     * memory keeps. quire makes and grows no page for the request, and does not wait for a page
     * that another thread makes. Every free range of the memory is searched, also those of deferred
     * frees whose points have passed. OUT_OF_DEVICE_MEMORY if none fits; on_out_of_memory is not
     * called then.
     */
    bool existing_pages;
    /*
     * Take no page and no growth that exceeds the budget of the backend, as
     * quire_memory_options.within_budget says for all allocations of a memory. OVER_BUDGET if only
     * such a page would serve the request.
     */
    bool within_budget;
    /*
     * Take the range from the upper end of the page, which then is two stacks that grow towards
     * each other (quire_range_options.upper). INVALID_ARGUMENT if the fit of the memory is not
     * linear, with `dedicated`, and with a stream. Without effect on a request that is too large
     * for the page and gets a dedicated one.
     */
    bool upper;
    uint64_t user_data; /* any number of the caller; see quire_allocation_info.user_data */
    /*
     * The first work on the allocation is submitted to this stream. The allocation may then reuse
     * memory that was freed in stream order and whose point has not passed (quire/stream.h). The
     * stream may be of any device. NULL: the memory has no work left when the call returns.
     */
    quire_stream *stream;
    /*
     * On success the call writes what quire_allocation_get_info would; on failure it writes zeros.
     * For quire_allocate_batch it is an array of `count`. NULL: nothing is written.
     */
    quire_allocation_info *info;
    /*
     * The offset in the page is a multiple of it: any number up to the largest alignment of the
     * memory (quire_fit_options.max_alignment). 0: no requirement. For ranges of the one buffer
     * that covers a page (quire_vulkan_page_buffer) whose elements have 3 or 6 components, for
     * example. The range holds up to as many bytes more. INVALID_ARGUMENT if the least common
     * multiple with `alignment` and quire_limits.non_coherent_atom exceeds that alignment;
     * UNSUPPORTED if `alignment` exceeds quire_limits.page_alignment, where that is not 0.
     */
    uint64_t offset_alignment;
    /*
     * Addresses without memory, which quire_back_range (quire/elastic.h) gives to parts of them.
     * INVALID_ARGUMENT if the memory is not elastic, and with zero, dedicated, mapped,
     * existing_pages, within_budget, offset_alignment or a stream.
     */
    bool lazy;
    /*
     * quire_compact_step (quire/compact.h) may move the allocation to another page, which changes
     * its page, offset, address and pointer. Without effect on an allocation that is dedicated or
     * lazy, is made with a stream, or has an offset_alignment.
     */
    bool movable;
    uint64_t unused[3]; /* must be zero */
} quire_allocation_options;

/* ---- allocating and freeing ----------------------------------------------------------------- */

/*
 * Allocates a raw range that is ready for use. Creates a page if no range fits. The caller frees
 * the allocation with quire_free.
 * Errors: INVALID_ARGUMENT, NOT_HOST_VISIBLE, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY,
 * OVER_BUDGET, TOO_MANY_PAGES, TOO_MANY_ALLOCATIONS, OUT_OF_RANGE (the pages of the memory exceed
 * what quire_fit_options.granule can address), WRONG_STATE (the memory is being destroyed), and
 * errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate(quire_memory *memory,
                                                     const quire_allocation_options *options,
                                                     quire_allocation *allocation);

/*
 * Frees an allocation and destroys its native object. No work of a device uses the allocation any
 * more; quire/stream.h frees what work still uses. If several threads free the same allocation,
 * exactly one succeeds. Never calls the `allocate` callback of quire_host_memory, never waits while
 * a page is created.
 * Errors: those of handles, BUSY (it is mapped, another call uses it now, or an object of the
 * backend lies in it). Checked builds can also return CORRUPTED, as quire_abort can: something
 * wrote beside the allocation, which is freed anyway (docs/checked.md).
 */
QUIRE_API quire_result quire_free(quire_memory *memory, quire_allocation allocation);

/* ---- information ---------------------------------------------------------------------------- */

typedef enum quire_object {
    QUIRE_OBJECT_NONE = 0, /* a raw range */
    QUIRE_OBJECT_BUFFER,
    QUIRE_OBJECT_IMAGE
} quire_object;

/* The page of an allocation that is evicted (quire/evict.h). */
#define QUIRE_NO_PAGE UINT32_MAX

struct quire_allocation_info {
    uint32_t page;         /* number of the page; QUIRE_NO_PAGE: it is evicted */
    bool dedicated;        /* the page is dedicated */
    bool committed;        /* false between quire_reserve and quire_commit */
    bool asleep;           /* quire_memory_sleep (quire/elastic.h) or quire_memory_evict
                              (quire/evict.h) took its memory */
    uint64_t offset;       /* bytes from the start of the page to the first usable byte */
    uint64_t left_padding; /* bytes before `offset` that belong to the allocation */
    uint64_t size;         /* bytes held from `offset` on */
    uint64_t requested;    /* bytes that the request asked for */
    /*
     * Native address of the byte at `offset`; 0 if it has none, or if the driver had no memory to
     * determine it. With the Vulkan backend it is the device address. For a buffer that
     * quire_buffer_create made, that is the address of its VkBuffer. For everything else it is the
     * address in the page's own buffer, which quire creates when the first allocation of the page
     * is queried (see quire_vulkan_page_buffer). It is 0 without the feature bufferDeviceAddress,
     * if quire_vulkan_settings.page_usage leaves device addresses out, and in a page that cannot
     * hold such a buffer or is dedicated to an image or to a buffer of the caller.
     */
    uint64_t address;
    uint64_t user_data;
    uint32_t map_count; /* number of maps not yet unmapped */
    quire_object object;
    uint64_t native; /* the bound native object (VkBuffer, ...); 0: none */
    /* Host pointer to the byte at `offset`, valid until the allocation is freed. NULL if it was not
       made with `mapped`. */
    void *host;
    uint64_t backed; /* bytes of `size` that have memory: fewer in a lazy allocation, 0 asleep */
    /* The part of the page whose native memory holds the allocation, from the start of the page:
       whole chunks of an elastic page, otherwise the page. What a library registers or exports must
       cover it. */
    uint64_t extent_offset;
    uint64_t extent_size;
    uint64_t unused[1];
};

/* Writes where an allocation, live or reserved, lies. Errors: those of handles but WRONG_STATE. */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_info(const quire_memory *memory,
                                                                quire_allocation allocation,
                                                                quire_allocation_info *info);

/*
 * get_name copies the name into a buffer of `size` bytes, shortened to fit and terminated with 0;
 * "" if there is no name. set_name copies a new name; NULL removes it. It does not change the debug
 * name of a native object, which is that of the creation. set_user_data replaces
 * quire_allocation_info.user_data.
 * Errors: those of handles. set_name also INVALID_ARGUMENT (longer than QUIRE_MAX_NAME),
 * OVER_BUDGET (a limit of the new name would be exceeded: quire_memory_set_name_limit) and
 * OUT_OF_HOST_MEMORY. set_user_data also OUT_OF_HOST_MEMORY, only for a buffer or image whose user
 * data is 0: it stays 0.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_name(const quire_memory *memory,
                                                                quire_allocation allocation,
                                                                char *name, size_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_set_name(quire_memory *memory,
                                                                quire_allocation allocation,
                                                                const char *name);
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_set_user_data(quire_memory *memory,
                                                                     quire_allocation allocation,
                                                                     uint64_t user_data);

/* ---- host access ---------------------------------------------------------------------------- */

/*
 * Maps an allocation, or `size` bytes of it from `offset` on (size 0: to the end), and writes a
 * host pointer to its first byte. The pointer is valid until the matching quire_unmap. An
 * allocation with such a map cannot be freed; the option `mapped` gives a pointer that ends with
 * the free. An allocation can be mapped 262,143 times at once, and any number of allocations of a
 * page. quire maps host-visible pages when it creates them, so that this call only computes the
 * pointer; in a memory with map_on_demand the first map of a page calls the backend. The caller
 * ensures that the device does not use the range at the same time.
 * Errors: those of handles, NOT_HOST_VISIBLE, OUT_OF_RANGE (also for too many maps), and with
 * map_on_demand errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_map(quire_memory *memory, quire_allocation allocation,
                                                void **pointer);
QUIRE_API QUIRE_MUST_USE quire_result quire_map_range(quire_memory *memory,
                                                      quire_allocation allocation, uint64_t offset,
                                                      uint64_t size, void **pointer);

/* Ends one map of quire_map. Each map needs one unmap. Errors: those of handles, NOT_MAPPED. */
QUIRE_API quire_result quire_unmap(quire_memory *memory, quire_allocation allocation);

/*
 * Flush makes writes of the host visible to the device. Invalidate makes writes of the device
 * visible to the host. Both do nothing for kinds that are host-coherent. A size of 0 means to the
 * end. quire rounds the range outwards to the device's atom, which never leaves the allocation.
 * Errors: those of handles, NOT_HOST_VISIBLE, OUT_OF_RANGE, and errors of the backend.
 */
QUIRE_API quire_result quire_flush(quire_memory *memory, quire_allocation allocation,
                                   uint64_t offset, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_invalidate(quire_memory *memory,
                                                       quire_allocation allocation, uint64_t offset,
                                                       uint64_t size);

/*
 * Copies bytes from host memory to an allocation (write) or back (read), of any memory kind. The
 * copy is complete on return. A size of 0 copies nothing.
 *
 * The cost depends on the kind, which differs by device. A host-visible kind costs a memcpy, with a
 * flush or invalidation if it is not coherent. Otherwise the backend copies. A Vulkan device then
 * makes a submission and waits for it, whatever the size, and one submission for each further half
 * of its staging ring (quire_vulkan_settings.staging_size); one thread at a time uses the ring. For
 * many small writes or reads quire_write_batch and quire_read_batch of quire/transfer.h cost less.
 * A copy or a batch on a stream does not wait.
 *
 * Errors: those of handles, INVALID_ARGUMENT (data is NULL), OUT_OF_RANGE, UNSUPPORTED (the backend
 * has no copy), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_write(quire_memory *memory, quire_allocation allocation,
                                                  uint64_t offset, const void *data, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_read(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, void *data, uint64_t size);

/* ---- views ---------------------------------------------------------------------------------- */

/*
 * A part of an allocation, checked against it at creation. A plain value that owns nothing: it
 * needs no destroy call.
 */
typedef struct quire_view {
    quire_allocation allocation;
    uint64_t offset; /* bytes from the start of the allocation */
    uint64_t size;   /* bytes, above 0 */
} quire_view;

/*
 * Create makes a view of an allocation, narrow a view of a part of another view. `offset` counts
 * from the start of the parent. A size of 0 means to the end of the parent. Errors: OUT_OF_RANGE
 * (also if the part would be empty); of quire_view_create also those of handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_view_create(quire_memory *memory,
                                                        quire_allocation allocation,
                                                        uint64_t offset, uint64_t size,
                                                        quire_view *view);
QUIRE_API QUIRE_MUST_USE quire_result quire_view_narrow(quire_view parent, uint64_t offset,
                                                        uint64_t size, quire_view *view);

/*
 * Flushes or invalidates `count` parts of allocations of one memory. A view of size 0 means to the
 * end of its allocation. All views are checked before the first is flushed. The backend gets them
 * in lists of up to 64; consecutive views that touch are merged. If the backend fails, some may be
 * done. A count of 0 succeeds. Errors as quire_flush; BUSY also counts the views of the list that
 * name the same allocation.
 */
QUIRE_API quire_result quire_flush_batch(quire_memory *memory, const quire_view *views,
                                         uint64_t count);
QUIRE_API QUIRE_MUST_USE quire_result quire_invalidate_batch(quire_memory *memory,
                                                             const quire_view *views,
                                                             uint64_t count);

/*
 * As quire_map_range, quire_write and quire_read, limited to a view. `offset` counts from the start
 * of the view. Errors as the function without a view; OUT_OF_RANGE also for a
 * view of size 0.
 */
QUIRE_MUST_USE static inline quire_result quire_view_map(quire_memory *memory, quire_view view,
                                                         void **pointer)
{
    if (view.size)
        return quire_map_range(memory, view.allocation, view.offset, view.size, pointer);
    if (pointer)
        *pointer = QUIRE_NULL;
    return quire_view_narrow(view, 0, 0, &view); /* OUT_OF_RANGE: it would be empty */
}

/* Whether the `size` bytes from `offset` on lie in a view. */
static inline bool quire_view_contains(quire_view view, uint64_t offset, uint64_t size)
{
    return offset <= view.size && size <= view.size - offset && offset <= UINT64_MAX - view.offset;
}

QUIRE_MUST_USE static inline quire_result quire_view_write(quire_memory *memory, quire_view view,
                                                           uint64_t offset, const void *data,
                                                           uint64_t size)
{
    return quire_view_contains(view, offset, size)
               ? quire_write(memory, view.allocation, view.offset + offset, data, size)
               : quire_view_narrow(view, offset, size, &view); /* OUT_OF_RANGE */
}

QUIRE_MUST_USE static inline quire_result quire_view_read(quire_memory *memory, quire_view view,
                                                          uint64_t offset, void *data,
                                                          uint64_t size)
{
    return quire_view_contains(view, offset, size)
               ? quire_read(memory, view.allocation, view.offset + offset, data, size)
               : quire_view_narrow(view, offset, size, &view); /* OUT_OF_RANGE */
}

/* ---- many at once, in one of several memories, in two steps --------------------------------- */

/*
 * Makes `count` equal allocations, all or none. If one of them is refused, all are refused, and the
 * array is zeroed. quire searches for 64 at a time and places them side by side where it can. A
 * count of 0 succeeds. With a stream quire places one after the other; if one is refused, the
 * ranges of the others return in the order of the stream. Errors as quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate_batch(quire_memory *memory,
                                                           const quire_allocation_options *options,
                                                           quire_allocation *allocations,
                                                           uint64_t count);

/*
 * Frees `count` allocations, all or none. Faster than one by one. If one of them cannot be freed,
 * or occurs twice, the error is that of quire_free and all stay live; other threads that use one of
 * them during the call may get STALE_HANDLE. CORRUPTED, in checked builds, means that all are freed
 * (see quire_free). A count of 0 succeeds.
 */
QUIRE_API quire_result quire_free_batch(quire_memory *memory, const quire_allocation *allocations,
                                        uint64_t count);

/*
 * Allocates from the first of `count` memories, at least one, that can serve the request. Use it to
 * prefer one memory kind and accept others; quire_device_choose_kind finds the next best kind if
 * its mask leaves out the kinds already used. The memories may be of different devices.
 *
 * quire first tries each memory in order without its on_out_of_memory callback, then each memory
 * that has one in the same order with it. A memory that refuses counts a failure each time. *chosen
 * gets the index of the memory that the allocation belongs to, and 0 on failure.
 * Errors as quire_allocate. INVALID_ARGUMENT from any memory ends the search; otherwise the error
 * is that of the first memory.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate_fallback(
    quire_memory *const *memories, uint32_t count, const quire_allocation_options *options,
    uint32_t *chosen, quire_allocation *allocation);

/*
 * The two-step form, for callers that bind objects of their own: reserve, query the placement, bind
 * the object, then commit. Abort frees a reserved range. Until the commit every call but
 * quire_allocation_get_info, quire_commit and quire_abort returns WRONG_STATE.
 * Errors of quire_reserve as quire_allocate; of the others those of handles, WRONG_STATE (it is
 * committed already); of quire_abort also those of quire_free.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_reserve(quire_memory *memory,
                                                    const quire_allocation_options *options,
                                                    quire_allocation *allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_commit(quire_memory *memory,
                                                   quire_allocation allocation);
QUIRE_API quire_result quire_abort(quire_memory *memory, quire_allocation allocation);

/* ---- finding by address --------------------------------------------------------------------- */

/*
 * Find the live allocation that contains an address, from its first byte (quire_allocation_info
 * .offset) to its last; left padding does not belong to it. The memory must have the option
 * quire_memory_options.find_by_address. The device form searches the memories of the device that
 * have it, one after the other, and writes the one found to *memory, which may be NULL.
 *
 * An address is a number: a device address as quire_allocation_info.address reports it, or a host
 * pointer into a mapped page. Allocations of mapped pages are found by host pointer, unless the
 * memory has map_on_demand. Allocations
 * are found by device address if the backend reports one for their page when quire creates it, or
 * for a buffer that quire_buffer_create made in the page; the addresses of a page are taken as
 * consecutive. Where a number is both a device address and a host pointer of different allocations,
 * or the program has adopted the same bytes several times, one of the allocations is found.
 * Allocations that are reserved and not committed, and those that were freed, also if they wait for
 * a point, are not found. During the call that allocates or frees an allocation, another thread may
 * find it; its handle is then STALE_HANDLE.
 *
 * The time does not depend on the number of allocations. The first byte of an allocation is found
 * without a lock, by its device address, or by its host pointer if the page has no device address.
 * Every other address takes a lock of the memory, and a binary search over its pages.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the memory, or every memory of the device, lacks the
 * option), OUT_OF_RANGE (no live allocation contains the address).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_find(const quire_memory *memory,
                                                        uint64_t address,
                                                        quire_allocation *allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_find(const quire_device *device,
                                                        uint64_t address, quire_memory **memory,
                                                        quire_allocation *allocation);

/*
 * Frees the allocation that starts at an address: as quire_free if `stream` is NULL, otherwise as
 * quire_free_on_stream (quire/stream.h). Addresses are those of quire_memory_find.
 * Errors: those of quire_memory_find and of the free. INVALID_ARGUMENT also for an address inside
 * an allocation; the sentence names the start. OUT_OF_RANGE also for 0 and for a second free.
 * STALE_HANDLE if another thread frees the allocation during the call.
 */
QUIRE_API quire_result quire_free_at_address(quire_memory *memory, uint64_t address,
                                             quire_stream *stream);

/* ---- a handle without its memory ------------------------------------------------------------ */

/*
 * Owner writes the memory of a live allocation of the device. Free frees one as quire_free. Both
 * take constant time and no lock. A call with a handle counts as a call on its memory, which no
 * other thread may destroy meanwhile.
 * Errors: INVALID_ARGUMENT (also for {0}), STALE_HANDLE (it was freed, or its memory was
 * destroyed), FOREIGN_HANDLE (a memory of another device made it), WRONG_STATE (two memories have
 * it, which can happen beyond 4,095 memories and spaces in the process); quire_device_free also
 * those of quire_free.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_owner(const quire_device *device,
                                                         quire_allocation allocation,
                                                         quire_memory **memory);
QUIRE_API quire_result quire_device_free(quire_device *device, quire_allocation allocation);

#ifdef __cplusplus
}
#endif

#endif
