/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - one call of the driver sets who may access all mapped bytes of a page. Requests that
 * cannot succeed are refused before it, with the reason, because the driver reports only "invalid".
 * An elastic page keeps the list of locations for chunks that are backed later.
 */
#include "backends/cuda/access.h"

#include <string.h>

#include "backends/cuda/backing.h"
#include "backends/cuda/device.h"
#include "backends/cuda/virtual.h"
#include "src/base/result.h"

/* ---- checks ------------------------------------------------------------------------------- */

quire_result qi_cuda_check_location(const quire_cuda_access *access)
{
    if (access->location != QUIRE_CUDA_AT_DEVICE && access->location != QUIRE_CUDA_AT_HOST &&
        access->location != QUIRE_CUDA_AT_HOST_NUMA)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown location %u",
                            (uint64_t)access->location);
    if (access->id < 0)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "location %d is negative", access->id);
    return QUIRE_SUCCESS;
}

/* A list must not name a location twice, because the result would depend on the order. */
quire_result qi_cuda_check_accesses(const quire_cuda_access *list, uint32_t count)
{
    if (!count || count > QUIRE_CUDA_MAX_ACCESSES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "access for %u location%s: 1 to %u are possible", count,
                            QUIRE_CUDA_MAX_ACCESSES);
    for (uint32_t i = 0; i < count; i++) {
        quire_result result = qi_cuda_check_location(&list[i]);
        if (result)
            return result;
        if (list[i].flags != QUIRE_CUDA_NO_ACCESS && list[i].flags != QUIRE_CUDA_READ &&
            list[i].flags != QUIRE_CUDA_READ_WRITE)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown access flags %u",
                                (uint64_t)list[i].flags);
        for (uint32_t j = 0; j < i; j++)
            if (list[i].location == list[j].location && list[i].id == list[j].id)
                return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                    "locations %u and %u are the same", j, i);
    }
    return QUIRE_SUCCESS;
}

/* Refuses what is known to be impossible with its reason, because the driver reports "invalid"
   only. */
quire_result qi_cuda_check_peer(const qi_cuda *cuda, int id)
{
    int can = 0;
    qi_cu_result code = QI_CUDA_ERROR_NOT_SUPPORTED;
    if (cuda->f.DeviceCanAccessPeer)
        code = cuda->f.DeviceCanAccessPeer(&can, id, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceCanAccessPeer of device %d", id);
    return can ? QUIRE_SUCCESS
               : qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device %d cannot reach device %d", id,
                              cuda->device);
}

static quire_result check_reach(const qi_cuda *cuda, const qi_cuda_page *page,
                                const quire_cuda_access *access)
{
    bool is_device_page = cuda->kinds[page->kind].description.flags & QUIRE_DEVICE_LOCAL;
    if (access->location != QUIRE_CUDA_AT_DEVICE)
        return is_device_page ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                                        "the host cannot reach pages of device memory")
                              : QUIRE_SUCCESS;
    if (!is_device_page || access->id == cuda->device)
        return QUIRE_SUCCESS;
    return qi_cuda_check_peer(cuda, access->id);
}

/* Finds the page and the address of an allocation. UNSUPPORTED unless the page is of virtual memory
   management. */
static quire_result find_page(const quire_memory *memory, quire_allocation allocation,
                              qi_cuda **cuda, qi_cuda_page **page, qi_cu_ptr *address)
{
    quire_native native;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, cuda);
    if (result)
        return result;
    *page = qi_cuda_page_of(&native.page);
    *address = (*page)->reserved + native.offset;
    if ((*page)->type == QI_CUDA_PAGE_VIRTUAL)
        return QUIRE_SUCCESS;
    return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                   "the page is not of virtual memory management: its access cannot be changed");
}

/* ---- setting ------------------------------------------------------------------------------ */

/* The host is one place: its access does not depend on the node that names it. */
static bool is_same_place(const qi_cu_location *a, const qi_cu_location *b)
{
    bool is_device = a->type == QI_CU_MEM_LOCATION_TYPE_DEVICE;
    if (is_device != (b->type == QI_CU_MEM_LOCATION_TYPE_DEVICE))
        return false;
    return !is_device || a->id == b->id;
}

/* Merges a change into the list of locations with access. Locations without access are left out,
   because a new mapping is accessible from none. Returns false if the list is full. */
static bool merge(qi_cu_access_desc *list, uint32_t *count, const qi_cu_access_desc *set)
{
    uint32_t at = 0;
    while (at < *count && !is_same_place(&list[at].location, &set->location))
        at++;
    if (set->flags == QI_CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        if (at < *count)
            list[at] = list[--*count];
        return true;
    }
    if (at == QUIRE_CUDA_MAX_ACCESSES)
        return false;
    list[at] = *set;
    *count += at == *count;
    return true;
}

/* In the context, without a lock. */
static qi_cu_result set_fixed(const qi_cuda *cuda, const qi_cuda_page *page,
                              const qi_cu_access_desc *list, uint32_t count)
{
    qi_cu_result code = QI_CUDA_SUCCESS;
    uint32_t pauses = 0;
    do
        code = qi_cuda_chunks_access(cuda, page->chunks, page->reserved, page->padded, list, count);
    while (qi_cuda_retry_access(code, &pauses, NULL));
    return code;
}

static quire_result report(const qi_cuda *cuda, qi_cu_result code, const qi_cuda_page *page,
                           uint32_t count)
{
    return code ? qi_cuda_fail(&cuda->f, code, "cuMemSetAccess of %s for %u locations",
                               qi_bytes(page->padded).text, count)
                : QUIRE_SUCCESS;
}

/* The locations with access to an elastic page after a change. */
typedef struct access_list {
    qi_cu_access_desc access[QUIRE_CUDA_MAX_ACCESSES];
    uint32_t count;
} access_list;

/* Requires the page's mutex. */
static quire_result merge_all(const qi_cuda_elastic *elastic, const qi_cu_access_desc *all,
                              uint32_t count, access_list *list)
{
    memcpy(list->access, elastic->access, sizeof list->access);
    list->count = elastic->access_count;
    for (uint32_t i = 0; i < count; i++)
        if (!merge(list->access, &list->count, &all[i]))
            return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                                "an elastic page has at most %u location%s with access",
                                QUIRE_CUDA_MAX_ACCESSES);
    return QUIRE_SUCCESS;
}

/* Requires the page's mutex. Gives the locations of `all` the access that the record has, as far as
   the driver does. */
static void take_back(const qi_cuda *cuda, const qi_cuda_page *page, const qi_cu_access_desc *all,
                      uint32_t count)
{
    const qi_cuda_elastic *elastic = page->elastic;
    qi_cu_access_desc old[QUIRE_CUDA_MAX_ACCESSES];
    for (uint32_t i = 0; i < count; i++) {
        old[i] = all[i];
        old[i].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_NONE;
        for (uint32_t j = 0; j < elastic->access_count; j++)
            if (is_same_place(&elastic->access[j].location, &all[i].location))
                old[i].flags = elastic->access[j].flags;
    }
    qi_cuda_elastic_access(cuda, page, old, count);
}

/*
 * Sets access for everything that is backed, and records it for chunks that are backed later. Other
 * threads may change the list and the chunks during a pause, so each attempt begins afresh.
 */
static quire_result set_elastic(qi_cuda *cuda, const qi_cuda_page *page,
                                const qi_cu_access_desc *all, uint32_t count)
{
    qi_cuda_elastic *elastic = page->elastic;
    access_list list;
    quire_result result = QUIRE_SUCCESS;
    qi_cu_result code = QI_CUDA_SUCCESS;
    uint32_t pauses = 0;
    pthread_mutex_lock(&elastic->mutex);
    do {
        result = merge_all(elastic, all, count, &list);
        if (!result)
            code = qi_cuda_elastic_access(cuda, page, all, count);
    } while (!result && qi_cuda_retry_access(code, &pauses, &elastic->mutex));
    if (!result && code)
        take_back(cuda, page, all, count);
    if (!result)
        result = report(cuda, code, page, count);
    if (!result) {
        memcpy(elastic->access, list.access, sizeof list.access);
        elastic->access_count = list.count;
    }
    pthread_mutex_unlock(&elastic->mutex);
    return result;
}

quire_result qi_cuda_page_set_access(qi_cuda *cuda, const qi_cuda_page *page,
                                     const quire_cuda_access *list, uint32_t count)
{
    qi_cu_access_desc all[QUIRE_CUDA_MAX_ACCESSES];
    for (uint32_t i = 0; i < count; i++) {
        quire_result result = check_reach(cuda, page, &list[i]);
        if (result)
            return result;
        all[i] = (qi_cu_access_desc){
            .location = {.type = list[i].location, .id = list[i].id},
            .flags = list[i].flags,
        };
    }
    if (page->elastic)
        return set_elastic(cuda, page, all, count);
    return report(cuda, set_fixed(cuda, page, all, count), page, count);
}

quire_result quire_cuda_set_access(quire_memory *memory, quire_allocation allocation,
                                   const quire_cuda_access *accesses, uint32_t count)
{
    if (!memory || !accesses)
        return qi_fail_null("quire_cuda_set_access", !memory ? "memory" : "accesses");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    qi_cu_ptr address = 0;
    quire_result result = qi_cuda_check_accesses(accesses, count);
    if (!result)
        result = find_page(memory, allocation, &cuda, &page, &address);
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_page_set_access(cuda, page, accesses, count);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- querying ----------------------------------------------------------------------------- */

quire_result quire_cuda_get_access(const quire_memory *memory, quire_allocation allocation,
                                   quire_cuda_access *access)
{
    if (access)
        access->flags = QUIRE_CUDA_NO_ACCESS;
    if (!memory || !access)
        return qi_fail_null("quire_cuda_get_access", !memory ? "memory" : "access");
    qi_cuda *cuda = NULL;
    qi_cuda_page *page = NULL;
    qi_cu_ptr address = 0;
    unsigned long long flags = 0;
    quire_result result = qi_cuda_check_location(access);
    if (!result)
        result = find_page(memory, allocation, &cuda, &page, &address);
    if (!result && !cuda->f.MemGetAccess)
        result = qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver does not report who has access");
    if (!result)
        result = qi_cuda_enter(cuda);
    if (result)
        return result;
    const qi_cu_location location = {.type = access->location, .id = access->id};
    qi_cu_result code = cuda->f.MemGetAccess(&flags, &location, address);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemGetAccess");
    access->flags = (quire_cuda_access_flags)flags;
    return QUIRE_SUCCESS;
}
