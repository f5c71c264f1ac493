/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * insight.c - the history is a ring of the last events; a snapshot is a walk of the memories, with
 * the keys of torch.cuda.memory._snapshot. Both become JSON, as do statistics: see calls.h.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/adapters/torch/state.h"

/* ---- the history -------------------------------------------------------------------------- */

/* The last allocations, frees, refusals and changes of pages, in a ring. */

static struct {
    pthread_mutex_t mutex;
    atomic_bool is_on;
    torch_entry *entries;
    uint64_t room, added; /* the entries with the numbers from added - room on are there */
} history = {.mutex = PTHREAD_MUTEX_INITIALIZER};

bool torch_history_is_on(void)
{
    return atomic_load_explicit(&history.is_on, memory_order_relaxed);
}

quire_result torch_record_history(uint64_t count)
{
    quire_result result = torch_check_fork();
    if (result)
        return result;
    torch_entry *made =
        count && count <= SIZE_MAX / sizeof *made ? calloc(count, sizeof *made) : NULL;
    if (count && !made)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                          "no host memory for a history of this length");
    pthread_mutex_lock(&history.mutex);
    free(history.entries);
    history.entries = made;
    history.room = count;
    history.added = 0;
    atomic_store(&history.is_on, count > 0);
    pthread_mutex_unlock(&history.mutex);
    return QUIRE_SUCCESS;
}

void torch_history_add(torch_entry entry)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    entry.time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    pthread_mutex_lock(&history.mutex);
    if (history.room)
        history.entries[history.added++ % history.room] = entry;
    pthread_mutex_unlock(&history.mutex);
}

/* Calls `visit` for each entry of a device, the oldest first, under the history's mutex. */
static void visit_history(int device, void (*visit)(void *user, const torch_entry *entry),
                          void *user)
{
    pthread_mutex_lock(&history.mutex);
    for (uint64_t i = history.added > history.room ? history.added - history.room : 0;
         i < history.added; i++)
        if (history.entries[i % history.room].device == device)
            visit(user, &history.entries[i % history.room]);
    pthread_mutex_unlock(&history.mutex);
}

/* ---- pages in the history ----------------------------------------------------------------- */

/*
 * torch records segments; here they are the pages that are made and released. A page that is gone
 * has no address any more, so that the addresses are kept here, by page number.
 */

/* Requires the mutex. Returns false if host memory is exhausted. */
static bool reserve_page(torch_pages *pages, uint32_t number)
{
    uint32_t room = pages->room ? pages->room : 16;
    if (number < pages->room)
        return true;
    while (room <= number)
        room *= 2;
    torch_page *larger = realloc(pages->pages, room * sizeof *larger);
    if (!larger)
        return false;
    for (uint32_t i = pages->room; i < room; i++)
        larger[i] = (torch_page){.address = 0};
    pages->pages = larger;
    pages->room = room;
    return true;
}

static void record_page(const torch_pages *pages, torch_action action, const torch_page *page)
{
    if (page->address && torch_history_is_on())
        torch_history_add((torch_entry){.action = action,
                                        .device = pages->device,
                                        .address = page->address,
                                        .size = page->size,
                                        .pool = pages->id});
}

/* Requires the mutex. */
static void page_gone(torch_pages *pages, uint32_t number)
{
    if (number >= pages->room)
        return;
    record_page(pages, TORCH_PAGE_GONE, &pages->pages[number]);
    pages->pages[number] = (torch_page){.address = 0};
}

/* Events of different threads may come in another order: a page that is gone again is left out. */
static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    torch_pages *pages = user;
    quire_page_info info;
    bool is_made = event->kind == QUIRE_EVENT_PAGE_MADE;
    if (is_made && quire_page_get_info(memory, event->page, &info))
        return;
    pthread_mutex_lock(&pages->mutex);
    if (!is_made) {
        page_gone(pages, event->page);
    } else if (reserve_page(pages, event->page)) {
        torch_page *page = &pages->pages[event->page];
        *page = (torch_page){.address = info.address, .size = info.size};
        record_page(pages, TORCH_PAGE_MADE, page);
    }
    pthread_mutex_unlock(&pages->mutex);
}

quire_result torch_pages_watch(torch_pages *pages, int device, torch_pool_id id,
                               quire_memory *memory)
{
    const quire_hook hook = {
        .event = on_event, .user = pages, .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE};
    pages->device = device;
    pages->id = id;
    pthread_mutex_init(&pages->mutex, NULL);
    return quire_memory_set_hook(memory, &hook) ? torch_fail_quire("a memory") : QUIRE_SUCCESS;
}

void torch_pages_finish(torch_pages *pages)
{
    pthread_mutex_destroy(&pages->mutex);
    free(pages->pages);
    *pages = (torch_pages){.room = 0};
}

/* ---- texts -------------------------------------------------------------------------------- */

/* A text that grows. */
typedef struct text {
    char *bytes;
    size_t used, room;
    bool failed; /* host memory is exhausted */
} text;

static void put(text *t, const char *format, ...) QUIRE_PRINTF(2, 3);

static void put(text *t, const char *format, ...)
{
    char piece[1024];
    va_list args;
    va_start(args, format);
    size_t size = (size_t)vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    if (!t->failed && t->room - t->used <= size) {
        size_t room = 2 * (t->room + size + 1);
        char *bytes = realloc(t->bytes, room);
        t->failed = !bytes;
        t->bytes = bytes ? bytes : t->bytes;
        t->room = bytes ? room : t->room;
    }
    if (t->failed)
        return;
    for (size_t i = 0; i <= size; i++)
        t->bytes[t->used + i] = piece[i];
    t->used += size;
}

/* A comma before every element of a list but the first. */
static const char *next(bool *is_first)
{
    const char *comma = *is_first ? "" : ",\n";
    *is_first = false;
    return comma;
}

static char *finish(text *t)
{
    if (!t->failed)
        return t->bytes;
    free(t->bytes);
    return NULL;
}

/* ---- statistics --------------------------------------------------------------------------- */

static void put_memory(text *t, quire_memory *memory)
{
    quire_memory_stats s;
    if (quire_memory_get_stats(memory, &s))
        return;
    put(t,
        "\"requested_bytes\": %" PRIu64 ", \"live_bytes\": %" PRIu64
        ", \"reserved_bytes\": %" PRIu64 ", \"waiting_bytes\": %" PRIu64
        ", \"asleep_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64,
        s.requested_bytes, s.live_bytes, s.reserved_bytes, s.deferred_bytes, s.asleep_bytes,
        s.allocation_count - s.deferred_count);
    put(t,
        ", \"peak_requested_bytes\": %" PRIu64 ", \"peak_live_bytes\": %" PRIu64
        ", \"peak_reserved_bytes\": %" PRIu64 ", \"peak_allocations\": %" PRIu64,
        s.peak_requested_bytes, s.peak_live_bytes, s.peak_reserved_bytes, s.peak_allocation_count);
    put(t,
        ", \"allocated_count\": %" PRIu64 ", \"freed_count\": %" PRIu64 ", \"pages\": %" PRIu64
        ", \"pages_created\": %" PRIu64 ", \"pages_destroyed\": %" PRIu64,
        s.allocations, s.frees, s.page_count, s.pages_created, s.pages_destroyed);
}

/* Requires the lock for reading. */
static void put_pool(text *t, const torch_device *d, const torch_pool *p)
{
    uint32_t begun = 0;
    for (const torch_begun *b = d->begun; b; b = b->next)
        begun += b->pool == p;
    put(t, "{\"id\": [%" PRIu64 ", %" PRIu64 "], \"users\": %" PRIu32 ", \"begun\": %" PRIu32 ", ",
        p->id.first, p->id.second, p->users, begun);
    put_memory(t, p->memory);
    put(t, "}");
}

/* Requires the lock for reading. */
static void put_device(text *t, torch_device *d)
{
    quire_budget_info budget = {.limit = 0};
    quire_device_stats stats = {.reserved_bytes = 0};
    bool is_first = true;
    if (quire_device_get_budget(d->device, 0, &budget) || quire_device_get_stats(d->device, &stats))
        torch_fail_quire("quire");
    put(t,
        "{\"device\": %d, \"total_bytes\": %" PRIu64 ", \"limit_bytes\": %" PRIu64
        ", \"reserved_bytes\": %" PRIu64 ", \"peak_reserved_bytes\": %" PRIu64,
        d->ordinal, budget.size, budget.limit, stats.reserved_bytes, stats.peak_reserved_bytes);
    put(t, ", \"refused_count\": %llu, \"retried_count\": %llu, \"late_count\": %u, \"memory\": {",
        atomic_load(&d->refused), atomic_load(&d->retried), atomic_load(&d->late_count));
    put_memory(t, d->memory);
    put(t, "}, \"pools\": [");
    for (const torch_pool *p = d->pools; p; p = p->next) {
        put(t, "%s", next(&is_first));
        put_pool(t, d, p);
    }
    put(t, "]}");
}

char *torch_statistics(void)
{
    text t = {.bytes = NULL};
    bool is_first = true;
    put(&t, "{\"quire\": \"%s\", \"devices\": [", quire_version());
    for (int i = 0; i < TORCH_MAX_DEVICES && !torch_is_forked(); i++) {
        torch_device *d = torch_device_get(i);
        if (!d)
            continue;
        put(&t, "%s", next(&is_first));
        pthread_rwlock_rdlock(&d->lock);
        put_device(&t, d);
        pthread_rwlock_unlock(&d->lock);
    }
    put(&t, "]}\n");
    return finish(&t);
}

static quire_result restart_peaks(quire_memory *memory, bool is_open)
{
    quire_memory_stats stats;
    quire_result result = is_open ? quire_memory_pop_stats(memory, &stats) : QUIRE_SUCCESS;
    return result ? result : quire_memory_push_stats(memory);
}

/* The peaks of pools and of the whole device stay those since the beginning. */
quire_result torch_reset_peaks(int device)
{
    torch_device *d = NULL;
    quire_result result = torch_check_fork();
    if (!result)
        result = torch_device_open(device, &d);
    if (result)
        return result;
    pthread_rwlock_wrlock(&d->lock);
    result = restart_peaks(d->memory, d->counts_peaks);
    d->counts_peaks = !result;
    pthread_rwlock_unlock(&d->lock);
    return result ? torch_fail_quire("quire") : QUIRE_SUCCESS;
}

/* ---- snapshots ---------------------------------------------------------------------------- */

/* What the walk of a memory writes: a page is a segment, its ranges are the blocks. Of an elastic
   page each stretch with memory is a segment, as of an expandable segment of torch. */
typedef struct walk {
    text *t;
    int device;
    torch_pool_id pool;
    quire_memory *memory;
    bool is_first_segment, is_open;
    uint32_t page;
    uint64_t address; /* of the page */
    uint64_t begin;   /* of the segment, as an offset in the page */
    uint64_t end;     /* of what is written, likewise */
    uint64_t size;    /* of the page; 0 if it is elastic */
    uint64_t live;    /* bytes of the segment's blocks */
} walk;

static void put_block(walk *w, uint64_t offset, uint64_t size, uint64_t requested,
                      const char *state)
{
    put(w->t,
        "%s{\"address\": %" PRIu64 ", \"size\": %" PRIu64 ", \"requested_size\": %" PRIu64
        ", \"state\": \"%s\", \"frames\": []}",
        offset > w->begin ? ", " : "", w->address + offset, size, requested, state);
}

/* The viewer adds up the sizes of the blocks, so that they leave no byte of the segment out. */
static void end_segment(walk *w)
{
    if (!w->is_open)
        return;
    if (w->end < w->size)
        put_block(w, w->end, w->size - w->end, 0, "inactive");
    put(w->t,
        "], \"total_size\": %" PRIu64 ", \"allocated_size\": %" PRIu64 ", \"active_size\": %" PRIu64
        ", \"requested_size\": %" PRIu64 "}",
        w->size ? w->size : w->end - w->begin, w->live, w->live, w->live);
    w->is_open = false;
}

static void begin_segment(walk *w, const quire_item *item, uint64_t begin)
{
    quire_page_info page = {.address = 0};
    const bool is_elastic = item->page_bytes < item->page_size;
    end_segment(w);
    if (quire_page_get_info(w->memory, item->page, &page))
        page = (quire_page_info){.address = 0};
    w->is_open = true;
    w->page = item->page;
    w->address = page.address;
    w->size = is_elastic ? 0 : item->page_size;
    w->begin = w->end = is_elastic ? begin : 0;
    w->live = 0;
    put(w->t,
        "%s{\"device\": %d, \"address\": %" PRIu64 ", \"stream\": 0, "
        "\"segment_type\": \"large\", \"segment_pool_id\": [%" PRIu64 ", %" PRIu64
        "], \"is_expandable\": %s, \"frames\": [], \"blocks\": [",
        next(&w->is_first_segment), w->device, w->address + w->begin, w->pool.first, w->pool.second,
        is_elastic ? "true" : "false");
}

static bool visit(void *user, const quire_item *item)
{
    walk *w = user;
    const uint64_t begin = item->offset - item->left_padding;
    if (item->asleep) { /* no memory: the stretch ends */
        end_segment(w);
        return !w->t->failed;
    }
    if (!w->is_open || w->page != item->page || (!w->size && begin > w->end))
        begin_segment(w, item, begin);
    if (begin > w->end)
        put_block(w, w->end, begin - w->end, 0, "inactive");
    put_block(w, begin, item->size + item->left_padding, item->is_free ? 0 : item->requested,
              item->is_free         ? "inactive"
              : item->allocation.id ? "active_allocated"
                                    : "active_pending_free");
    w->end = item->offset + item->size;
    w->live += item->is_free ? 0 : item->size + item->left_padding;
    return !w->t->failed;
}

/* Requires the lock for reading. */
static void put_segments(text *t, torch_device *d, bool *is_first)
{
    const torch_pool *p = NULL;
    do {
        walk w = {.t = t,
                  .device = d->ordinal,
                  .pool = p ? p->id : (torch_pool_id){0, 0},
                  .memory = p ? p->memory : d->memory,
                  .is_first_segment = *is_first};
        if (quire_memory_walk(w.memory, visit, &w))
            t->failed = true;
        end_segment(&w);
        *is_first = w.is_first_segment;
        p = p ? p->next : d->pools;
    } while (p);
}

typedef struct trace {
    text *t;
    bool is_first;
} trace;

static void put_entry(trace *r, const torch_entry *e, const char *action)
{
    put(r->t,
        "%s{\"action\": \"%s\", \"%s\": %" PRIu64 ", \"size\": %" PRIu64 ", \"stream\": %" PRId64
        ", \"time_us\": %" PRIu64 ", \"pool_id\": [%" PRIu64 ", %" PRIu64 "], \"frames\": []}",
        next(&r->is_first), action, e->action == TORCH_OOM ? "device_free" : "addr", e->address,
        e->size, (int64_t)e->stream, e->time_us, e->pool.first, e->pool.second);
}

/* The range of a free is available to its stream at once. */
static void visit_entry(void *user, const torch_entry *e)
{
    static const char *const ACTIONS[] = {[TORCH_ALLOC] = "alloc",
                                          [TORCH_FREE] = "free_completed",
                                          [TORCH_OOM] = "oom",
                                          [TORCH_PAGE_MADE] = "segment_alloc",
                                          [TORCH_PAGE_GONE] = "segment_free"};
    if (e->action == TORCH_FREE)
        put_entry(user, e, "free_requested");
    put_entry(user, e, ACTIONS[e->action]);
}

char *torch_snapshot(void)
{
    text t = {.bytes = NULL};
    bool is_first = true;
    int last = -1;
    put(&t, "{\"segments\": [");
    for (int i = 0; i < TORCH_MAX_DEVICES && !torch_is_forked(); i++) {
        torch_device *d = torch_device_get(i);
        if (!d)
            continue;
        last = i;
        pthread_rwlock_rdlock(&d->lock);
        put_segments(&t, d, &is_first);
        pthread_rwlock_unlock(&d->lock);
    }
    put(&t, "],\n\"device_traces\": [");
    for (int i = 0; i <= last; i++) {
        trace r = {.t = &t, .is_first = true};
        put(&t, "%s[", i ? ",\n" : "");
        visit_history(i, visit_entry, &r);
        put(&t, "]");
    }
    put(&t, "],\n\"allocator_settings\": {}, \"external_annotations\": []}\n");
    return finish(&t);
}
