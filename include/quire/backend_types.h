/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/backend_types.h - what the core and a backend pass to each other: requests for pages and
 * objects, native pages, budgets and copy jobs. Included by quire/backend.h.
 *
 * All structs here are plain data. The core owns those that it passes to a function of a backend;
 * they are valid during the call. Sizes and offsets are bytes.
 */
#ifndef QUIRE_BACKEND_TYPES_H
#define QUIRE_BACKEND_TYPES_H

#include "quire/allocation.h"
#include "quire/default_memory.h"
#include "quire/device.h"
#include "quire/memory.h"
#include "quire/resource.h"
#include "quire/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The function table of a backend; defined in quire/backend.h. */
typedef struct quire_backend quire_backend;

/* ---- pages ---------------------------------------------------------------------------------- */

/* Two values of the backend that all pages of a memory are created with; {0}: none. */
typedef struct quire_page_extra {
    const void *pointer;
    uint64_t number;
} quire_page_extra;

/* A request for a page, for quire_backend.page_create. */
typedef struct quire_page_request {
    uint32_t kind;
    bool dedicated;  /* the page is for one allocation */
    bool exportable; /* the memory has an exportable intent */
    uint64_t size;   /* a multiple of the page granularity */
    /* Alignment of the page's native address, a power of two. A backend that cannot provide it
       states what it provides in limits.page_alignment. */
    uint64_t alignment;
    const char *label; /* name of the memory, for native debug names */
    /* The object that requires a dedicated page (quire_requirements.dedicated). The page is for
     * this
       object alone, has exactly `size` bytes and is destroyed with it. NONE and 0: any page. */
    quire_object object;
    uint64_t native; /* handle of that object */
    /* quire_object_request.description that the object was created from; NULL: quire's options. */
    const void *object_description;
    /* Description of existing memory, from quire_page_adopt. Its alignment is what it is. NULL: the
       backend creates memory. */
    const void *description;
    float priority;         /* quire_memory_options.priority, with the same values */
    quire_page_extra extra; /* from quire_memory_create_with; {0} in other memories */
    /* Bytes of addresses that the backend reserves for an elastic page; it backs the first `size`
       of them. 0: the page keeps its size. Above 0 only for kinds in limits.elastic_kinds. */
    uint64_t max_size;
    /* Bytes that page_back and page_unback give and take at once; `size` and `max_size` are
       multiples of it, and max_size is at most QUIRE_MAX_CHUNKS and limits.max_chunks of them. A
       power of two, and a multiple of limits.elastic_granularity. 0 if max_size is 0. */
    uint64_t chunk;
    /* The page is for one allocation, which wants zeros. A backend that has them at less cost than
       fill_page, or in any case, provides them and sets quire_native_page.is_zero. */
    bool zero;
    uint64_t unused[4];
} quire_page_request;

/* Maximum number of chunks of an elastic page. */
#define QUIRE_MAX_CHUNKS (UINT64_C(1) << 20)

/* A page as its backend knows it. page_create fills it in; the core stores it and passes it back.
 * */
typedef struct quire_native_page {
    uint64_t handle;  /* VkDeviceMemory, CUDA handle, pointer, ...: the backend's choice */
    uint64_t address; /* native address of the first byte; 0: pages have none */
    /* Usable bytes, at least the requested ones. The core counts surplus bytes once it knows them,
       and destroys the page if it then exceeds a budget. For an elastic page: `max_size` of the
       request; exactly the requested `size` of it is usable. */
    uint64_t size;
    uint64_t data; /* the backend's own */
    /* Every byte is zero, for the device and for the host. Counts only if the request has `zero`:
       the core then writes no zeros. */
    bool is_zero;
} quire_native_page;

/* A part of a page. */
typedef struct quire_page_range {
    const quire_native_page *page;
    uint64_t offset, size;
} quire_page_range;

/* A stretch of a page, in bytes. */
typedef struct quire_span {
    uint64_t offset, size;
} quire_span;

/* Maximum number of ranges in one list. */
#define QUIRE_MAX_RANGES 64

/* The current budget and use of a heap. */
typedef struct quire_heap_budget {
    uint64_t budget; /* bytes that everything counted in `usage` may use; 0: no budget at present */
    uint64_t usage;  /* bytes in use, by this process or by all. Includes quire's pages, also those
                        of other devices on the heap. 0: unknown. */
    /* Nanoseconds for which the answer serves further pages, so that the core does not ask before
       each; 0: it asks before each page. See heap_budget in quire/backend.h. */
    uint64_t lifetime;
    uint64_t unused[4];
} quire_heap_budget;

/* ---- objects -------------------------------------------------------------------------------- */

/*
 * A buffer or image to create. The options that match `object` are set. If the backend itself
 * called quire_object_create, `description` is set instead.
 */
typedef struct quire_object_request {
    quire_object object;
    const quire_buffer_options *buffer; /* defaults resolved */
    const quire_image_options *image;   /* defaults resolved */
    const void *description;            /* from quire_object_options */
    bool borrowed;   /* the object exists and belongs to the caller; quire never destroys it */
    bool exportable; /* the pages of the memory are exportable */
    uint64_t unused[4];
} quire_object_request;

/* ---- copies --------------------------------------------------------------------------------- */

/*
 * A copy of rows of bytes from one place to another. Each end is a page of a device of this
 * backend, or host memory. `rows` counts per slice. Without QUIRE_BACKEND_ROWS both counts are 1.
 */
typedef struct quire_copy_job {
    const quire_native_page *to;   /* NULL: host memory at `host_to` */
    const quire_native_page *from; /* NULL: host memory at `host_from` */
    uint64_t to_offset;            /* bytes from the start of the page */
    uint64_t from_offset;
    void *host_to;
    const void *host_from;
    uint64_t size; /* bytes of a row, above 0 */
    uint64_t rows;
    uint64_t slices;
    uint64_t to_row, to_slice; /* bytes from row to row and from slice to slice */
    uint64_t from_row, from_slice;
    void *to_state; /* state pointers of the devices of the two pages */
    void *from_state;
    uint64_t unused[4];
} quire_copy_job;

/* Bytes to copy between a page and host memory. */
typedef struct quire_page_copy {
    const quire_native_page *page;
    uint64_t offset; /* bytes from the start of the page */
    void *host;      /* source of a write, which leaves it unchanged; target of a read */
    uint64_t size;   /* bytes, above 0 */
} quire_page_copy;

#ifdef __cplusplus
}
#endif

#endif
