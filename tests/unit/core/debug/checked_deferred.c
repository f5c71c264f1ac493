/*
 * checked_deferred.c - checked builds and deferred frees: damage beside a waiting range is reported
 * when the range is released.
 */
#include "tests/support/streams.h"
#include "tests/support/unit.h"
#include "tests/support/watched.h"

enum { SIZE = 100, MANY = 70 }; /* more than a batch processes under one lock */

static void begin(watched *w, uint32_t kind)
{
    watched_prepare(w);
    streams_offer(&w->fake.table);
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .pages = {.page_size = 65536}});
}

static void use_all(watched *w, quire_allocation *many, quire_stream *stream)
{
    CHECK_OK(
        quire_allocate_batch(w->memory, &(quire_allocation_options){.size = SIZE}, many, MANY));
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_record_use(w->memory, many[i], stream));
}

static void spoil(watched *w, quire_allocation allocation)
{
    quire_native native = watched_native(w, allocation);
    watched_spoil(w, &native, SIZE);
}

static void expect_stale(watched *w, const quire_allocation *many)
{
    for (int i = 0; i < MANY; i++)
        CHECK_FAILS(quire_free(w->memory, many[i]), QUIRE_ERROR_STALE_HANDLE);
}

/*
 * The stream of their uses was destroyed: the frees wait for nothing, and the free itself finds the
 * damage.
 */
UNIT_EACH(checked_deferred, a_batch_whose_uses_have_passed_reports_damage_at_once, watched, w, kind,
          0, KINDS, begin(w, kind), watched_end)
{
    quire_memory_stats stats;
    quire_allocation many[MANY];
    quire_stream *held = NULL;
    CHECK_OK(quire_stream_create(w->device, &(quire_stream_options){.capture = true}, &held));
    use_all(w, many, held);
    CHECK_OK(quire_stream_destroy(&held));
    spoil(w, many[MANY - 1]);
    CHECK_FAILS(quire_free_batch(w->memory, many, MANY), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "after its last byte");
    expect_stale(w, many);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.deferred_count, 0);
    CHECK_OK(quire_memory_check(w->memory));
}

/* The free succeeds while the ranges wait. The log reports the damage when they are released. */
UNIT_EACH(checked_deferred, a_batch_that_waits_reports_damage_when_it_is_released, watched, w, kind,
          0, KINDS, begin(w, kind), watched_end)
{
    quire_memory_stats stats;
    quire_allocation many[MANY];
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(w->device, NULL, &stream));
    use_all(w, many, stream);
    spoil(w, many[0]);
    CHECK_OK(quire_free_batch(w->memory, many, MANY));
    expect_stale(w, many);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.deferred_count, MANY);
    CHECK_OK(quire_collect(w->memory, NULL)); /* marks the stream */
    CHECK_STR(w->log, "");
    streams_pass(stream);
    CHECK_OK(quire_collect(w->memory, NULL));
    CHECK_HAS(w->log, "after its last byte");
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.deferred_count, 0);
    CHECK_OK(quire_stream_destroy(&stream));
}
