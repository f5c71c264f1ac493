/*
 * copy.c - copies and fills that complete before they return. Every host page is mapped, so each
 * one is a memcpy or memset, also between two host devices of this process.
 */
#include <string.h>

#include "backends/host/host.h"

quire_result qi_host_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memcpy(qi_host_page_of(page)->bytes + offset, data, size);
    return result;
}

quire_result qi_host_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memcpy(data, qi_host_page_of(page)->bytes + offset, size);
    return result;
}

/* The first byte of one end of a copy: in a page, or in host memory where the page is NULL. */
static char *address_of(const quire_native_page *page, uint64_t offset, const void *host)
{
    return page ? qi_host_page_of(page)->bytes + offset : (char *)(uintptr_t)host;
}

void qi_host_copy_rows(const quire_copy_job *job)
{
    char *to = address_of(job->to, job->to_offset, job->host_to);
    const char *from = address_of(job->from, job->from_offset, job->host_from);
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++)
            memcpy(to + slice * job->to_slice + row * job->to_row,
                   from + slice * job->from_slice + row * job->from_row, job->size);
}

/* Also serves as copy_peer: pages of other host devices are mapped in this process too. */
quire_result qi_host_copy_pages(void *state, const quire_copy_job *job)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        qi_host_copy_rows(job);
    return result;
}

quire_result qi_host_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value)
{
    quire_result result = qi_host_check_lost(state);
    if (!result)
        memset(qi_host_page_of(page)->bytes + offset, value, size);
    return result;
}
