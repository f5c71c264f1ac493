/*
 * job.c - describes and runs the jobs of host streams.
 */
#include "backends/host/job.h"

#include <string.h>

qi_host_job qi_host_job_copy(const quire_copy_job *copy)
{
    qi_host_job job = {.copy = *copy};
    if (copy->to)
        job.copy.host_to = qi_host_page_of(copy->to)->bytes + copy->to_offset;
    if (copy->from)
        job.copy.host_from = qi_host_page_of(copy->from)->bytes + copy->from_offset;
    job.copy.to = job.copy.from = NULL; /* valid for the caller's call only; the job runs later */
    return job;
}

qi_host_job qi_host_job_fill(const quire_native_page *page, uint64_t offset, uint64_t size,
                             uint8_t value)
{
    return (qi_host_job){
        .copy = {.host_to = qi_host_page_of(page)->bytes + offset, .size = size},
        .value = value,
    };
}

void qi_host_job_run(const qi_host_job *job)
{
    if (job->function)
        job->function(job->user);
    if (job->copy.size && job->copy.host_from)
        qi_host_copy_rows(&job->copy);
    else if (job->copy.size)
        memset(job->copy.host_to, job->value, job->copy.size);
}
