/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * strict.c - see strict.h.
 */
#include "tests/contract/strict.h"

#include <stdlib.h>

#include "tests/contract/wrap.h"

static bool is_cached(const contract_wrap *s, uint32_t kind)
{
    quire_memory_flags flags = s->info.kinds[kind].flags;
    return (flags & (QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT)) == QUIRE_HOST_VISIBLE;
}

/* The host sees bytes that were never in the page. */
static quire_result strict_page_create(void *state, const quire_page_request *request,
                                       quire_native_page *page)
{
    const contract_wrap *s = state;
    void *pointer = NULL;
    quire_result result = s->base->page_create(s->state, request, page);
    if (result || !is_cached(s, request->kind))
        return result;
    CHECK_OK(s->base->map(s->state, page, &pointer));
    memset(pointer, 0xee, request->size);
    s->base->unmap(s->state, page);
    return QUIRE_SUCCESS;
}

/* Checks the rules of quire/backend.h for flush and invalidate by the core. */
static void check_atoms(const contract_wrap *s, const quire_native_page *page, uint64_t offset,
                        uint64_t size)
{
    uint64_t atom = s->info.limits.non_coherent_atom;
    CHECK(size && offset < page->size && size <= page->size - offset);
    CHECK_EQ(offset % atom, 0);
    CHECK(size % atom == 0 || offset + size == page->size);
}

static quire_result strict_flush(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size)
{
    const contract_wrap *s = state;
    check_atoms(s, page, offset, size);
    return s->base->flush(s->state, page, offset, size);
}

static quire_result strict_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                      uint64_t size)
{
    const contract_wrap *s = state;
    check_atoms(s, page, offset, size);
    return s->base->invalidate(s->state, page, offset, size);
}

quire_result strict_open(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened)
{
    contract_wrap *s = calloc(1, sizeof *s);
    CHECK(s);
    quire_result result = wrap_begin(s, subject->options, host);
    if (!result) {
        quire_backend *table = &s->table;
        table->page_create = strict_page_create;
        table->flush = strict_flush;
        table->invalidate = strict_invalidate;
        result = wrap_finish(s, host, opened);
    }
    if (result)
        free(s);
    return result;
}

void strict_close(void *own)
{
    contract_wrap *s = own;
    wrap_close(s);
    free(s);
}

quire_result strict_set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    const contract_wrap *s = own;
    return s->inner->set_budget(s->opened.own, heap, bytes);
}
