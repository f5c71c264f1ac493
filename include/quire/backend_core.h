/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/backend_core.h - what the core offers to backends: creating devices, memories, objects and
 * streams from native descriptions, and the native side of allocations. Included by
 * quire/backend.h.
 *
 * A backend calls these functions from its own public functions. From within a function of its
 * table it may call quire_backend_fail only.
 *
 * Thread-safety: any thread may call any function on live devices, memories and streams.
 */
#ifndef QUIRE_BACKEND_CORE_H
#define QUIRE_BACKEND_CORE_H

#include "quire/backend_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors --------------------------------------------------------------------------------- */

/*
 * Sets the last error of the thread, with the native code of the driver, and returns `result`.
 * Every function of a table fails by `return quire_backend_fail(...)`. The format is that of
 * printf.
 */
QUIRE_API quire_result quire_backend_fail(quire_result result, int64_t native_code,
                                          const char *format, ...) QUIRE_PRINTF(3, 4);

/* ---- devices and memories ------------------------------------------------------------------- */

/* Options that every backend takes when it opens a device. */
typedef struct quire_device_options {
    const quire_host_memory *host_memory; /* copied; NULL: malloc and free */
    quire_log log;
    bool untraced;      /* the variable QUIRE_TRACE does not record the device (quire/record.h) */
    uint64_t unused[4]; /* must be zero */
} quire_device_options;

/*
 * Creates a device on a backend. NULL options mean {0}. The table must outlive the device. On
 * success the device owns `state` and destroys it with quire_backend.destroy; on failure the caller
 * still owns it.
 * Errors: INVALID_ARGUMENT (the sentence names the fault of the table or the description),
 * OUT_OF_HOST_MEMORY, and errors of `describe`.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_create(const quire_backend *table, void *state,
                                                          const quire_device_options *options,
                                                          quire_device **device);

/* Return the table and the state that a device was created with. NULL for NULL. */
QUIRE_API const quire_backend *quire_device_backend(const quire_device *device);
QUIRE_API void *quire_device_state(const quire_device *device);

/* Return the device and the kind of a memory. They take no lock. NULL or 0 for NULL. */
QUIRE_API quire_device *quire_memory_device(const quire_memory *memory);
QUIRE_API uint32_t quire_memory_kind(const quire_memory *memory);

/*
 * Like quire_memory_create, for a backend that creates pages with more options than quire has:
 * page_create gets `extra` with each page. What extra.pointer points to belongs to the backend and
 * must outlive the memory. Errors as quire_memory_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_create_with(quire_device *device,
                                                               const quire_memory_options *options,
                                                               quire_page_extra extra,
                                                               quire_memory **memory);

/* ---- allocations and objects ---------------------------------------------------------------- */

/* The native side of an allocation. */
typedef struct quire_native {
    quire_device *device;
    quire_native_page page;
    void *host; /* host pointer to the allocation; NULL: the page is not mapped, or it is mapped
                        on demand and the allocation was not made with `mapped` */
    uint64_t offset; /* bytes from the start of the page */
    uint64_t size;   /* bytes */
    quire_object object;
    uint64_t handle; /* of the bound object; 0: none */
    /* The neighbours in the page are images of optimal tiling: a linear object in the allocation
       must begin and end at multiples of quire_limits.buffer_image_granularity. Otherwise they are
       linear or keep to it: an image of optimal tiling must. */
    bool is_among_images;
    uint64_t unused[4];
} quire_native;

/*
 * Writes the native side of an allocation. The page lives at least as long as the allocation.
 * Errors as quire_allocation_get_info.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_native(const quire_memory *memory,
                                                                  quire_allocation allocation,
                                                                  quire_native *native);

/* An object that a backend creates from its own description. {0} describes a raw range. */
typedef struct quire_object_options {
    quire_object object;
    const void *description; /* passed to object_create unchanged */
    bool optimal;            /* native tiling: keeps buffer_image_granularity to its neighbours */
    bool borrowed;      /* object_create returns an existing object, which quire never destroys */
    bool unbound;       /* only with `borrowed`, without `zero`: object_bind is not called */
    uint64_t alignment; /* minimum; 0: only what the backend requires */
    const char *name;   /* these eleven as in quire_allocation_options */
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    bool mapped;
    bool existing_pages;
    bool within_budget;
    quire_stream *stream;
    quire_allocation_info *info;
    /* What quire_buffer_get_info or quire_image_get_info report, except `place`. A buffer of size 0
       gets the size that it needs. */
    union {
        quire_buffer_info buffer;
        quire_image_info image;
    } described;
    uint64_t unused[4]; /* must be zero */
} quire_object_options;

/*
 * Creates such an object in a memory, as quire_buffer_create and quire_image_create do. Its size is
 * what object_create returns. Errors as quire_buffer_create; UNSUPPORTED (the backend has no
 * objects).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_object_create(quire_memory *memory,
                                                          const quire_object_options *options,
                                                          quire_allocation *allocation);

/*
 * The same in the first of `count` memories that can hold the object and has room, as
 * quire_buffer_create_fallback, and in a default memory of the device, as
 * quire_device_buffer_create. object_create is called once for all memories of a device, and again
 * after a call of object_bind, which may fail and is not repeated for an object. Errors as
 * quire_buffer_create_fallback and quire_device_buffer_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_object_create_fallback(
    quire_memory *const *memories, uint32_t count, const quire_object_options *options,
    uint32_t *chosen, quire_allocation *allocation);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_object_create(
    quire_device *device, const quire_kind_request *kinds, const quire_object_options *options,
    quire_memory **memory, quire_allocation *allocation);

/*
 * Makes an allocation of existing memory: a dedicated page of exactly options->size bytes, which
 * page_create makes from `description` and which is destroyed with the allocation. Errors as
 * quire_allocate; INVALID_ARGUMENT also for options with a stream or with existing_pages.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_adopt(quire_memory *memory,
                                                       const void *description,
                                                       const quire_allocation_options *options,
                                                       quire_allocation *allocation);

/*
 * Protects a live allocation from being freed, because the backend uses it: quire_free returns BUSY
 * until every hold is released. quire_memory_destroy_all ignores holds.
 * Errors: those of handles, BUSY (held 131,071 times, or in use by 262,143 holds and calls
 * together), OUT_OF_HOST_MEMORY (for the count of holds).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_hold(quire_memory *memory,
                                                            quire_allocation allocation);

/*
 * Releases one hold. Calls that use the allocation are counted separately and stay counted.
 * Errors: those of handles, WRONG_STATE (the allocation has no hold), BUSY (262,143 holds and calls
 * use it).
 */
QUIRE_API quire_result quire_allocation_release(quire_memory *memory, quire_allocation allocation);

/*
 * Writes how often a live or reserved allocation is mapped. Unlike quire_allocation_get_info it
 * calls no function of the backend. Errors as quire_allocation_get_info; *count is 0 then.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_map_count(const quire_memory *memory,
                                                                     quire_allocation allocation,
                                                                     uint32_t *count);

/*
 * Something that a backend keeps in a memory beside allocations and whose calls use the memory.
 * While it is attached, quire_memory_destroy returns BUSY. quire_memory_destroy_all calls `end`
 * first. The struct belongs to the backend and must live until it is detached.
 */
typedef struct quire_attachment {
    const char *name; /* for the error; must live as long; NULL: none */
    void (*end)(struct quire_attachment *attachment); /* detaches and destroys it */
    /* Called by quire_memory_destroy before its checks, for something that is no longer used:
       detaches and destroys it if that is possible. NULL: it stays attached. */
    void (*leave)(struct quire_attachment *attachment);
    struct quire_attachment *next, *previous; /* used by the core */
} quire_attachment;

/*
 * Attach to and detach from a memory. NULL arguments are accepted and do nothing. An attachment
 * must not be attached twice, nor detached unless it is attached.
 */
QUIRE_API void quire_memory_attach(quire_memory *memory, quire_attachment *attachment);
QUIRE_API void quire_memory_detach(quire_memory *memory, quire_attachment *attachment);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * Creates a stream from the backend's own description, which is passed to stream_create. `name` is
 * copied; NULL: "stream". Errors as quire_stream_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_wrap(quire_device *device,
                                                        const void *description, const char *name,
                                                        quire_stream **stream);

/* Returns the number that stream_create chose; 0 for a capture stream and for NULL. */
QUIRE_API uint64_t quire_stream_native(const quire_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
