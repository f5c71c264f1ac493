/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * request.h - a request for an allocation: what the caller wants placed, raw range or object, and
 * what the memory's policy makes of it.
 *
 * A request is plain data of the calling thread. No lock protects it and no function takes one.
 * Invariant: qi_request_check has accepted the request before the allocation ladder sees it.
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_REQUEST_H
#define QUIRE_SRC_CORE_ALLOCATE_REQUEST_H

#include <stddef.h>
#include <string.h>

#include "quire/stream.h"
#include "src/core/page/range.h"

/* What the host does with an allocation; both require memory that can be mapped. */
enum {
    QI_HOST_ACCESS = 1, /* reads or writes it */
    QI_HOST_MAPPED = 2  /* has it mapped until it is freed */
};

/* One byte without branches, because every buffer computes it. */
static inline uint8_t qi_host_use(bool reads, bool writes, bool mapped)
{
    return (uint8_t)(reads | writes | mapped << 1);
}

typedef struct qi_request {
    /* The ladder takes this range after it has added what the policy and checked builds demand to
       the size, which has what the backend needs and at least what is requested. The native object
       of an object is in it: the allocation owns it once it is published. */
    qi_range_request range;
    uint64_t unit; /* the offset in the page is a multiple of it, and it of alignment; 0: none */
    const char *name;
    const char *deferred_name; /* set after the placement; its limits are checked before */
    uint64_t user_data;        /* of an object; that of a raw range is in `range` */
    /* Filled with zeros before the allocation is published: here, or an object by its caller, once
       it is bound. */
    bool zero;
    bool dedicated;
    uint8_t host_use; /* of QI_HOST_..., or 0 */
    bool tied;        /* the object needs a page that is created for it alone */
    /* Of existing memory to adopt, which is always tied, or of an object; NULL: neither. */
    const void *description;
    bool skip_callback;     /* the application's on_out_of_memory is not called */
    bool existing_pages;    /* no page is made, grown or waited for */
    bool within_budget;     /* no page exceeds the backend's budget */
    bool upper;             /* from the upper end of the page of a linear memory */
    bool lazy;              /* addresses without memory in an elastic page */
    bool reserved;          /* not committed yet: it is not found by address */
    bool optimal;           /* an image of optimal tiling */
    quire_stream *stream;   /* ranges freed on it are reused before their points have passed */
    struct qi_reuse *reuse; /* with a stream: receives the deferred free whose range is reused */
} qi_request;

/* Sets what the options of allocations, buffers, images and objects have under the same names. A
   macro, because their types differ. */
#define QI_REQUEST_TAKE(request, options)                                                          \
    ((request)->name = (options)->name, (request)->user_data = (options)->user_data,               \
     (request)->zero = (options)->zero, (request)->dedicated = (options)->dedicated,               \
     (request)->existing_pages = (options)->existing_pages,                                        \
     (request)->within_budget = (options)->within_budget,                                          \
     (request)->host_use =                                                                         \
         qi_host_use((options)->host_read, (options)->host_write, (options)->mapped))

/* Checks what is wrong for every memory: size, alignment, name. Fails with INVALID_ARGUMENT. */
QUIRE_MUST_USE quire_result qi_request_check_values(const qi_request *request);

/*
 * Checks what all options share: size, alignment, name, dedicated page, host access. Fails with
 * INVALID_ARGUMENT or NOT_HOST_VISIBLE.
 */
QUIRE_MUST_USE quire_result qi_request_check(const quire_memory *memory, const qi_request *request);

/* Makes a request from the options of a raw allocation and checks it. */
QUIRE_MUST_USE quire_result qi_request_from(const quire_memory *memory,
                                            const quire_allocation_options *options,
                                            qi_request *request);

/* Returns QI_META_..., or 0. */
static inline uint32_t qi_request_meta_parts(const qi_request *request)
{
    if (request->lazy)
        return QI_META_LAZY;
    if (request->range.object && request->range.extras & QI_EXTRA_MOVABLE)
        return QI_META_ALIGNMENT;
    return request->range.object == QUIRE_OBJECT_IMAGE ? QI_META_IMAGE : 0;
}

/* Whether the request gets a dedicated page. */
bool qi_request_needs_dedicated(const quire_memory *memory, const qi_request *request);

/*
 * Returns the largest size of the fast path (memory->max_fast_size): up to it the policy adds no
 * bytes and demands no dedicated page. 0 means that the memory has no fast path.
 */
uint64_t qi_request_max_fast(const quire_memory *memory);

/* Whether the request is a raw range in a shared page, to which the policy adds nothing, and for
   which the backend is not called. */
static inline bool qi_request_is_fast(const quire_memory *memory, const qi_request *request)
{
    return !request->name && !request->range.object && !request->zero && !request->dedicated &&
           !request->lazy && !request->upper && !request->unit &&
           !(request->host_use & QI_HOST_MAPPED && memory->maps_on_demand) &&
           request->range.size <= memory->max_fast_size;
}

/* Whether the options have a flag that the fast path does not serve: one word with all flags but
   existing_pages and within_budget, which allow a range of an existing page. */
QI_ALWAYS_INLINE bool qi_request_has_flags(const quire_allocation_options *options)
{
    enum { FIRST = offsetof(quire_allocation_options, host_write) };
    _Static_assert(offsetof(quire_allocation_options, upper) == FIRST + 7, "eight flags");
    static const union {
        bool flags[8];
        uint64_t word;
    } counted = {.flags = {true, true, true, true, true, false, false, true}};
    uint64_t word;
    memcpy(&word, (const char *)options + FIRST, sizeof word);
    return word & counted.word;
}

/*
 * Like qi_request_is_fast, for options that were not checked: false also if a check fails. Does
 * not look at the stream. A size of 0 wraps round to the largest number.
 */
QI_ALWAYS_INLINE bool qi_request_is_plain_up_to(const quire_memory *memory,
                                                const quire_allocation_options *options,
                                                uint64_t max_size)
{
    const uint64_t *unused = options->unused;
    uint64_t alignment = options->alignment;
    return !((uintptr_t)options->name | options->offset_alignment | options->lazy | unused[0] |
             unused[1] | unused[2]) &&
           !qi_request_has_flags(options) && options->size - 1 < max_size &&
           alignment <= memory->max_alignment && !(alignment & (alignment - 1));
}

static inline bool qi_request_is_plain(const quire_memory *memory,
                                       const quire_allocation_options *options)
{
    return qi_request_is_plain_up_to(memory, options, memory->max_fast_size);
}

/* Returns the range to take for options that are plain. An alignment of 0 means 1. */
static inline qi_range_request qi_range_request_from(const quire_allocation_options *options)
{
    return (qi_range_request){.size = options->size,
                              .alignment = options->alignment + !options->alignment,
                              .requested = options->size,
                              .user_data = options->user_data,
                              .extras = (uint8_t)(options->movable * QI_EXTRA_MOVABLE)};
}

#endif
