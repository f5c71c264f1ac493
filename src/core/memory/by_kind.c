/*
 * by_kind.c - the search over the memory kinds of a device (see by_kind.h).
 *
 * Options that no memory accepts are refused first, so that no memory is made for them.
 * The best kind is chosen from those that were not tried, until one has room. So only the memories
 * that are tried are made, and the usual case looks at the kinds once.
 */
#include "src/core/memory/by_kind.h"

#include "src/base/result.h"
#include "src/core/memory/default_memory.h"

/* ---- the choice --------------------------------------------------------------------------- */

quire_result qi_by_kind_resolve(const quire_device *device, const quire_kind_request *given,
                                bool host_read, bool host_write, quire_kind_request *request)
{
    quire_kind_request wanted = given ? *given : (quire_kind_request){.intent = 0};
    bool is_open = !wanted.intent && !qi_kind_has_flags(&wanted);
    if (wanted.intent & QUIRE_INTENT_EXPORT)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "default memories do not export pages: create a memory with the intent");
    if (is_open)
        wanted.intent =
            (host_read ? QUIRE_INTENT_HOST_READ : 0) | (host_write ? QUIRE_INTENT_HOST_WRITE : 0);
    quire_result result = qi_kind_resolve(device, &wanted, request);
    if (result)
        return result;
    if (is_open && !wanted.intent) /* only preferred: another kind can serve a full device */
        request->preferred = QUIRE_DEVICE_LOCAL;
    if ((host_read || host_write) && !request->exact)
        request->required |= QUIRE_HOST_VISIBLE;
    return QUIRE_SUCCESS;
}

/* ---- the search --------------------------------------------------------------------------- */

/* Whether another memory may serve what one has refused. */
static bool is_refusal_of_one(quire_result result)
{
    return qi_is_out_of_pages(result) || result == QUIRE_ERROR_TOO_MANY_ALLOCATIONS ||
           result == QUIRE_ERROR_UNSUPPORTED;
}

typedef quire_result (*make_function)(void *work, quire_memory *memory);

static quire_result make_in_kind(quire_device *device, uint32_t kind, void *work,
                                 make_function make, quire_memory **memory)
{
    quire_result result = qi_default_memory(device, kind, memory);
    if (!result)
        result = make(work, *memory);
    if (result)
        *memory = NULL;
    return result;
}

/* Tries the kinds after the best one, which failed. Returns NO_SPACE if none is left. */
static quire_result search_on(quire_device *device, quire_kind_request request, uint32_t kind,
                              void *work, make_function make, quire_memory **memory)
{
    if (!request.mask)
        request.mask = UINT32_MAX;
    for (;;) {
        request.mask &= ~(UINT32_C(1) << kind);
        if (!request.mask || qi_kind_choose(device, &request, &kind))
            return QUIRE_ERROR_NO_SPACE;
        quire_result result = make_in_kind(device, kind, work, make, memory);
        if (!is_refusal_of_one(result))
            return result;
    }
}

/* Returns the error of the best kind if all refuse. A success keeps the thread's last error. */
static quire_result search(quire_device *device, const quire_kind_request *request, void *work,
                           make_function make, quire_memory **memory)
{
    uint32_t kind = 0;
    qi_error before;
    qi_error_save(&before);
    quire_result first = qi_kind_choose(device, request, &kind);
    if (first)
        return first;
    first = make_in_kind(device, kind, work, make, memory);
    if (!is_refusal_of_one(first))
        return first;
    qi_error error;
    qi_error_save(&error);
    quire_result result = search_on(device, *request, kind, work, make, memory);
    if (!result)
        qi_error_restore(&before);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    qi_error_restore(&error);
    return first;
}

/* ---- raw ranges --------------------------------------------------------------------------- */

typedef struct wanted_range {
    const quire_allocation_options *options;
    quire_allocation *allocation;
} wanted_range;

static quire_result allocate_in(void *work, quire_memory *memory)
{
    const wanted_range *wanted = work;
    return qi_allocation_create(memory, wanted->options, QI_COMMITTED, wanted->allocation);
}

quire_result qi_by_kind_allocate(quire_device *device, const quire_kind_request *request,
                                 const quire_allocation_options *options, quire_memory **memory,
                                 quire_allocation *allocation)
{
    wanted_range wanted = {options, allocation};
    const qi_request values = {.size = options->size,
                               .alignment = options->alignment + !options->alignment,
                               .name = options->name};
    quire_result result = qi_check_unused(options, "quire_allocation_options");
    if (!result)
        result = qi_request_check_values(&values);
    return result ? result : search(device, request, &wanted, allocate_in, memory);
}

/* ---- buffers and images ------------------------------------------------------------------- */

typedef struct wanted_object {
    qi_object_build *build;
    quire_allocation *allocation;
} wanted_object;

static quire_result build_in(void *work, quire_memory *memory)
{
    const wanted_object *wanted = work;
    return qi_object_try(wanted->build, memory, false, wanted->allocation);
}

/* Whether no kind of the mask has bytes. */
static bool are_objects_only(const quire_device *device, uint32_t mask)
{
    for (uint32_t i = 0; i < device->info.kind_count; i++)
        if (mask >> i & 1 && !(device->info.kinds[i].flags & QUIRE_OBJECTS_ONLY))
            return false;
    return true;
}

/* Leaves the kinds that can hold the object. Those without bytes are otherwise chosen only by their
   flag, which an object that no other kind can hold stands for. */
static quire_result restrict_kinds(const quire_device *device, quire_kind_request *kinds,
                                   uint32_t needed)
{
    uint32_t allowed = kinds->mask ? kinds->mask : UINT32_MAX;
    if (!(allowed & needed))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the object needs one of kinds %x, and the request allows %x", needed,
                            allowed);
    if (needed != UINT32_MAX) /* a mask of 0 allows all as well, and the sentences leave it out */
        kinds->mask = allowed & needed;
    if (are_objects_only(device, needed) && !kinds->exact && !(kinds->avoided & QUIRE_OBJECTS_ONLY))
        kinds->preferred |= QUIRE_OBJECTS_ONLY;
    return QUIRE_SUCCESS;
}

quire_result qi_by_kind_build(quire_device *device, const quire_kind_request *request,
                              qi_object_build *build, quire_memory **memory,
                              quire_allocation *allocation)
{
    quire_kind_request kinds = *request;
    wanted_object wanted = {build, allocation};
    quire_result result = qi_request_check_values(&build->request);
    if (!result)
        result = qi_object_require(build, device, NULL, false);
    if (!result)
        result = restrict_kinds(device, &kinds, build->needs.kind_mask);
    if (!result)
        result = search(device, &kinds, &wanted, build_in, memory);
    return result ? qi_object_give_up(build, result) : QUIRE_SUCCESS;
}
