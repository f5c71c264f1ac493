/*
 * strict.c - see strict.h.
 */
#include "tests/contract/strict.h"

#include <stdlib.h>

#include "tests/contract/wrap.h"

/* The copy of a page that the host maps. */
typedef struct cache {
    struct cache *next;
    uint64_t handle; /* of the page */
    unsigned char *bytes;
} cache;

typedef struct strict_backend {
    contract_wrap wrap;
    pthread_mutex_t lock; /* of the list */
    cache *first;
} strict_backend;

static bool is_cached(const strict_backend *s, uint32_t kind)
{
    quire_memory_flags flags = s->wrap.info.kinds[kind].flags;
    return (flags & (QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT)) == QUIRE_HOST_VISIBLE;
}

/* Returns NULL for pages of other kinds. */
static cache *find(strict_backend *s, const quire_native_page *page)
{
    pthread_mutex_lock(&s->lock);
    cache *c = s->first;
    while (c && c->handle != page->handle)
        c = c->next;
    pthread_mutex_unlock(&s->lock);
    return c;
}

static quire_result strict_page_create(void *state, const quire_page_request *request,
                                       quire_native_page *page)
{
    strict_backend *s = state;
    quire_result result = s->wrap.base->page_create(s->wrap.state, request, page);
    if (result || !is_cached(s, request->kind))
        return result;
    cache *c = malloc(sizeof *c);
    CHECK(c);
    c->handle = page->handle;
    c->bytes = malloc(page->size);
    CHECK(c->bytes);
    memset(c->bytes, 0xee, page->size); /* bytes that were never in the page */
    pthread_mutex_lock(&s->lock);
    c->next = s->first;
    s->first = c;
    pthread_mutex_unlock(&s->lock);
    return QUIRE_SUCCESS;
}

static void strict_page_destroy(void *state, const quire_native_page *page)
{
    strict_backend *s = state;
    pthread_mutex_lock(&s->lock);
    cache **link = &s->first;
    while (*link && (*link)->handle != page->handle)
        link = &(*link)->next;
    cache *gone = *link;
    if (gone)
        *link = gone->next;
    pthread_mutex_unlock(&s->lock);
    if (gone)
        free(gone->bytes);
    free(gone);
    s->wrap.base->page_destroy(s->wrap.state, page);
}

static quire_result strict_map(void *state, const quire_native_page *page, void **pointer)
{
    strict_backend *s = state;
    cache *c = find(s, page);
    if (!c)
        return s->wrap.base->map(s->wrap.state, page, pointer);
    *pointer = c->bytes;
    return QUIRE_SUCCESS;
}

static void strict_unmap(void *state, const quire_native_page *page)
{
    strict_backend *s = state;
    if (!find(s, page))
        s->wrap.base->unmap(s->wrap.state, page);
}

/* Checks the rules of quire/backend.h for flush and invalidate by the core. */
static void check_atoms(const strict_backend *s, const quire_native_page *page, uint64_t offset,
                        uint64_t size)
{
    uint64_t atom = s->wrap.info.limits.non_coherent_atom;
    CHECK(size && offset < page->size && size <= page->size - offset);
    CHECK_EQ(offset % atom, 0);
    CHECK(size % atom == 0 || offset + size == page->size);
}

static quire_result strict_flush(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size)
{
    strict_backend *s = state;
    cache *c = find(s, page);
    CHECK(c);
    check_atoms(s, page, offset, size);
    return s->wrap.base->copy_to_page(s->wrap.state, page, offset, c->bytes + offset, size);
}

static quire_result strict_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                      uint64_t size)
{
    strict_backend *s = state;
    cache *c = find(s, page);
    CHECK(c);
    check_atoms(s, page, offset, size);
    return s->wrap.base->copy_from_page(s->wrap.state, page, offset, c->bytes + offset, size);
}

quire_result strict_open(const contract_subject *subject, const quire_host_memory *host,
                         contract_opened *opened)
{
    strict_backend *s = calloc(1, sizeof *s);
    CHECK(s);
    pthread_mutex_init(&s->lock, NULL);
    quire_result result = wrap_begin(&s->wrap, subject->options, host);
    if (!result) {
        quire_backend *table = &s->wrap.table;
        table->page_create = strict_page_create;
        table->page_destroy = strict_page_destroy;
        table->map = strict_map;
        table->unmap = strict_unmap;
        table->flush = strict_flush;
        table->invalidate = strict_invalidate;
        result = wrap_finish(&s->wrap, host, opened);
    }
    if (result)
        free(s);
    return result;
}

void strict_close(void *own)
{
    strict_backend *s = own;
    CHECK(!s->first);
    wrap_close(&s->wrap);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

quire_result strict_set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    const strict_backend *s = own;
    return s->wrap.inner->set_budget(s->wrap.opened.own, heap, bytes);
}
