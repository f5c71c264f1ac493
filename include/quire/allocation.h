/*
 * quire/allocation.h - allocations: ranges of a memory's pages; host access and views of them.
 */
#ifndef QUIRE_ALLOCATION_H
#define QUIRE_ALLOCATION_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Handles: plain values, copied freely, {0} is none. Using one after its free is STALE_HANDLE, with
 * another memory FOREIGN_HANDLE, in release builds too.
 */
typedef struct quire_allocation {
    uint64_t id;
} quire_allocation;

/* Longest name of an allocation or memory, without its end. */
#define QUIRE_MAX_NAME 255

typedef struct quire_allocation_options {
    uint64_t size;      /* bytes, above 0 */
    uint64_t alignment; /* of the native address, a power of two; 0: 1 */
    const char *name;   /* copied; NULL: none */
    uint64_t user_data;
    bool zero;          /* fill the range with zeros */
    bool dedicated;     /* a page of its own */
    bool host_read;     /* the host will read: NOT_HOST_VISIBLE where the memory cannot be mapped */
    bool host_write;    /* the host will write: likewise */
    uint64_t unused[4]; /* must be zero */
} quire_allocation_options;

typedef enum quire_object {
    QUIRE_OBJECT_NONE = 0, /* a raw range */
    QUIRE_OBJECT_BUFFER,
    QUIRE_OBJECT_IMAGE
} quire_object;

typedef struct quire_allocation_info {
    uint32_t page;
    bool dedicated;
    bool committed;        /* false between reserve and commit */
    uint64_t offset;       /* bytes from the start of the page to the first usable byte */
    uint64_t left_padding; /* bytes in front of offset that belong to the allocation */
    uint64_t size;         /* bytes held from offset on */
    uint64_t requested;    /* bytes asked for */
    /*
     * Native address of the byte at offset; 0: it has none, or the driver had no memory to find it
     * out. Vulkan's is the device address: of a buffer that quire_buffer_create made, that of its
     * VkBuffer; of all else, that of the place in the page's buffer, which is made for it when the
     * first allocation of the page is asked about (quire_vulkan_page_buffer). 0 there without
     * bufferDeviceAddress, where quire_vulkan_settings.page_usage leaves device addresses out, and
     * in a page that holds no such buffer or is tied to an image or to a buffer of the caller's.
     */
    uint64_t address;
    uint64_t user_data;
    uint32_t map_count;
    quire_object object;
    uint64_t native; /* the bound native object (VkBuffer, ...); 0 where there is none */
    uint64_t unused[4];
} quire_allocation_info;

/*
 * Allocates a raw range, ready for use. A page is made when no range fits.
 * Errors: INVALID_ARGUMENT, NOT_HOST_VISIBLE, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY,
 * OVER_BUDGET, TOO_MANY_PAGES, TOO_MANY_ALLOCATIONS, OUT_OF_RANGE (the pages of a memory reach no
 * further: see quire_space_options.granule), and what the backend answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate(quire_memory *memory,
                                                     const quire_allocation_options *options,
                                                     quire_allocation *allocation);

/*
 * Allocates from the first of `count` memories, above 0, that can: for whoever prefers one kind of
 * memory and can do with others (quire_device_choose_kind tells the next best when the kinds taken
 * are left out of its mask). The order is that of one memory: what each can do by itself comes
 * first, from the first memory to the last; then those with an on_out_of_memory callback are asked once
 * more, in the same order, with it. *chosen gets the index; the allocation is that memory's. A
 * memory that is asked and refuses counts it among its failures, each time. The memories may be of
 * different devices. Errors as quire_allocate: INVALID_ARGUMENT of any memory ends the search; else
 * it is the first memory's. With an error *chosen is 0.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate_fallback(
    quire_memory *const *memories, uint32_t count, const quire_allocation_options *options,
    uint32_t *chosen, quire_allocation *allocation);

/*
 * Makes `count` equal allocations, all or none: what one of them would be refused for refuses all,
 * and *allocations is zeroed. They are looked for 64 at a time and lie side by side where they can.
 * A count of 0 is a success. Errors as quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate_batch(quire_memory *memory,
                                                           const quire_allocation_options *options,
                                                           quire_allocation *allocations,
                                                           uint64_t count);

/*
 * Frees `count` allocations, all or none: when one of them cannot be freed, or is named twice, the
 * error is that of quire_free and all are as before; other threads that use one of them meanwhile
 * may see STALE_HANDLE. Faster than one by one. A count of 0 is a success. CORRUPTED, in checked
 * builds, is as there: all are freed.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_free_batch(quire_memory *memory,
                                                       const quire_allocation *allocations,
                                                       uint64_t count);

/*
 * The two-step form for a caller who binds an object of his own: reserve, ask where it lies, bind,
 * then commit; abort gives the range back. A reserved range can only be asked about, committed or
 * aborted; anything else is WRONG_STATE. Errors of reserve as quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_reserve(quire_memory *memory,
                                                    const quire_allocation_options *options,
                                                    quire_allocation *allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_commit(quire_memory *memory,
                                                   quire_allocation allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_abort(quire_memory *memory,
                                                  quire_allocation allocation);

/*
 * Frees an allocation with its object. Of several threads that free the same one exactly one
 * succeeds. Never calls the host memory callbacks' allocate, never waits for a page being made.
 * Errors: INVALID_ARGUMENT ({0}), STALE_HANDLE, FOREIGN_HANDLE, WRONG_STATE (reserved), BUSY
 * (mapped, in use by another call right now, or by an object of the backend that lies in it). In
 * checked builds also CORRUPTED, from quire_abort too: somebody wrote beside the allocation, and it
 * is freed all the same (docs/checked.md).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_free(quire_memory *memory, quire_allocation allocation);

/* Where an allocation lies. Errors: INVALID_ARGUMENT, STALE_HANDLE, FOREIGN_HANDLE. */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_info(quire_memory *memory,
                                                                quire_allocation allocation,
                                                                quire_allocation_info *info);

/*
 * Copies the name into `name`, a buffer of `size` bytes, cut and ended with 0; "" without one.
 * set_name replaces it (NULL: none); INVALID_ARGUMENT above QUIRE_MAX_NAME bytes, OVER_BUDGET
 * where a limit of the new name would be exceeded (quire_memory_set_name_limit). Both may fail with
 * OUT_OF_HOST_MEMORY, set_user_data only on a buffer or image whose user data was 0: it stays 0.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_name(quire_memory *memory,
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
 * A pointer to the allocation's bytes (or to those from `offset` on; size 0: to the end).
 * Host-visible pages are mapped when they are made, so that this is arithmetic and any number of
 * allocations of a page can be mapped at once. Each map wants one unmap; a mapped allocation cannot
 * be freed. The caller sees to it that the device does not use the range meanwhile. Errors:
 * NOT_HOST_VISIBLE, OUT_OF_RANGE, WRONG_STATE, and those of handles; *pointer is NULL then.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_map(quire_memory *memory, quire_allocation allocation,
                                                void **pointer);
QUIRE_API QUIRE_MUST_USE quire_result quire_map_range(quire_memory *memory,
                                                      quire_allocation allocation, uint64_t offset,
                                                      uint64_t size, void **pointer);

/* Takes one map back. Errors: NOT_MAPPED and those of handles. */
QUIRE_API QUIRE_MUST_USE quire_result quire_unmap(quire_memory *memory,
                                                  quire_allocation allocation);

/*
 * Makes host writes visible to the device (flush) or device writes to the host (invalidate), for
 * kinds that are not coherent; else nothing is to be done. The range (size 0: to the end) is
 * rounded outwards to the device's atom, within the allocation. Errors: NOT_HOST_VISIBLE,
 * OUT_OF_RANGE, and those of handles and backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_flush(quire_memory *memory, quire_allocation allocation,
                                                  uint64_t offset, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_invalidate(quire_memory *memory,
                                                       quire_allocation allocation, uint64_t offset,
                                                       uint64_t size);

/*
 * Copies between host memory and an allocation of any kind: through the mapping, with flush or
 * invalidate where needed, or by the backend where the kind is not host-visible. Complete on
 * return. A size of 0 copies nothing. Errors: INVALID_ARGUMENT (data NULL), OUT_OF_RANGE,
 * UNSUPPORTED (the backend has no copy), and those of handles and backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_write(quire_memory *memory, quire_allocation allocation,
                                                  uint64_t offset, const void *data, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_read(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, void *data, uint64_t size);

/* ---- views ---------------------------------------------------------------------------------- */

/* A part of an allocation, checked when made against its parent. A plain value; owns nothing. */
typedef struct quire_view {
    quire_allocation allocation;
    uint64_t offset;
    uint64_t size;
} quire_view;

/*
 * The part of an allocation from `offset` on (size 0: to the end), and a part of a view. Errors:
 * OUT_OF_RANGE (also when the rest is empty) and those of handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_view_create(quire_memory *memory,
                                                        quire_allocation allocation,
                                                        uint64_t offset, uint64_t size,
                                                        quire_view *view);
QUIRE_API QUIRE_MUST_USE quire_result quire_view_narrow(quire_view parent, uint64_t offset,
                                                        uint64_t size, quire_view *view);

/*
 * quire_flush and quire_invalidate for `count` parts of allocations of one memory, whose size may
 * be 0 (to the end). All are checked before the first is done; they go to the backend in lists of
 * up to 64, those that touch in the order given as one. Where the backend fails some may be done. A
 * count of 0 is a success. Errors: INVALID_ARGUMENT, those of quire_flush, and BUSY (an allocation
 * is named, or used by other calls, 262,143 times).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_flush_batch(quire_memory *memory,
                                                        const quire_view *views, uint64_t count);
QUIRE_API QUIRE_MUST_USE quire_result quire_invalidate_batch(quire_memory *memory,
                                                             const quire_view *views,
                                                             uint64_t count);

/* As quire_map_range, quire_write and quire_read, with offsets in the view and held to it. */
QUIRE_API QUIRE_MUST_USE quire_result quire_view_map(quire_memory *memory, quire_view view,
                                                     void **pointer);
QUIRE_API QUIRE_MUST_USE quire_result quire_view_write(quire_memory *memory, quire_view view,
                                                       uint64_t offset, const void *data,
                                                       uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_view_read(quire_memory *memory, quire_view view,
                                                      uint64_t offset, void *data, uint64_t size);

#ifdef __cplusplus
}
#endif

#endif
