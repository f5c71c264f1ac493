/*
 * request.h - a request for an allocation: what the caller wants placed, raw range or object, and
 * what the memory's policy makes of it.
 *
 * A request is plain data of the calling thread. No lock protects it and no function takes one.
 * Invariant: qi_request_check has accepted the request before the allocation ladder sees it.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_REQUEST_H
#define QUIRE_SRC_CORE_ALLOCATE_REQUEST_H

#include "quire/stream.h"
#include "src/core/page/range_take.h"

typedef struct qi_request {
    uint64_t size; /* bytes that the caller requested */
    uint64_t held; /* bytes that the backend needs; a value below `size` means `size` */
    uint64_t alignment;
    const char *name;
    const char *name_later; /* set after the placement; its limits are checked before */
    uint64_t user_data;
    bool zero; /* filled with zeros before the allocation is published */
    bool dedicated;
    bool host_access;
    bool tied;               /* the object needs a page that is created for it alone */
    const void *description; /* existing memory to adopt, always tied; NULL: none */
    bool is_unaided;         /* the application's on_out_of_memory is not called */
    quire_object object;
    uint64_t native;      /* native object; the allocation owns it once it is published */
    bool borrowed;        /* the application owns the native object and destroys it */
    quire_stream *stream; /* ranges freed on it are reused before their points have passed */
    bool *has_waited;     /* with a stream: receives whether a deferred free was reused */
} qi_request;

/*
 * Checks what all options share: size, alignment, name, dedicated page, host access. Fails with
 * INVALID_ARGUMENT or NOT_HOST_VISIBLE.
 */
QUIRE_MUST_USE quire_result qi_request_check(const quire_memory *memory, const qi_request *request);

/* Makes a request from the options of a raw allocation and checks it. */
QUIRE_MUST_USE quire_result qi_request_from(const quire_memory *memory,
                                            const quire_allocation_options *options,
                                            qi_request *request);

/* Whether the request gets a dedicated page. */
bool qi_request_needs_dedicated(const quire_memory *memory, const qi_request *request);

/*
 * Returns the largest size of the fast path (memory->max_fast_size): up to it the policy adds no
 * bytes and demands no dedicated page. 0 means that the memory has no fast path.
 */
uint64_t qi_request_max_fast(const quire_memory *memory);

/* Whether the request is a raw range in a shared page, to which the policy adds nothing. */
static inline bool qi_request_is_fast(const quire_memory *memory, const qi_request *request)
{
    return !request->name && !request->object && !request->zero && !request->dedicated &&
           request->held <= request->size && request->size <= memory->max_fast_size;
}

/* Like qi_request_is_fast, for options that were not checked: false also where a check fails. */
static inline bool qi_request_is_plain(const quire_memory *memory,
                                       const quire_allocation_options *options)
{
    uint64_t mask = options->alignment ? options->alignment - 1 : 0;
    return !options->name && !options->zero && !options->dedicated && !options->host_read &&
           !options->host_write && options->size && options->size <= memory->max_fast_size &&
           mask < memory->max_alignment && !(options->alignment & mask) &&
           !(options->unused[0] | options->unused[1] | options->unused[2] | options->unused[3]);
}

/* Returns the range to take for options that are plain. An alignment of 0 means 1. */
static inline qi_range_request qi_range_request_from(const quire_allocation_options *options)
{
    return (qi_range_request){.size = options->size,
                              .alignment = options->alignment + !options->alignment,
                              .requested = options->size,
                              .user_data = options->user_data};
}

/* Returns the range to take for a request that is fast. */
static inline qi_range_request qi_range_request_of(const qi_request *request)
{
    return (qi_range_request){.size = request->size,
                              .alignment = request->alignment,
                              .requested = request->size,
                              .user_data = request->user_data};
}

#endif
