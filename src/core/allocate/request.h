/*
 * wish.h - what a caller asks a memory to place, raw range or object, and what its policy makes of
 * that.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_REQUEST_H
#define QUIRE_SRC_CORE_ALLOCATE_REQUEST_H

#include "quire/stream.h"
#include "src/core/page/range_take.h"

/* What to place; already checked against the public options' rules. */
typedef struct qi_request {
    uint64_t size; /* asked for by the caller */
    uint64_t held; /* to be placed, at least size: what the backend or the policy needs; 0: size */
    uint64_t alignment;
    const char *name;
    const char *name_later; /* given once it is placed: its limits are asked before */
    uint64_t user_data;
    bool zero; /* filled with zeros before anybody can see it */
    bool dedicated;
    bool host_access;
    bool tied;               /* the backend wants a page for this object alone */
    const void *description; /* of memory that exists, which is tied too; or NULL */
    bool is_unaided;         /* the caller's on_out_of_memory is not asked */
    quire_object object;
    uint64_t native;      /* to be bound: freed with the allocation once that is handed out */
    bool borrowed;        /* the object is its maker's: it is not destroyed */
    quire_stream *stream; /* what was freed on it may serve, before its points have passed */
    bool *has_waited;     /* with a stream: set where such a range was taken, or another stream's */
} qi_request;

/* The checks that all options share: size, alignment, name, access. */
QUIRE_MUST_USE quire_result qi_request_check(const quire_memory *memory, const qi_request *request);

/* The wish behind the options of a raw allocation, checked. */
QUIRE_MUST_USE quire_result qi_request_from(const quire_memory *memory,
                                            const quire_allocation_options *options,
                                            qi_request *request);

/* Whether it gets a page of its own. */
bool qi_request_needs_dedicated(const quire_memory *memory, const qi_request *request);

/* Requests up to this size need nothing that the policy adds and no page of their own. */
uint64_t qi_request_max_fast(const quire_memory *memory);

/* Whether it is a raw range to which the policy adds nothing, in a shared page. */
static inline bool qi_request_is_fast(const quire_memory *memory, const qi_request *request)
{
    return !request->name && !request->object && !request->zero && !request->dedicated &&
           request->held <= request->size && request->size <= memory->max_fast_size;
}

/* Whether the policy adds nothing to a request, and a page there is may serve it. */
static inline bool qi_request_is_plain(const quire_memory *memory,
                                       const quire_allocation_options *options)
{
    uint64_t mask = options->alignment ? options->alignment - 1 : 0;
    return !options->name && !options->zero && !options->dedicated && !options->host_read &&
           !options->host_write && options->size && options->size <= memory->max_fast_size &&
           mask < memory->max_alignment && !(options->alignment & mask) &&
           !(options->unused[0] | options->unused[1] | options->unused[2] | options->unused[3]);
}

/* What of such a request is put into a page. */
static inline qi_range_request qi_range_request_from(const quire_allocation_options *options)
{
    return (qi_range_request){.size = options->size,
                              .alignment = options->alignment + !options->alignment,
                              .requested = options->size,
                              .user_data = options->user_data};
}

/* What of a usual wish is put into a page. */
static inline qi_range_request qi_range_request_of(const qi_request *request)
{
    return (qi_range_request){.size = request->size,
                              .alignment = request->alignment,
                              .requested = request->size,
                              .user_data = request->user_data};
}

#endif
