/*
 * job.c - see job.h.
 */
#include "backends/host/job.h"

#include <string.h>

qi_host_job qi_host_job_copy(const quire_copy_job *copy)
{
    return (qi_host_job){
        .to = copy->to ? qi_host_page_bytes(copy->to) + copy->to_offset : copy->host_to,
        .from = copy->from ? qi_host_page_bytes(copy->from) + copy->from_offset : copy->host_from,
        .size = copy->size,
        .rows = copy->rows,
        .slices = copy->slices,
        .to_row = copy->to_row,
        .to_slice = copy->to_slice,
        .from_row = copy->from_row,
        .from_slice = copy->from_slice,
    };
}

qi_host_job qi_host_job_fill(const quire_native_page *page, uint64_t offset, uint64_t size,
                             uint8_t value)
{
    return (qi_host_job){.to = qi_host_page_bytes(page) + offset, .size = size, .value = value};
}

static void copy_rows(const qi_host_job *job)
{
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++)
            memcpy(job->to + slice * job->to_slice + row * job->to_row,
                   job->from + slice * job->from_slice + row * job->from_row, job->size);
}

void qi_host_job_do(const qi_host_job *job)
{
    if (job->function)
        job->function(job->user);
    if (job->from)
        copy_rows(job);
    else if (job->to)
        memset(job->to, job->value, job->size);
}
