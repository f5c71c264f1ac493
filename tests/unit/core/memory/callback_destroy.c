/*
 * callback_destroy.c - log sinks and hooks that call quire while a memory is destroyed.
 * tests/plain/callbacks.c tests every place on every backend.
 */
#include "src/core/state/memory.h"
#include "tests/support/fixture.h"

enum { PAGE = 64 * 1024 };

/* ---- a memory that is destroyed ------------------------------------------------------------- */

static void end_device(fixture *f)
{
    CHECK_OK(quire_device_destroy(&f->device));
    CHECK_EQ(f->fake.pages, 0);
    CHECK(f->fake.ended);
}

static uint32_t refused;

static void make_all_calls(void *user, quire_memory *memory, const quire_event *event)
{
    quire_allocation a, batch[3];
    quire_buffer buffer;
    quire_memory_stats stats;
    const quire_allocation_options small = {.size = 64},
                                   dedicated = {.size = PAGE, .dedicated = true};
    (void)user;
    if (event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    CHECK_FAILS(quire_allocate(memory, &small, &a), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocate(memory, &dedicated, &a), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocate_batch(memory, &small, batch, 3), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_buffer_create(memory, &(quire_buffer_options){.size = 64}, &buffer),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_memory_preallocate(memory, PAGE), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.page_count, 0);
    refused++;
}

UNIT(callback_destroy, a_memory_being_destroyed_has_no_pages_to_release)
{
    for (int all = 0; all < 2; all++) {
        fixture f;
        fixture_make(&f, &(quire_memory_options){.pages.page_size = PAGE});
        quire_allocation a = ALLOCATE(&f, .size = 64);
        CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = PAGE, .dedicated = true)));
        CHECK_OK(quire_memory_set_hook(f.memory, &(quire_hook){.event = make_all_calls}));
        refused = 0;
        if (all)
            quire_memory_destroy_all(&f.memory);
        else
            CHECK_OK(quire_free(f.memory, a));
        CHECK_OK(quire_memory_destroy(&f.memory));
        CHECK_EQ(refused, 2);
        end_device(&f);
    }
}

/* An allocation that a sink makes while all others are freed is freed too. */
static quire_allocation kept;

static void keep_one(void *user, quire_memory *memory, const quire_event *event)
{
    quire_allocation *first = user;
    if (event->kind == QUIRE_EVENT_FREED && !first->id)
        CHECK_OK(
            quire_allocate(memory, &(quire_allocation_options){.size = 64, .name = "kept"}, first));
}

UNIT_ON(callback_destroy, allocations_by_a_hook_during_destroy_are_freed, fixture, f,
        fixture_make(f, &(quire_memory_options){.pages.page_size = PAGE}), end_device)
{
    quire_stream *stream;
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.capture = true}, &stream));
    quire_allocation first = ALLOCATE(f, .size = 64), second = ALLOCATE(f, .size = 64);
    CHECK_OK(quire_free(f->memory, first));
    CHECK_OK(quire_record_use(f->memory, second, stream));
    CHECK_OK(quire_memory_set_hook(f->memory, &(quire_hook){.event = keep_one, .user = &kept}));
    quire_memory_destroy_all(&f->memory);
    CHECK(kept.id);
    CHECK_OK(quire_stream_destroy(&stream));
}

/*
 * Frees by a hook while all others are freed: also frees through the inbox of another shard, and
 * deferred frees.
 */
typedef struct frees_at_end {
    fixture f;
    quire_allocation left[2];
    quire_stream *stream; /* NULL means at once */
    uint32_t freed;
} frees_at_end;

static void free_others(void *user, quire_memory *memory, const quire_event *event)
{
    frees_at_end *h = user;
    quire_memory_stats stats;
    if (event->kind != QUIRE_EVENT_PAGE_GONE)
        return;
    while (h->freed < 2) {
        quire_allocation a = h->left[h->freed++];
        CHECK_OK(h->stream ? quire_free_on_stream(memory, a, h->stream) : quire_free(memory, a));
    }
    if (event->page == 0)
        return;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(stats.frees, 3);
}

/* The page of the first allocation is destroyed at once, perhaps as an orphan of a fork. */
static void destroy_with_hook(uint32_t shards, bool waits, bool is_orphan)
{
    frees_at_end h = {.freed = 0};
    fixture_make(&h.f,
                 &(quire_memory_options){.shards = shards,
                                         .pages = {.page_size = PAGE, .retained_empty_bytes = 1}});
    if (waits)
        CHECK_OK(
            quire_stream_create(h.f.device, &(quire_stream_options){.capture = true}, &h.stream));
    quire_allocation first = ALLOCATE(&h.f, .size = PAGE, .dedicated = true);
    uint32_t slot = 0;
    if (is_orphan)
        CHECK_OK(qi_slot_claim(&h.f.memory->slots, first, QI_ACCEPT_LIVE, &slot));
    h.f.memory->has_orphans = is_orphan;
    h.left[0] = ALLOCATE_ELSEWHERE(&h.f, .size = 64);
    h.left[1] = ALLOCATE_ELSEWHERE(&h.f, .size = 64, .name = "named");
    CHECK_OK(quire_memory_set_hook(h.f.memory, &(quire_hook){.event = free_others, .user = &h}));
    quire_memory_destroy_all(&h.f.memory);
    CHECK_EQ(h.freed, 2);
    CHECK_OK(quire_stream_destroy(&h.stream));
    end_device(&h.f);
}

UNIT(callback_destroy, allocations_that_a_hook_frees_during_destroy_are_freed_once)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        destroy_with_hook(shards, false, false);
        destroy_with_hook(shards, true, false);
        destroy_with_hook(shards, false, true);
    }
}

/* ---- attachments ---------------------------------------------------------------------------- */

static quire_attachment attached[3];
static quire_memory *attached_to;

static void detach_at_line(void *user, quire_log_level level, const char *line)
{
    (void)user, (void)level;
    if (!attached_to || !strstr(line, "still has"))
        return;
    for (int i = 0; i < 3; i++) {
        quire_memory_detach(attached_to, &attached[i]);
        memset(&attached[i], 0xaa, sizeof attached[i]);
    }
    attached_to = NULL;
}

UNIT_ON(callback_destroy, a_sink_may_destroy_the_child_that_a_message_names, fixture, f,
        fixture_prepare(f), end_device)
{
    const quire_device_options device = {.host_memory = unit_memory(),
                                         .log = {.write = detach_at_line}};
    CHECK_OK(quire_device_create(&f->fake.table, &f->fake, &device, &f->device));
    CHECK_OK(quire_memory_create(f->device, NULL, &f->memory));
    for (int i = 0; i < 3; i++) {
        attached[i] = (quire_attachment){.name = "attached"};
        quire_memory_attach(f->memory, &attached[i]);
    }
    attached_to = f->memory;
    CHECK_FAILS(quire_memory_destroy(&f->memory), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_memory_destroy(&f->memory));
}
