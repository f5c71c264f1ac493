/*
 * job.h - a job of a host stream: a copy, a fill, a call of the caller's function, a wait for a
 * point of another stream, or an empty job, whose number serves as a point.
 */
#ifndef QUIRE_BACKENDS_HOST_JOB_H
#define QUIRE_BACKENDS_HOST_JOB_H

#include "backends/host/stream.h"

struct qi_host_job {
    qi_host_job *next;
    qi_host_stream *earlier; /* the job waits until `until` of this stream has passed; or NULL */
    uint64_t until;
    void (*function)(void *user); /* NULL: the job calls nothing */
    void *user;
    /* between host addresses; size 0: no bytes move; host_from NULL: fills with `value` */
    quire_copy_job copy;
    uint8_t value;
};

/* Describe a copy or a fill. Page offsets become host addresses: the job keeps no caller pointer
   to a quire_native_page. */
qi_host_job qi_host_job_copy(const quire_copy_job *copy);
qi_host_job qi_host_job_fill(const quire_native_page *page, uint64_t offset, uint64_t size,
                             uint8_t value);

/* Runs a job, without its wait. Requires that no lock is held: the caller's function may block. */
void qi_host_job_run(const qi_host_job *job);

#endif
