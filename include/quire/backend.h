/*
 * quire/backend.h - what a backend is, and what it may ask of the core.
 *
 * A backend is a constant table of functions and a state pointer. Only describe, page_create and
 * page_destroy are required; the rest comes in groups, each announced by a feature bit, and table
 * and bits are checked against each other once, when the device is made. What a missing group means
 * for the caller is said with the group. docs/examples/backend.c is a whole backend built on this
 * header.
 *
 * Rules for every function of the table, unless it says otherwise:
 *  - It may be called by several threads at once, never under a lock of quire.
 *  - It must not call quire on the device it belongs to, except quire_backend_fail, nor a log sink
 *    or another callback that may: a page is under way. A request made from there all the same
 *    waits for no page, and may be refused for that. It must not fork.
 *  - Arguments are valid: kinds exist, ranges lie inside their page as it is, sizes are above 0.
 *  - On failure it ends with quire_backend_fail, has changed nothing and left no output to release.
 *    INVALID_ARGUMENT, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, TOO_MANY_PAGES, UNSUPPORTED,
 *    NOT_PERMITTED, DEVICE_LOST and BACKEND_FAILURE may be answered; anything else becomes
 *    BACKEND_FAILURE, with the answer as its native code.
 */
#ifndef QUIRE_BACKEND_H
#define QUIRE_BACKEND_H

#include "quire/allocation.h"
#include "quire/device.h"
#include "quire/memory.h"
#include "quire/resource.h"
#include "quire/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Groups of functions that a backend offers. */
typedef uint64_t quire_backend_features;
/* map, unmap: pages of host-visible kinds can be reached. Wanted when any kind is host-visible. */
#define QUIRE_BACKEND_MAP (UINT64_C(1) << 0)
/* flush, invalidate. Wanted when any host-visible kind is not coherent. */
#define QUIRE_BACKEND_FLUSH (UINT64_C(1) << 1)
/*
 * copy_to_page. Without it host-visible pages are written through their mapping, and a write to
 * others is UNSUPPORTED.
 */
#define QUIRE_BACKEND_COPY_TO_PAGE (UINT64_C(1) << 2)
/* copy_from_page. Likewise for reads. */
#define QUIRE_BACKEND_COPY_FROM_PAGE (UINT64_C(1) << 3)
/* image_requirements. Without it images are UNSUPPORTED. */
#define QUIRE_BACKEND_IMAGES (UINT64_C(1) << 4)
/*
 * object_create, object_bind, object_destroy: buffers and images are native objects. Without it
 * they are ranges that the caller addresses by page and offset.
 */
#define QUIRE_BACKEND_OBJECTS (UINT64_C(1) << 5)
/*
 * fill_page. Without it, and where it answers UNSUPPORTED, the bytes are written by copy_to_page.
 * Used for pages that are not host-visible: to others the host writes through their mapping.
 */
#define QUIRE_BACKEND_FILL (UINT64_C(1) << 7)
/*
 * heap_budget. Without it nobody but quire is taken into account: the caller's limits hold
 * (quire_device_set_heap_limit), what a heap has beyond them is for page_create to refuse, and a
 * heap's budget is told as its size.
 */
#define QUIRE_BACKEND_BUDGET (UINT64_C(1) << 6)
/*
 * copy_pages. Without it bytes go from page to page through a mapping where one of them has one,
 * else through host memory by copy_from_page and copy_to_page.
 */
#define QUIRE_BACKEND_COPY_PAGES (UINT64_C(1) << 8)
/* copy_peer. Likewise between two devices of the backend. */
#define QUIRE_BACKEND_COPY_PEER (UINT64_C(1) << 9)
/*
 * stream_create, stream_destroy, stream_mark, stream_passed, stream_await. Without it a device has
 * held streams only.
 */
#define QUIRE_BACKEND_STREAMS (UINT64_C(1) << 10)
/* stream_order. Without it a stream is never ordered behind another's point: UNSUPPORTED, and what
   was freed on one stream is not given to another before the point has passed. */
#define QUIRE_BACKEND_STREAM_ORDER (UINT64_C(1) << 11)
/*
 * stream_copy. Without it, and where it answers UNSUPPORTED, a copy on a stream waits for the
 * stream's work so far and is complete on return.
 */
#define QUIRE_BACKEND_STREAM_COPY (UINT64_C(1) << 12)
/* stream_fill. Likewise. */
#define QUIRE_BACKEND_STREAM_FILL (UINT64_C(1) << 13)
/*
 * copy_pages, copy_peer and stream_copy take jobs of many rows, and copy_pages also those between a
 * page and host memory. Without it each row is a job, or a call of copy_to_page or copy_from_page.
 * Has no functions; wanted with one of the three.
 */
#define QUIRE_BACKEND_ROWS (UINT64_C(1) << 14)
/* copy_to_page and copy_from_page go through memory of the backend's own: told by
   quire_copy_get_path. */
#define QUIRE_BACKEND_STAGES (UINT64_C(1) << 15)
/* flush_many, invalidate_many. Without it flush and invalidate are called for each range. */
#define QUIRE_BACKEND_FLUSH_MANY (UINT64_C(1) << 16)

/*
 * page_resize, for the kinds in limits.elastic_kinds. Without it a contiguous memory is
 * UNSUPPORTED. Wanted when there are such kinds.
 */
#define QUIRE_BACKEND_ELASTIC (UINT64_C(1) << 17)

/*
 * fork_prepare, fork_done, fork_child. Without it no lock of the backend is taken around a fork. A
 * device that does not survive a fork (info.survives_fork) then loses the backend's own records in
 * the child: nothing of the table is called there any more. See docs/backends.md, "Fork".
 */
#define QUIRE_BACKEND_FORK (UINT64_C(1) << 18)

/*
 * device_address. Asked where page_create told no native address. Without it the allocations of
 * such pages have no address.
 */
#define QUIRE_BACKEND_DEVICE_ADDRESS (UINT64_C(1) << 19)

/* Two words of the backend's own that all pages of a memory are made with; {0}: none. */
typedef struct quire_page_extra {
    const void *pointer;
    uint64_t number;
} quire_page_extra;

typedef struct quire_page_request {
    uint32_t kind;
    bool dedicated; /* for one allocation only */
    bool exportable;
    uint64_t size; /* bytes, a multiple of the page granularity */
    uint64_t
        alignment; /* wanted for the page's native address, a power of two; a backend whose pages
                           are less aligned says so by limits.page_alignment */
    const char *label; /* the memory's name, for native debug names */
    /* the object for which requirements.dedicated was answered: the page is for it alone, exactly
       `size` bytes large, and goes with it; NONE and 0: any page */
    quire_object object;
    uint64_t native;
    const void *description; /* of memory that exists, from quire_page_adopt, which is as aligned as
                                it is; NULL: make some */
    float priority;          /* quire_memory_options.priority */
    quire_page_extra extra;  /* from quire_memory_create_with; {0} in other memories */
    /* bytes that it may grow to by page_resize, a multiple of the page granularity, at least
       `size`: addresses for so many are reserved, and mapped as far as they are used; 0: it keeps
       its size. Above 0 for kinds in limits.elastic_kinds alone */
    uint64_t max_size;
} quire_page_request;

/* A page as its backend knows it; the core keeps it and hands it back. */
typedef struct quire_native_page {
    uint64_t handle;  /* VkDeviceMemory, CUDA handle, pointer, ...: the backend's choice */
    uint64_t address; /* native address of the first byte, or 0 where pages have none */
    uint64_t size;    /* bytes usable, at least those asked for; what is more is counted once it is
                         known, and a page that is over a budget then is destroyed again. Of a page
                         that may grow: `most`, as asked, and what is usable is exactly `size` */
    uint64_t data;    /* the backend's own */
} quire_native_page;

/* A part of a page. */
typedef struct quire_page_range {
    const quire_native_page *page;
    uint64_t offset, size; /* bytes */
} quire_page_range;

/* Ranges in one list, at most. */
#define QUIRE_MAX_RANGES 64

/* How much of a heap may be used now, and is. */
typedef struct quire_heap_budget {
    uint64_t budget; /* bytes that may be in use, all that `usage` counts together; 0: the backend
                        sets none now */
    uint64_t usage;  /* bytes in use now, by this process or by everybody; quire's pages are among
                        them, also those of other devices on the heap. 0: not known */
    uint64_t unused[2];
} quire_heap_budget;

/*
 * One buffer or image to make: the one of the two options that fits `object` is set, or, where the
 * backend calls quire_object_create, its own description.
 */
typedef struct quire_object_request {
    quire_object object;
    const quire_buffer_options *buffer; /* defaults resolved */
    const quire_image_options *image;
    const void *description;
    bool borrowed;   /* it exists, and is not destroyed whatever happens */
    bool exportable; /* the pages of its memory are */
} quire_object_request;

/* A copy: rows of bytes from one place to another. Pages are of devices of one backend. */
typedef struct quire_copy_job {
    const quire_native_page *to; /* NULL: host memory at `host_to` */
    const quire_native_page *from;
    uint64_t to_offset; /* bytes, in the page */
    uint64_t from_offset;
    void *host_to;
    const void *host_from;
    uint64_t size;             /* bytes of a row, above 0 */
    uint64_t rows;             /* 1 without QUIRE_BACKEND_ROWS */
    uint64_t slices;           /* likewise */
    uint64_t to_row, to_slice; /* bytes from row to row and from slice to slice */
    uint64_t from_row, from_slice;
    void *to_state; /* of the devices that the pages are of */
    void *from_state;
} quire_copy_job;

typedef struct quire_backend {
    size_t size;      /* sizeof(quire_backend) as the backend was compiled */
    const char *name; /* "host", "vulkan", ... */
    quire_backend_features features;

    /* ---- required ---- */

    /*
     * Fills in name, heaps, kinds and limits, and whether the device survives a fork: all of its
     * pages are then private memory of the process, and a child can use and destroy its copy of
     * them (default: it does not). Called once, at creation. A device without kinds,
     * with a heap index out of range or a limit that is no power of two where one is due, is
     * refused.
     */
    quire_result (*describe)(void *state, quire_device_info *info);

    /* Makes a page. May take long; other threads go on meanwhile. */
    quire_result (*page_create)(void *state, const quire_page_request *request,
                                quire_native_page *page);

    /* Gives a page back. It is not mapped and nothing is bound to it. Cannot fail. */
    void (*page_destroy)(void *state, const quire_native_page *page);

    /* Ends the state, after the last page is gone; NULL: nothing to end. Cannot fail. */
    void (*destroy)(void *state);

    /* ---- QUIRE_BACKEND_MAP ---- */

    /* Maps a whole page for its life; called once, before anybody uses the page. */
    quire_result (*map)(void *state, const quire_native_page *page, void **pointer);
    void (*unmap)(void *state, const quire_native_page *page);

    /* ---- QUIRE_BACKEND_FLUSH: offset and size are multiples of limits.non_coherent_atom or reach
       the page's end ---- */
    quire_result (*flush)(void *state, const quire_native_page *page, uint64_t offset,
                          uint64_t size);
    quire_result (*invalidate)(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size);

    /* ---- QUIRE_BACKEND_COPY_TO_PAGE, QUIRE_BACKEND_COPY_FROM_PAGE: complete on return ---- */
    quire_result (*copy_to_page)(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size);
    quire_result (*copy_from_page)(void *state, const quire_native_page *page, uint64_t offset,
                                   void *data, uint64_t size);

    /* ---- QUIRE_BACKEND_IMAGES ---- */

    /* What an image would take, or UNSUPPORTED. Options are valid and their defaults resolved. */
    quire_result (*image_requirements)(void *state, const quire_image_options *options,
                                       quire_requirements *requirements);

    /* ---- QUIRE_BACKEND_OBJECTS ---- */

    /*
     * Makes the object without memory and says what it needs. A handle of 0: it is a range of its
     * page and no object of the backend's, and neither bound nor destroyed.
     */
    quire_result (*object_create)(void *state, const quire_object_request *request,
                                  uint64_t *native, quire_requirements *requirements);
    quire_result (*object_bind)(void *state, quire_object object, uint64_t native,
                                const quire_native_page *page, uint64_t offset);
    void (*object_destroy)(void *state, quire_object object, uint64_t native);

    /* ---- QUIRE_BACKEND_BUDGET ---- */

    /*
     * Tells the budget of a heap, which is zeroed on entry. Asked before each attempt to make a
     * page and by quire_device_get_budget, at no other time. The core sees to it that quire's pages
     * and what else is in use stay within the budget; a page is refused when this fails.
     */
    quire_result (*heap_budget)(void *state, uint32_t heap, quire_heap_budget *budget);

    /* ---- QUIRE_BACKEND_FILL: each byte is `value`, complete on return ---- */
    quire_result (*fill_page)(void *state, const quire_native_page *page, uint64_t offset,
                              uint64_t size, uint8_t value);

    /*
     * ---- QUIRE_BACKEND_COPY_PAGES: two pages of this device, complete on return; with
     * QUIRE_BACKEND_ROWS also many rows between one of its pages and host memory. No byte of a row
     * is of both ends ----
     */
    quire_result (*copy_pages)(void *state, const quire_copy_job *job);

    /* ---- QUIRE_BACKEND_COPY_PEER: to a page of this device from one of another device of the
       backend, complete on return; UNSUPPORTED where the two cannot ---- */
    quire_result (*copy_peer)(void *state, const quire_copy_job *job);

    /* ---- QUIRE_BACKEND_STREAMS ---- */

    /*
     * Takes the stream that `description`, the backend's own, tells of (quire_stream_wrap), or
     * makes one where it is NULL. `stream` is the backend's choice.
     */
    quire_result (*stream_create)(void *state, const void *description, uint64_t *stream);
    /* Its points have passed, or nobody asks for them any more. Cannot fail. */
    void (*stream_destroy)(void *state, uint64_t stream);
    /*
     * A point behind all that was submitted so far: a value above 0 that never falls. UNSUPPORTED
     * where the stream's owner signals its values. The core asks stream_await and stream_order for
     * values up to the last one that stream_mark told, so that streams do not wait for each other
     * in a circle; where the owner signals, for any value.
     */
    quire_result (*stream_mark)(void *state, uint64_t stream, uint64_t *value);
    /* The highest value all of whose work is done. Does not wait. */
    quire_result (*stream_passed)(void *state, uint64_t stream, uint64_t *value);
    /*
     * Sleeps until the value has passed, so long at most (UINT64_MAX: as long as it takes). Ends in
     * time whatever the value, also one that never passes, and takes no processor meanwhile. A
     * value that was never marked has not passed: *has_passed is false, or it is INVALID_ARGUMENT.
     */
    quire_result (*stream_await)(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                                 bool *has_passed);

    /* ---- QUIRE_BACKEND_STREAM_ORDER: what is submitted to `later` from now on, marks too, comes
       after `value` of `earlier`, a stream of the same device ---- */
    quire_result (*stream_order)(void *state, uint64_t later, uint64_t earlier, uint64_t value);

    /*
     * ---- QUIRE_BACKEND_STREAM_COPY, QUIRE_BACKEND_STREAM_FILL: submitted on return; pages and
     * host memory stay until the stream has passed it ----
     */
    quire_result (*stream_copy)(void *state, uint64_t stream, const quire_copy_job *job);
    quire_result (*stream_fill)(void *state, uint64_t stream, const quire_native_page *page,
                                uint64_t offset, uint64_t size, uint8_t value);

    /* ---- QUIRE_BACKEND_FLUSH_MANY: 1 to QUIRE_MAX_RANGES ranges as those of flush; on failure
       some may be done ---- */
    quire_result (*flush_many)(void *state, const quire_page_range *ranges, uint32_t count);
    quire_result (*invalidate_many)(void *state, const quire_page_range *ranges, uint32_t count);

    /*
     * ---- QUIRE_BACKEND_ELASTIC: a page that was made with `most` ends `to` bytes from its first
     * one and no longer `from`: another multiple of the page granularity, above 0 and up to `most`.
     * Its address stays, and so do the bytes below both; what comes is as the page was made, and
     * nobody uses what goes. The rest of the page is used meanwhile, by other threads and the
     * device; it is not resized twice at a time. To make it smaller cannot fail
     * ----
     */
    quire_result (*page_resize)(void *state, const quire_native_page *page, uint64_t from,
                                uint64_t to);

    /*
     * ---- QUIRE_BACKEND_FORK: called by the thread that forks, from handlers of pthread_atfork,
     * without a lock of quire. None can fail, and none may wait for a device ----
     */

    /* Before: takes the locks of the backend that guard its own records, so that these are whole in
       the child. */
    void (*fork_prepare)(void *state);
    /* After, in the parent and in the child: gives them back. */
    void (*fork_done)(void *state);
    /*
     * In the child, last. Only the thread that forked is there: a call that another one was in
     * never returns. Where the device survives, `heap_bytes` tells for each heap the bytes of the
     * pages that are left. A page that was being made is not among them and is never given back.
     * For each page that another thread was resizing page_resize was called before this: `from` is
     * the most that the page may have, whatever it has, and `to` the smaller of the two sizes.
     * Streams that are there are destroyed, and nothing else is asked of them. Where the device
     * does not survive, unmap, page_destroy, object_destroy, stream_destroy, destroy and the ends
     * of attachments alone are called from now on: they release records of the host and must not
     * call the driver.
     */
    void (*fork_child)(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

    /*
     * ---- QUIRE_BACKEND_DEVICE_ADDRESS: the device address of `buffer`, which object_create made
     * of quire_buffer_options and which is bound to the page; where `buffer` is 0, that of the
     * page's first byte. 0: it has none, or it cannot be told now. Cannot fail, and leaves the
     * thread's last error as it is. The core asks it for quire_allocation_info.address alone, each
     * time; the allocation stays meanwhile. Placing takes no notice of the answer ----
     */
    uint64_t (*device_address)(void *state, const quire_native_page *page, uint64_t buffer);
} quire_backend;

/* ---- what the core offers to backends ------------------------------------------------------- */

typedef struct quire_device_options {
    const quire_host_memory *host_memory; /* copied; NULL: malloc and free */
    quire_log log;
    uint64_t unused[4]; /* must be zero */
} quire_device_options;

/*
 * Makes a device on a backend. The table must outlive the device; on success the device owns
 * `state` and ends it with `destroy`; on failure the caller still does. Errors: INVALID_ARGUMENT
 * (the sentence names what is wrong with the table or the description), OUT_OF_HOST_MEMORY, and
 * what describe answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_create(const quire_backend *table, void *state,
                                                          const quire_device_options *options,
                                                          quire_device **device);

/* The table and state a device was made of, for a backend's own public calls. NULL for NULL. */
QUIRE_API const quire_backend *quire_device_backend(const quire_device *device);
QUIRE_API void *quire_device_state(const quire_device *device);

/*
 * quire_memory_create for a backend whose pages can be made in more ways than its options tell:
 * `extra` is handed to page_create with each page. What it points to is the backend's to keep.
 * Errors as there.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_create_with(quire_device *device,
                                                               const quire_memory_options *options,
                                                               quire_page_extra extra,
                                                               quire_memory **memory);

/* The native side of an allocation. */
typedef struct quire_native {
    quire_device *device;
    quire_native_page page;
    void *host;      /* host pointer to the allocation, NULL where the page is not mapped */
    uint64_t offset; /* in the page */
    uint64_t size;
    quire_object object;
    uint64_t handle; /* of the bound object, or 0 */
} quire_native;

/* Errors as quire_allocation_get_info. The page stays while the allocation lives. */
QUIRE_API QUIRE_MUST_USE quire_result quire_get_native(quire_memory *memory,
                                                       quire_allocation allocation,
                                                       quire_native *native);

/* An object that a backend makes from a description of its own; {0} is a raw range's default. */
typedef struct quire_object_options {
    quire_object object;
    const void *description; /* handed to object_create as it is */
    bool optimal; /* in the backend's own tiling: keeps buffer_image_granularity to neighbours */
    bool
        borrowed; /* object_create hands out an object that exists, which is never destroyed here */
    uint64_t alignment; /* at least; 0: what the backend asks */
    const char *name;
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    union { /* told by quire_buffer_get_info and quire_image_get_info, `place` apart; a buffer of
               size 0 has the size that it needs */
        quire_buffer_info buffer;
        quire_image_info image;
    } info;
} quire_object_options;

/*
 * Makes such an object in a memory, as quire_buffer_create and quire_image_create do theirs; its
 * size is what object_create answers. Errors as theirs; UNSUPPORTED where the backend has no
 * objects.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_object_create(quire_memory *memory,
                                                          const quire_object_options *options,
                                                          quire_allocation *allocation);

/*
 * Makes an allocation in a dedicated page that page_create is to make from a description of memory
 * that exists: exactly options->size bytes, which go with the allocation. Errors as quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_adopt(quire_memory *memory,
                                                       const void *description,
                                                       const quire_allocation_options *options,
                                                       quire_allocation *allocation);

/*
 * Keeps a live allocation from being freed, for what the backend has put into it: quire_free is
 * BUSY until it is released as often as it was held. quire_memory_destroy_all takes no notice.
 * Errors as quire_allocation_get_info, WRONG_STATE (reserved), BUSY (held 131,071 times, or in use
 * by 262,143 holds and calls together), OUT_OF_HOST_MEMORY (for the count of holds).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_hold(quire_memory *memory,
                                                            quire_allocation allocation);
/*
 * Takes one hold away. Calls that are working on the allocation are counted apart and stay counted.
 * Errors as quire_allocation_get_info; WRONG_STATE where nobody holds it, or it is reserved; BUSY
 * while 262,143 holds and calls use it.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_release(quire_memory *memory,
                                                               quire_allocation allocation);

/*
 * How often a live or reserved allocation is mapped. Unlike quire_allocation_get_info it calls no
 * function of the backend. Any thread. Errors as quire_allocation_get_info; *count is 0 then.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocation_get_map_count(quire_memory *memory,
                                                                     quire_allocation allocation,
                                                                     uint32_t *count);

/*
 * What a backend keeps in a memory beside allocations, and whose own calls name the memory. While
 * it is attached quire_memory_destroy is BUSY with it, and quire_memory_destroy_all ends it first.
 */
typedef struct quire_attachment {
    const char *name; /* for the error; it must stay as long. NULL: none */
    void (*end)(struct quire_attachment *attachment); /* detaches it, too */
    /* asked by quire_memory_destroy, before it judges, of what nobody uses any more: detaches and
       ends it if it can; NULL: it stays */
    void (*leave)(struct quire_attachment *attachment);
    struct quire_attachment *next, *previous; /* the core's */
} quire_attachment;

/* NULL is accepted: nothing happens. Nothing is attached twice, or detached when it is not. */
QUIRE_API void quire_memory_attach(quire_memory *memory, quire_attachment *attachment);
QUIRE_API void quire_memory_detach(quire_memory *memory, quire_attachment *attachment);

/*
 * A stream from the backend's own description, handed to stream_create; `name` is copied, NULL:
 * "stream". Errors as quire_stream_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_wrap(quire_device *device,
                                                        const void *description, const char *name,
                                                        quire_stream **stream);

/* The backend's side of a stream; 0 for a held one and for NULL. */
QUIRE_API uint64_t quire_stream_native(const quire_stream *stream);

/*
 * Sets the thread's last error with the native code kept, and returns `result`: how every function
 * of a table fails. The format is printf's.
 */
QUIRE_API quire_result quire_backend_fail(quire_result result, int64_t native_code,
                                          const char *format, ...) QUIRE_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
