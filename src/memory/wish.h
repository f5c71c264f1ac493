/*
 * wish.h - what a caller asks a memory to place, raw range or object, and what its policy makes of
 * that.
 */
#ifndef QUIRE_SRC_MEMORY_WISH_H
#define QUIRE_SRC_MEMORY_WISH_H

#include "quire/stream.h"
#include "src/memory/put.h"

/* What to place; already checked against the public options' rules. */
typedef struct qi_wish {
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
    bool is_unaided;         /* the caller's on_shortage is not asked */
    quire_object object;
    uint64_t native;      /* to be bound: freed with the allocation once that is handed out */
    bool borrowed;        /* the object is its maker's: it is not destroyed */
    quire_stream *stream; /* what was freed on it may serve, before its points have passed */
    bool *has_waited;     /* with a stream: set where such a range was taken, or another stream's */
} qi_wish;

/* The checks that all options share: size, alignment, name, access. */
QUIRE_MUST_USE quire_result qi_wish_check(const quire_memory *memory, const qi_wish *wish);

/* The wish behind the options of a raw allocation, checked. */
QUIRE_MUST_USE quire_result qi_wish_from(const quire_memory *memory,
                                         const quire_allocation_options *options, qi_wish *wish);

/* Whether it gets a page of its own. */
bool qi_wish_wants_dedicated(const quire_memory *memory, const qi_wish *wish);

/* Requests up to this size need nothing that the policy adds and no page of their own. */
uint64_t qi_wish_largest_at_once(const quire_memory *memory);

/* Whether it is a raw range to which the policy adds nothing, in a shared page. */
static inline bool qi_wish_is_usual(const quire_memory *memory, const qi_wish *wish)
{
    return !wish->name && !wish->object && !wish->zero && !wish->dedicated &&
           wish->held <= wish->size && wish->size <= memory->largest_at_once;
}

/* Whether the policy adds nothing to a request, and a page there is may serve it. */
static inline bool qi_wish_is_plain(const quire_memory *memory,
                                    const quire_allocation_options *options)
{
    uint64_t mask = options->alignment ? options->alignment - 1 : 0;
    return !options->name && !options->zero && !options->dedicated && !options->host_read &&
           !options->host_write && options->size && options->size <= memory->largest_at_once &&
           mask < memory->largest_alignment && !(options->alignment & mask) &&
           !(options->reserved[0] | options->reserved[1] | options->reserved[2] |
             options->reserved[3]);
}

/* What of such a request is put into a page. */
static inline qi_load qi_load_from(const quire_allocation_options *options)
{
    return (qi_load){.size = options->size,
                     .alignment = options->alignment + !options->alignment,
                     .requested = options->size,
                     .user_data = options->user_data};
}

/* What of a usual wish is put into a page. */
static inline qi_load qi_load_of(const qi_wish *wish)
{
    return (qi_load){.size = wish->size,
                     .alignment = wish->alignment,
                     .requested = wish->size,
                     .user_data = wish->user_data};
}

#endif
