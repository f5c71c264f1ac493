/*
 * job.h - a job of a host stream: bytes to be copied or filled, a function of the caller's, a point
 * of another stream to be waited for, or nothing, where only its place counts.
 */
#ifndef QUIRE_BACKENDS_HOST_JOB_H
#define QUIRE_BACKENDS_HOST_JOB_H

#include "backends/host/stream.h"

struct qi_host_job {
    qi_host_job *next;
    qi_host_stream *earlier; /* to be waited for until its job `until` is done; NULL: nothing */
    uint64_t until;
    void (*function)(void *user); /* NULL: none */
    void *user;
    /* between host addresses: size 0: no bytes move; host_from NULL: they become `value` */
    quire_copy_job copy;
    uint8_t value;
};

qi_host_job qi_host_job_copy(const quire_copy_job *copy);
qi_host_job qi_host_job_fill(const quire_native_page *page, uint64_t offset, uint64_t size,
                             uint8_t value);

/* Does it; what it waits for is the stream's. */
void qi_host_job_do(const qi_host_job *job);

#endif
