/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_check.c - quire_memory_check finds damage in the records of deferred frees: each field
 * is changed by hand, reported, and restored.
 */
#include "src/core/deferred/stream_queue.h"
#include "tests/support/deferred_free.h"

static const char *const says = "the queues of deferred frees are inconsistent";

static qi_shard *shard;
static qi_stream_queue *stream_queue; /* of a */

/*
 * Stream `a` has seven frees in the list, four of them late, and two fresh ones; stream `b` has a
 * fresh one.
 */
static void begin_waiting(bench *w)
{
    static const int order[] = {4, 5, 6, 2, 1, 3, 0};
    quire_point points[7];
    begin_with(w, &(quire_memory_options){0});
    for (int i = 0; i < 7; i++)
        points[i] = mark(w->a);
    for (int i = 0; i < 7; i++)
        CHECK_OK(
            quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &points[order[i]]));
    for (int i = 0; i < 3; i++)
        CHECK_OK(
            quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), i < 2 ? w->a : w->b));
    shard = w->f.memory->shards[0];
    stream_queue = qi_stream_queue_find(shard, w->a);
    CHECK(stream_queue && stream_queue->marked.first && stream_queue->fresh.first);
    CHECK_OK(quire_memory_check(w->f.memory));
}

#define CASE(name) UNIT_ON(deferred_check, name, bench, w, begin_waiting(w), end)

/* The check reports the changed field, and succeeds after it is restored. */
#define DAMAGE(w, field, damaged)                                                                  \
    do {                                                                                           \
        __typeof__(field) kept_ = (field);                                                         \
        (field) = (damaged);                                                                       \
        CHECK_FAILS(quire_memory_check((w)->f.memory), QUIRE_ERROR_CORRUPTED);                     \
        CHECK_HAS(quire_last_error(), says);                                                       \
        (field) = kept_;                                                                           \
        CHECK_OK(quire_memory_check((w)->f.memory));                                               \
    } while (0)

CASE(counts_and_bytes_that_are_not_the_sum_of_the_waiting_frees)
{
    quire_memory_stats *stats = &shard->stats;
    DAMAGE(w, stats->deferred_count, stats->deferred_count + 1);
    DAMAGE(w, stats->deferred_count, stats->deferred_count - 1);
    DAMAGE(w, stats->deferred_bytes, stats->deferred_bytes + 1);
}

/* Fields of waits in the list and among the fresh ones. */
CASE(waits_of_another_stream_or_of_a_slot_that_does_not_wait)
{
    quire_allocation live = ALLOCATE(&w->f, .size = KIB);
    qi_wait *waits[] = {stream_queue->marked.first, stream_queue->marked.last,
                        stream_queue->marked.first->next, stream_queue->fresh.first};
    for (int i = 0; i < 4; i++) {
        DAMAGE(w, waits[i]->stream, w->b);
        DAMAGE(w, waits[i]->slot, qi_handle_slot(live.id)); /* of the same size, but live */
        DAMAGE(w, waits[i]->slot, UINT32_MAX);
    }
}

CASE(lists_with_inconsistent_links)
{
    qi_wait_list *lists[] = {&stream_queue->marked, &stream_queue->fresh};
    for (int i = 0; i < 2; i++) {
        qi_wait_list *list = lists[i];
        DAMAGE(w, list->first, NULL);
        DAMAGE(w, list->first, list->first->next);
        DAMAGE(w, list->last, NULL);
        DAMAGE(w, list->last, list->first);
        DAMAGE(w, list->first->previous, list->last);
        DAMAGE(w, list->last->previous, NULL);
        DAMAGE(w, list->first->next, NULL);
        DAMAGE(w, list->last->next, list->first); /* a circle */
    }
}

CASE(lists_out_of_order)
{
    qi_wait *first = stream_queue->marked.first, *last = stream_queue->marked.last;
    DAMAGE(w, first->value, first->next->value + 1);
    DAMAGE(w, last->value, first->value - 1);
    DAMAGE(w, first->value, 0); /* an existing one, of the same list */
    DAMAGE(w, stream_queue->fresh.first->value, 1);
    DAMAGE(w, stream_queue->fresh.last->value, 1);
}

/* The bin number of each wait, and the lists of the bins. */
CASE(bins_that_lack_their_waits)
{
    qi_wait *waits[] = {stream_queue->marked.first, stream_queue->marked.last,
                        stream_queue->fresh.first};
    for (int i = 0; i < 3; i++) {
        CHECK(waits[i]->bin != 0);
        DAMAGE(w, waits[i]->bin, 0);
        DAMAGE(w, waits[i]->bin, waits[i]->bin + 1);
    }
    qi_wait **bin = &stream_queue->bins[waits[0]->bin - 1];
    qi_wait *top = *bin;
    DAMAGE(w, *bin, NULL);
    DAMAGE(w, *bin, top->bin_next);
    DAMAGE(w, bin[1], top);
    DAMAGE(w, top->bin_previous, top->bin_next);
    DAMAGE(w, top->bin_next, NULL);
    DAMAGE(w, top->bin_next, top); /* a circle */
    DAMAGE(w, top->bin_next->bin_previous, NULL);
    qi_slot *record = qi_memory_slot(w->f.memory, waits[0]->slot);
    uint64_t size = record->size, bytes = shard->stats.deferred_bytes;
    record->size += 8 * KIB; /* the size of another bin, with matching statistics */
    shard->stats.deferred_bytes += 8 * KIB;
    CHECK(!qi_stream_queues_agree(shard));
    record->size = size;
    shard->stats.deferred_bytes = bytes;
}

/* Exchanges one wait of each stream in the bins of the same size. */
CASE(bins_of_another_stream)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = 64 * KIB), w->a));
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = 64 * KIB), w->b));
    qi_stream_queue *other = qi_stream_queue_find(shard, w->b);
    uint32_t bin = other->fresh.last->bin - 1;
    qi_wait *own = stream_queue->bins[bin], *theirs = other->bins[bin];
    CHECK(own && own != theirs && !own->bin_next && !theirs->bin_next);
    stream_queue->bins[bin] = theirs;
    other->bins[bin] = own;
    CHECK_FAILS(quire_memory_check(w->f.memory), QUIRE_ERROR_CORRUPTED);
    stream_queue->bins[bin] = own;
    other->bins[bin] = theirs;
}

/* The wait of an object is in no bin, and its page counts the object. */
CASE(waits_of_objects)
{
    quire_buffer buffer = BUFFER(&w->f, .size = KIB, .usage = QUIRE_USAGE_STORAGE);
    CHECK_OK(quire_free_on_stream(w->f.memory, buffer.allocation, w->a));
    quire_allocation again = ALLOCATE(&w->f, .size = KIB, .stream = w->a);
    qi_wait *wait = stream_queue->fresh.last;
    CHECK_EQ(wait->slot, QI_NO_SLOT);
    DAMAGE(w, wait->stream, w->b);
    DAMAGE(w, wait->bin, 1);
    DAMAGE(w, wait->then, wait);
    DAMAGE(w, wait->native, 0);
    DAMAGE(w, wait->slot, qi_handle_slot(again.id));
}

CASE(stream_queues_missing_from_the_table)
{
    qi_stream_queue *other = qi_stream_queue_find(shard, w->b);
    qi_stream_queue **bucket = qi_stream_queue_bucket(shard, w->a);
    DAMAGE(w, *bucket, NULL);
    DAMAGE(w, shard->queue_count, 1);
    DAMAGE(w, shard->queue_count, 3);
    DAMAGE(w, stream_queue->stream, w->b);
    DAMAGE(w, stream_queue->shard, NULL);
    DAMAGE(w, shard->queues, NULL);
    DAMAGE(w, shard->queues->next_of_shard, NULL);
    DAMAGE(w, shard->recent_queue, stream_queue); /* the most recently used one is another one */
    DAMAGE(w, shard->recent_stream, w->a);
    CHECK(qi_stream_queue_find(shard, w->b) == other);
}
