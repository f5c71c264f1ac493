/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_copy.c - copies between pages of the fake backend (see fake.h).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake.h"

/* Returns whether rows and slices lie in the page and do not overlap. */
static bool fits(const quire_native_page *page, const quire_copy_job *job, uint64_t offset,
                 uint64_t row, uint64_t slice)
{
    uint64_t rows = (job->rows - 1) * row + job->size;
    uint64_t all = (job->slices - 1) * slice + rows;
    return offset <= fake_usable(page) && all <= fake_usable(page) - offset &&
           (job->rows == 1 || row >= job->size) && (job->slices == 1 || slice >= rows);
}

/* The first byte of an end; NULL if a backend never gets such a job. */
static unsigned char *begin_of(const quire_native_page *page, uint64_t offset, const void *host)
{
    if (page)
        return host ? NULL : fake_bytes(page) + offset;
    return (unsigned char *)(uintptr_t)host;
}

void fake_do_copy(const fake_backend *fake, const quire_copy_job *job)
{
    unsigned char *to = begin_of(job->to, job->to_offset, job->host_to);
    const unsigned char *from = begin_of(job->from, job->from_offset, job->host_from);
    bool takes_rows = fake->table.features & QUIRE_BACKEND_ROWS;
    if (!to || !from || !job->size || !job->rows || !job->slices ||
        (!takes_rows && job->rows * job->slices > 1))
        abort();
    if (job->to && !fits(job->to, job, job->to_offset, job->to_row, job->to_slice))
        abort();
    if (job->from && !fits(job->from, job, job->from_offset, job->from_row, job->from_slice))
        abort();
    for (uint64_t k = 0; k < job->slices; k++)
        for (uint64_t i = 0; i < job->rows; i++)
            memcpy(to + k * job->to_slice + i * job->to_row,
                   from + k * job->from_slice + i * job->from_row, job->size);
}

static quire_result copy(fake_backend *fake, fake_call call, const quire_copy_job *job)
{
    quire_result result = fake_enter(fake, call);
    bool both = job->to && job->from, many = job->rows * job->slices > 1;
    if ((job->to && job->to_state != fake) || (job->from && job->from_state != fake) ||
        (!both && (call == FAKE_COPY_PEER || !many || (!job->to && !job->from))))
        abort();
    if (result)
        return result;
    pthread_mutex_lock(&fake->lock);
    fake->last_copy = *job;
    pthread_mutex_unlock(&fake->lock);
    fake_do_copy(fake, job);
    return QUIRE_SUCCESS;
}

static quire_result fake_copy_pages(void *state, const quire_copy_job *job)
{
    return copy(state, FAKE_COPY_PAGES, job);
}

static quire_result fake_copy_peer(void *state, const quire_copy_job *job)
{
    return copy(state, FAKE_COPY_PEER, job);
}

void fake_offer_copies(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS;
    fake->table.copy_pages = fake_copy_pages;
    fake->table.copy_peer = fake_copy_peer;
}

/* The list in order, each part as a job of one row. */
static quire_result copy_many(fake_backend *fake, fake_call call, const quire_page_copy *copies,
                              uint64_t count)
{
    quire_result result = fake_enter(fake, call);
    if (!count)
        abort();
    if (result)
        return result;
    pthread_mutex_lock(&fake->lock);
    fake->longest_list = count > fake->longest_list ? count : fake->longest_list;
    pthread_mutex_unlock(&fake->lock);
    for (uint64_t i = 0; i < count; i++) {
        const bool is_write = call == FAKE_WRITE_MANY;
        const quire_page_copy *c = &copies[i];
        fake_do_copy(fake, &(quire_copy_job){.to = is_write ? c->page : NULL,
                                             .from = is_write ? NULL : c->page,
                                             .to_offset = is_write ? c->offset : 0,
                                             .from_offset = is_write ? 0 : c->offset,
                                             .host_to = is_write ? NULL : c->host,
                                             .host_from = is_write ? c->host : NULL,
                                             .size = c->size,
                                             .rows = 1,
                                             .slices = 1});
    }
    return QUIRE_SUCCESS;
}

static quire_result fake_write_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    return copy_many(state, FAKE_WRITE_MANY, copies, count);
}

static quire_result fake_read_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    return copy_many(state, FAKE_READ_MANY, copies, count);
}

void fake_offer_batches(fake_backend *fake)
{
    fake->table.features |= QUIRE_BACKEND_COPY_MANY;
    fake->table.write_many = fake_write_many;
    fake->table.read_many = fake_read_many;
    if (!(fake->table.features & QUIRE_BACKEND_STREAMS))
        return;
    fake->table.features |= QUIRE_BACKEND_STREAM_WRITE_MANY;
    fake->table.stream_write_many = fake_stream_write_many;
}

void fake_leave_out(fake_backend *fake, quire_backend_features features)
{
    quire_backend *t = &fake->table;
    t->features &= ~features;
    if (features & QUIRE_BACKEND_COPY_TO_PAGE)
        t->copy_to_page = NULL;
    if (features & QUIRE_BACKEND_COPY_FROM_PAGE)
        t->copy_from_page = NULL;
    if (features & QUIRE_BACKEND_FILL)
        t->fill_page = NULL;
    if (features & QUIRE_BACKEND_COPY_PAGES)
        t->copy_pages = NULL;
    if (features & QUIRE_BACKEND_COPY_PEER)
        t->copy_peer = NULL;
    if (features & QUIRE_BACKEND_STREAM_ORDER)
        t->stream_order = NULL;
    if (features & QUIRE_BACKEND_STREAM_COPY)
        t->stream_copy = NULL;
    if (features & QUIRE_BACKEND_STREAM_FILL)
        t->stream_fill = NULL;
    if (features & QUIRE_BACKEND_COPY_MANY)
        t->write_many = t->read_many = NULL;
    if (features & QUIRE_BACKEND_STREAM_WRITE_MANY)
        t->stream_write_many = NULL;
}
