/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * streams.c - the contract: points of streams pass in order and after their work, streams wait for
 * each other's points, and copies and fills on a stream arrive.
 */
#include <pthread.h>

#include "tests/contract/streams.h"
#include "tests/support/on_stream.h"

/* ---- points ------------------------------------------------------------------------------- */

static void points_pass_in_order(contract_world *w, uint32_t kind)
{
    uint64_t stream, last = 0, seen = 0;
    if (!open_stream(w, &stream))
        return;
    kit_page page = page_of(w, kind);
    for (int i = 0; i < STEPS; i++) {
        fill(w, stream, &page, 0, PART, (uint8_t)i);
        uint64_t value = mark(w, stream), now = passed(w, stream);
        CHECK(value >= last);
        CHECK(now >= seen);
        CHECK(now <= mark(w, stream));
        if (i % 5 == 4)
            await(w, stream, value);
        last = value;
        seen = now;
    }
    await(w, stream, mark(w, stream));
    end_stream(w, stream);
    kit_page_end(w, &page);
}

/* Checked while the work runs: a point that was not marked has never passed. */
static void nothing_passes_before_it_is_marked(contract_world *w, uint32_t kind)
{
    uint64_t stream;
    if (!open_stream(w, &stream))
        return;
    kit_page page = page_of(w, kind);
    for (int i = 0; i < 3; i++) {
        be_slow(w, stream, &page);
        uint64_t before = passed(w, stream), value = mark(w, stream);
        CHECK(before <= value);
        await(w, stream, value);
        CHECK(passed(w, stream) <= mark(w, stream));
    }
    await(w, stream, mark(w, stream));
    end_stream(w, stream);
    kit_page_end(w, &page);
}

static void a_wait_ends(contract_world *w, uint32_t kind)
{
    uint64_t stream;
    bool has_passed = true;
    if (!open_stream(w, &stream))
        return;
    kit_page page = page_of(w, kind);
    be_slow(w, stream, &page);
    uint64_t value = mark(w, stream);
    for (uint64_t limit = 0; limit <= 1000000; limit = limit * 10 + 1) {
        CHECK_OK(w->table->stream_await(w->state, stream, value, limit, &has_passed));
        if (has_passed)
            CHECK(passed(w, stream) >= value);
    }
    await(w, stream, value);
    CHECK_OK(w->table->stream_await(w->state, stream, value, 0, &has_passed));
    CHECK(has_passed);
    end_stream(w, stream);
    kit_page_end(w, &page);
}

/* Values that no mark returned: they have not passed, and a wait for one ends after its timeout. */
static void what_was_never_marked_does_not_pass(contract_world *w)
{
    uint64_t stream;
    if (!open_stream(w, &stream))
        return;
    uint64_t last = mark(w, stream);
    await(w, stream, last);
    for (uint64_t limit = 0; limit <= 1000000; limit += 500000) {
        bool has_passed = false;
        quire_result result =
            w->table->stream_await(w->state, stream, last + 1000, limit, &has_passed);
        CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK(!has_passed);
    }
    end_stream(w, stream);
}

/* ---- bytes -------------------------------------------------------------------------------- */

static void work_is_done_in_order(contract_world *w, uint32_t kind)
{
    static unsigned char bytes[PART], found[PART];
    uint64_t stream;
    if (!open_stream(w, &stream))
        return;
    kit_page one = page_of(w, kind), two = page_of(w, kind);
    kit_fill(1, 0, bytes, PART);
    if (kit_page_write(w, &one, 0, bytes, PART) && kit_page_write(w, &two, 0, bytes, PART)) {
        be_slow(w, stream, &two);
        bool has_filled = fill(w, stream, &two, 0, PART, 0xee);
        bool has_copied = copy(w, stream,
                               (quire_copy_job){.to = &two.native,
                                                .to_offset = 101,
                                                .from = &one.native,
                                                .from_offset = 7,
                                                .size = 1001});
        bool has_spoiled = fill(w, stream, &one, 0, PART, 0x11);
        await(w, stream, mark(w, stream));
        CHECK(kit_page_read(w, &two, 0, found, PART));
        for (uint64_t i = 0; i < PART && has_filled; i++)
            if (!has_copied || i < 101 || i >= 1102)
                CHECK_EQ(found[i], 0xee);
        if (has_copied)
            CHECK(!memcmp(found + 101, bytes + 7, 1001));
        CHECK(kit_page_read(w, &one, 0, found, PART));
        CHECK_EQ(found[PART - 1], has_spoiled ? 0x11 : bytes[PART - 1]);
    }
    end_stream(w, stream);
    kit_page_end(w, &one);
    kit_page_end(w, &two);
}

/* Host memory and pages, if the backend copies between them on a stream. */
static void host_memory_is_read_and_written(contract_world *w, uint32_t kind)
{
    static unsigned char in[PART], out[PART];
    uint64_t stream;
    if (!open_stream(w, &stream))
        return;
    kit_page page = page_of(w, kind);
    kit_fill(5, 0, in, PART);
    memset(out, 0, PART);
    if (copy(w, stream,
             (quire_copy_job){
                 .to = &page.native, .to_offset = 13, .host_from = in + 1, .size = 999}) &&
        copy(w, stream,
             (quire_copy_job){
                 .host_to = out + 2, .from = &page.native, .from_offset = 13, .size = 999})) {
        await(w, stream, mark(w, stream));
        CHECK(!memcmp(out + 2, in + 1, 999));
        CHECK_EQ(out[1] + out[1001], 0);
    }
    await(w, stream, mark(w, stream));
    end_stream(w, stream);
    kit_page_end(w, &page);
}

/* More rows than Vulkan's backend puts into one command; from a page, then from the host. */
static void rows_keep_their_strides(contract_world *w, uint32_t kind)
{
    static unsigned char target[PART], source[PART], found[PART];
    uint64_t stream;
    if (!kit_offers(w, QUIRE_BACKEND_ROWS) || !open_stream(w, &stream))
        return;
    kit_page to = page_of(w, kind), from = page_of(w, kind);
    quire_copy_job job = {.to = &to.native,
                          .to_offset = 3,
                          .from = &from.native,
                          .from_offset = 70,
                          .size = 11,
                          .rows = 50,
                          .slices = 3,
                          .to_row = 20,
                          .to_slice = 1300,
                          .from_row = 13,
                          .from_slice = 700};
    for (uint64_t key = 1; key <= 2; key++) {
        kit_fill(key, 0, source, PART);
        kit_fill(3, 0, target, PART);
        if (kit_page_write(w, &from, 0, source, PART) && kit_page_write(w, &to, 0, target, PART) &&
            copy(w, stream, job)) {
            await(w, stream, mark(w, stream));
            for (uint64_t k = 0; k < job.slices; k++)
                for (uint64_t i = 0; i < job.rows; i++)
                    memcpy(target + 3 + k * 1300 + i * 20, source + 70 + k * 700 + i * 13, 11);
            CHECK(kit_page_read(w, &to, 0, found, PART));
            CHECK(!memcmp(found, target, PART));
        }
        job.from = NULL;
        job.from_offset = 0;
        job.host_from = source + 70;
    }
    end_stream(w, stream);
    kit_page_end(w, &to);
    kit_page_end(w, &from);
}

/* ---- order -------------------------------------------------------------------------------- */

/* A slow stream writes last what another stream copies after waiting for its point. */
static void streams_come_after_points(contract_world *w, uint32_t kind)
{
    static unsigned char found[PART];
    uint64_t first, second;
    if (!open_stream(w, &first))
        return;
    CHECK(open_stream(w, &second));
    kit_page one = page_of(w, kind), two = page_of(w, kind);
    for (uint8_t i = 1; i <= 3; i++) {
        bool has_filled = be_slow(w, first, &one) && fill(w, first, &one, 0, PART, i);
        uint64_t value = mark(w, first);
        CHECK_OK(w->table->stream_order(w->state, second, first, value));
        bool has_copied =
            copy(w, second, (quire_copy_job){.to = &two.native, .from = &one.native, .size = PART});
        await(w, second, mark(w, second));
        CHECK(passed(w, first) >= value);
        if (has_filled && has_copied && kit_page_read(w, &two, 0, found, PART))
            CHECK(found[0] == i && found[PART - 1] == i);
        CHECK_OK(w->table->stream_order(w->state, first, second, mark(w, second)));
    }
    await(w, first, mark(w, first));
    end_stream(w, first);
    end_stream(w, second);
    kit_page_end(w, &one);
    kit_page_end(w, &two);
}

/* Streams are destroyed in either order while work is pending. */
static void streams_end_in_any_order(contract_world *w, uint32_t kind)
{
    uint64_t first, second;
    kit_page page = page_of(w, kind);
    for (int i = 0; i < ENDS && open_stream(w, &first); i++) {
        CHECK(open_stream(w, &second));
        be_slow(w, first, &page);
        CHECK_OK(w->table->stream_order(w->state, second, first, mark(w, first)));
        uint64_t value = mark(w, second);
        if (i % 3)
            await(w, second, value);
        end_stream(w, i % 2 ? first : second);
        end_stream(w, i % 2 ? second : first);
    }
    kit_page_end(w, &page);
}

/* ---- through the core --------------------------------------------------------------------- */

/* Returns a new stream, or NULL if the backend has none. */
static quire_stream *stream_of_device(contract_world *w)
{
    quire_stream *stream = NULL;
    quire_result result = quire_stream_create(w->device, NULL, &stream);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        CHECK_OK(result);
    return stream;
}

static void memory_waits_for_points(contract_world *w, uint32_t kind)
{
    quire_stream *stream = stream_of_device(w);
    if (!stream)
        return;
    quire_memory *memory = kit_memory(w, kind, NULL);
    for (uint64_t i = 0; i < STEPS; i++) {
        quire_allocation made, again;
        quire_allocation_options options = {.size = 4 * KIB, .alignment = 16};
        CHECK_OK(allocate_on_stream(memory, &options, stream, &made));
        if (kit_can_both(w, kind))
            CHECK_OK(quire_fill(
                memory, made, &(quire_fill_options){.value = (uint8_t)i, .stream = stream}, NULL));
        CHECK_OK(quire_free_on_stream(memory, made, stream));
        CHECK_OK(allocate_on_stream(memory, &options, stream, &again));
        CHECK_OK(quire_free_on_stream(memory, again, stream));
    }
    quire_point point;
    CHECK_OK(quire_collect(memory, NULL)); /* marks the stream for the latest free */
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_EQ(kit_stats(memory).deferred_bytes, 0);
    CHECK_OK(quire_stream_destroy(&stream));
    kit_end(&memory);
}

/* Batches and single copies from the host, on one stream, in order. */
static void batches_run_in_order(contract_world *w, uint32_t kind)
{
    static unsigned char in[PART], found[PART];
    quire_stream *stream = stream_of_device(w);
    if (!stream)
        return;
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made = ALLOCATE(memory, .size = PART);
    quire_write_item items[100];
    quire_point done = {NULL, 0};
    kit_fill(4, 0, in, PART);
    for (uint64_t i = 0; i < 100; i++)
        items[i] = (quire_write_item){made, i * 7, in + i * 7, 7};
    if (kit_can_both(w, kind)) {
        CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.stream = stream}, NULL));
        CHECK_OK(quire_write_batch(memory, items, 100, stream, NULL));
        items[0].data = in + 1;
        CHECK_OK(quire_write_batch(memory, items, 1, stream, &done));
        CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
        CHECK_OK(quire_read(memory, made, 0, found, PART));
        CHECK(!memcmp(found, in + 1, 7));
        CHECK(!memcmp(found + 7, in + 7, 693));
        CHECK_EQ(found[700], 0);
    }
    CHECK_OK(quire_free(memory, made));
    CHECK_OK(quire_stream_destroy(&stream));
    kit_end(&memory);
}

/* Work of the stream on the old buffer runs before that on the new one, in the same bytes. */
static void fill_and_free(quire_memory *memory, quire_allocation made, quire_stream *stream,
                          uint8_t value, bool fills)
{
    if (fills)
        CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = value, .stream = stream},
                            NULL));
    CHECK_OK(quire_free_on_stream(memory, made, stream));
}

static void buffers_reuse_ranges(contract_world *w, uint32_t kind)
{
    quire_stream *stream = stream_of_device(w);
    if (!stream)
        return;
    quire_memory *memory = kit_memory(w, kind, NULL);
    bool fills = kit_can_both(w, kind);
    unsigned char bytes[4 * KIB];
    quire_buffer buffer;
    const quire_buffer_options options = {.size = sizeof bytes, .stream = stream};
    for (uint64_t i = 0; i < STEPS; i++) {
        quire_allocation raw;
        quire_result result = quire_buffer_create(memory, &options, &buffer);
        if (result == QUIRE_ERROR_UNSUPPORTED)
            break; /* the kind holds no buffers */
        CHECK_OK(result);
        fill_and_free(memory, buffer.allocation, stream, 1, fills);
        CHECK_OK(allocate_on_stream(memory, &(quire_allocation_options){.size = sizeof bytes},
                                    stream, &raw));
        fill_and_free(memory, raw, stream, 2, fills);
        CHECK_OK(quire_buffer_create(memory, &options, &buffer));
        quire_point point = {NULL, 0};
        if (fills)
            CHECK_OK(quire_fill(memory, buffer.allocation,
                                &(quire_fill_options){.value = 3, .stream = stream}, &point));
        CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
        if (fills)
            CHECK_OK(quire_read(memory, buffer.allocation, 0, bytes, sizeof bytes));
        for (size_t k = 0; k < sizeof bytes && fills; k++)
            CHECK_EQ(bytes[k], 3);
        CHECK_OK(quire_free_on_stream(memory, buffer.allocation, stream));
        CHECK_OK(quire_memory_check(memory));
        CHECK_OK(quire_collect(memory, NULL));
    }
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_stream_destroy(&stream));
}

/* ---- threads ------------------------------------------------------------------------------ */

enum { SHARED = 3 };

static const contract_world *world;
static uint64_t shared[SHARED];
static kit_page shared_page;

/* Marks of a stream never decrease, and only marked values pass, whichever thread asks. */
static void *use(void *number)
{
    test_random r = {(uintptr_t)number + 1};
    uint64_t last[SHARED] = {0};
    for (int i = 0; i < SHARED * STEPS; i++) {
        uint64_t at = random_below(&r, SHARED), other = random_below(&r, SHARED);
        uint64_t offset = ((uintptr_t)number * SHARED + at) * 64;
        if (can_order(world) && other != at && last[other])
            CHECK_OK(
                world->table->stream_order(world->state, shared[at], shared[other], last[other]));
        fill(world, shared[at], &shared_page, offset, 64, (uint8_t)i);
        uint64_t value = mark(world, shared[at]);
        CHECK(value >= last[at]);
        CHECK(passed(world, shared[at]) <= mark(world, shared[at]));
        if (i % 4 == 0)
            await(world, shared[at], value);
        last[at] = value;
    }
    return NULL;
}

static void threads_share_streams(contract_world *w, uint32_t kind)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < SHARED; i++)
        if (w->subject->one_thread || !open_stream(w, &shared[i]))
            return;
    world = w;
    shared_page = page_of(w, kind);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, use, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    for (int i = 0; i < SHARED; i++)
        await(w, shared[i], mark(w, shared[i]));
    for (int i = 0; i < SHARED; i++)
        end_stream(w, shared[i]);
    kit_page_end(w, &shared_page);
}

/* Threads write their own shares on one stream, without waiting for each other. */
static quire_stream *core_stream;
static quire_memory *core_memory;
static quire_allocation core_target;

static void *write_share(void *number)
{
    enum { SHARE = PART / THREADS };
    static unsigned char bytes[PART];
    const uint64_t begin = (uintptr_t)number * SHARE;
    quire_write_item items[SHARE / 8];
    for (uint64_t i = 0; i < SHARE / 8; i++)
        items[i] = (quire_write_item){core_target, begin + i * 8, bytes + begin + i * 8, 8};
    for (int round = 0; round < STEPS; round++) {
        memset(bytes + begin, round + (int)(uintptr_t)number, SHARE);
        quire_point done;
        CHECK_OK(quire_copy(
            &(quire_copy_options){
                .to = {.memory = core_memory, .allocation = core_target, .offset = begin},
                .host_from = bytes + begin,
                .size = SHARE,
                .stream = core_stream},
            NULL));
        CHECK_OK(quire_write_batch(core_memory, items, SHARE / 8, core_stream, &done));
        CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    }
    return NULL;
}

static void threads_write_on_a_stream(contract_world *w, uint32_t kind)
{
    static unsigned char found[PART];
    pthread_t threads[THREADS];
    if (w->subject->one_thread || !kit_can_both(w, kind))
        return;
    core_stream = stream_of_device(w);
    if (!core_stream)
        return;
    core_memory = kit_memory(w, kind, NULL);
    core_target = ALLOCATE(core_memory, .size = PART);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, write_share, (void *)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK_OK(quire_read(core_memory, core_target, 0, found, PART));
    for (uint64_t i = 0; i < PART / THREADS * THREADS; i++)
        CHECK_EQ(found[i], (unsigned char)(STEPS - 1 + i / (PART / THREADS)));
    CHECK_OK(quire_free(core_memory, core_target));
    CHECK_OK(quire_stream_destroy(&core_stream));
    kit_end(&core_memory);
}

const contract_scenario contract_streams[] = {
    {.name = "points pass in the order in which they were marked",
     .of_kind = points_pass_in_order,
     .applies = has_streams},
    {.name = "no point has passed before it is marked",
     .of_kind = nothing_passes_before_it_is_marked,
     .applies = has_streams},
    {.name = "a wait ends when the point has passed, or after its timeout",
     .of_kind = a_wait_ends,
     .applies = has_streams},
    {.name = "an unmarked value has not passed, and a wait for it times out",
     .body = what_was_never_marked_does_not_pass,
     .applies = has_streams},
    {.name = "work on a stream is done in order, before its point passes",
     .of_kind = work_is_done_in_order,
     .applies = has_streams},
    {.name = "host memory is read and written on a stream, or UNSUPPORTED",
     .of_kind = host_memory_is_read_and_written,
     .applies = has_streams},
    {.name = "rows that are copied on a stream keep their strides",
     .of_kind = rows_keep_their_strides,
     .applies = has_streams},
    {.name = "work ordered after a point runs after it",
     .of_kind = streams_come_after_points,
     .applies = can_order},
    {.name = "streams that wait for each other are destroyed in any order",
     .of_kind = streams_end_in_any_order,
     .applies = can_order},
    {.name = "memory that is freed on a stream is reused in its order",
     .of_kind = memory_waits_for_points,
     .applies = has_streams},
    {.name = "batches of writes run in the order of a stream",
     .of_kind = batches_run_in_order,
     .applies = has_streams},
    {.name = "buffers reuse ranges in the order of a stream",
     .of_kind = buffers_reuse_ranges,
     .applies = has_streams},
    {.name = "threads write their shares on one stream",
     .of_kind = threads_write_on_a_stream,
     .applies = has_streams},
    {.name = "threads share streams, which wait for each other",
     .of_kind = threads_share_streams,
     .applies = has_streams},
    {0},
};
