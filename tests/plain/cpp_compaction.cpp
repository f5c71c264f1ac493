/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp_compaction.cpp - compaction in quire.hpp: what moves, limits of a step, and how long the
 * owner of a compaction keeps its memory; eviction. Built with exceptions and without.
 */
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/plain/cpp.h"

static_assert(!std::is_copy_constructible<quire::compaction>::value &&
                  !std::is_copy_assignable<quire::compaction>::value &&
                  std::is_nothrow_move_constructible<quire::compaction>::value &&
                  std::is_nothrow_move_assignable<quire::compaction>::value,
              "a compaction can only be moved");

static const std::uint64_t part_size = 8 << 10, page_size = 8 * part_size;

static quire::memory_options compacted_pages()
{
    return quire::memory_options().with_shards(1).with_page_size(page_size);
}

/* Two pages of eight parts each, of which the first has four and the second has three. */
static std::vector<quire::allocation> put_parts(const quire::memory &memory, bool movable)
{
    const auto part = quire::allocation_options(part_size).with_movable(movable);
    std::vector<quire::allocation> made;
    for (int i = 0; i < 11; i++)
        made.push_back(quire::allocation::create(memory, part).value());
    made.erase(made.begin() + 4, made.begin() + 8);
    CHECK(memory.stats()->page_count == 2 && made[6].write(0, "kept", 4));
    return made;
}

/* Checked builds refuse a compaction. */
static bool can_compact(const quire::memory &memory)
{
    const auto begun = quire::compaction::begin(memory);
    CHECK(begun || std::strstr(begun.message(), "checked builds"));
    return bool(begun);
}

static void test_compaction()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages()).value();
    if (!can_compact(memory))
        return;
    std::vector<quire::allocation> made = put_parts(memory, true);
    const quire_compact_stats most = quire::compaction::estimate(memory).value();
    CHECK(most.moves == 3 && most.bytes_moved == 3 * part_size && !most.is_complete);
    CHECK(most.pages_freed == 1 && most.bytes_freed == page_size);
    const quire::compaction compaction = quire::compaction::begin(memory).value();
    CHECK(made[6].place()->page == 1);
    CHECK(compaction.step(quire::compact_limits().with_moves(1))->moves == 1);
    CHECK(compaction.step(quire::compact_limits().with_bytes(1))->moves == 2);
    quire_compact_stats done = compaction.step(quire::compact_limits().with_records(1)).value();
    CHECK(done.moves == 3 && done.bytes_moved == 3 * part_size && !done.is_complete);
    done = compaction.step().value();
    CHECK(done.moves == 3 && done.pages_freed == 1 && done.bytes_freed == page_size);
    CHECK(done.is_complete && memory.stats()->page_count == 1);
    char kept[4];
    CHECK(made[6].read(0, kept, 4) && std::memcmp(kept, "kept", 4) == 0);
    CHECK(made[6].place()->page == 0);
    quire_compact_limits wrong = {};
    wrong.unused[1] = 1;
    CHECK(compaction.step(wrong).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

static void test_eviction()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages()).value();
    if (!can_compact(memory))
        return;
    std::vector<quire::allocation> made = put_parts(memory, true);
    CHECK(made[6].set_priority(-1) && made[0].set_priority(QUIRE_PRIORITY_STAYS));
    CHECK(made[1].touch() && memory.frame() && made[2].touch());
    CHECK(memory.evict(1).value() == part_size && made[6].place()->asleep);
    CHECK(made[6].touch().code() == QUIRE_ERROR_WRONG_STATE);
    CHECK(memory.evict(UINT64_MAX, 1).value() == 3 * part_size);
    CHECK(!made[1].place()->asleep && !made[2].place()->asleep);
    CHECK(memory.evict(UINT64_MAX).value() == part_size && !made[0].place()->asleep);
    char kept[4];
    CHECK(made[6].wake() && made[6].read(0, kept, 4) && std::memcmp(kept, "kept", 4) == 0);
    CHECK(memory.wake().value() == 4 * part_size && memory.stats()->asleep_count == 0);
}

static void test_largest_free()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages().with_movable()).value();
    if (!can_compact(memory))
        return;
    std::vector<quire::allocation> made;
    for (int i = 0; i < 8; i++)
        made.push_back(
            quire::allocation::create(memory, quire::allocation_options(part_size)).value());
    for (std::size_t i = 1; i < 8; i += 2)
        CHECK(made[i].free());
    const auto goal = quire::compact_limits().with_largest_free(4 * part_size);
    CHECK(quire::compaction::begin(memory)->step(goal)->moves == 2);
    CHECK(memory.stats()->largest_free == 4 * part_size);
}

static void test_stream()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages()).value();
    if (!can_compact(memory))
        return;
    const quire::stream stream = quire::stream::create(device).value();
    std::vector<quire::allocation> made = put_parts(memory, true);
    const quire::compaction compaction = quire::compaction::begin(memory).value();
    CHECK(compaction.step_on_stream(stream)->moves == 3);
    CHECK(quire::await(stream.mark().value()));
    char kept[4];
    CHECK(made[6].read(0, kept, 4) && std::memcmp(kept, "kept", 4) == 0);
    CHECK(made[6].place()->page == 0 && compaction.stats()->moves == 3);
}

static void test_offers()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages()).value();
    if (!can_compact(memory))
        return;
    std::vector<quire::allocation> made = put_parts(memory, true);
    const quire::compaction compaction = quire::compaction::begin(memory).value();
    const auto moves = compaction.offer(8).value();
    CHECK(moves.size() == 3 && memory.stats()->allocation_count == 7 + 3);
    for (const quire_compact_move &move : moves) {
        quire_copy_options copy = {};
        copy.to.memory = copy.from.memory = memory.handle();
        copy.to.allocation = move.target;
        copy.from.allocation = move.source;
        CHECK(quire_copy(&copy, nullptr) == QUIRE_SUCCESS);
        CHECK(compaction.accept(move));
        CHECK(compaction.accept(move).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    }
    char kept[4];
    CHECK(made[6].read(0, kept, 4) && std::memcmp(kept, "kept", 4) == 0);
    CHECK(compaction.stats()->moves == 3 && compaction.stats()->pages_freed == 1);
    CHECK(compaction.offer(8)->empty() && compaction.stats()->is_complete);
    made.erase(made.begin() + 1, made.end());
    CHECK(compaction.decline(moves[0]).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    quire_compact_limits wrong = {};
    wrong.unused[1] = 1;
    CHECK(compaction.offer(1, wrong).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

static void test_buffers()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, compacted_pages()).value();
    const auto part = quire::buffer_options(part_size).with_movable();
    if (!can_compact(memory))
        return;
    std::vector<quire::buffer> made;
    for (int i = 0; i < 9; i++)
        made.push_back(quire::buffer::create(memory, part).value());
    CHECK(made[8].write(0, "kept", 4) && made[8].place()->page == 1);
    made.erase(made.begin());
    CHECK(quire::compaction::begin(memory)->step()->moves == 1);
    char kept[4];
    CHECK(made[7].read(0, kept, 4) && std::memcmp(kept, "kept", 4) == 0);
    CHECK(made[7].place()->page == 0);
}

static void test_what_moves()
{
    quire::device device = open_host();
    for (int i = 0; i < 4; i++) {
        const bool of_memory = i & 1, of_allocation = i & 2;
        quire::memory memory =
            quire::memory::create(device, compacted_pages().with_movable(of_memory)).value();
        if (!can_compact(memory))
            return;
        const std::vector<quire::allocation> made = put_parts(memory, of_allocation);
        const quire_compact_stats done = quire::compaction::begin(memory)->step().value();
        CHECK(done.is_complete && done.moves == (of_memory || of_allocation ? 3 : 0));
    }
    quire::memory linear =
        quire::memory::create(device, quire::memory_options().with_fit(QUIRE_FIT_LINEAR)).value();
    CHECK(quire::compaction::begin(linear).code() == QUIRE_ERROR_UNSUPPORTED);
}

static void test_lives_of_compactions()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device).value();
    if (!can_compact(memory)) /* which ends at once */
        return;
    quire::compaction compaction = quire::compaction::begin(memory).value();
    CHECK(quire::compaction::begin(memory).code() == QUIRE_ERROR_BUSY);
    CHECK(memory.destroy().code() == QUIRE_ERROR_BUSY && memory);
    quire::compaction moved(std::move(compaction));
    CHECK(!compaction && moved && moved.step());
    CHECK(compaction.step().code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(std::strstr(compaction.step().message(), "quire::compaction is empty"));
    CHECK(std::strstr(quire::compaction::begin({}).message(), "quire::memory is empty"));
    moved.end();
    moved.end();
    CHECK(!moved);
    moved = quire::compaction::begin(memory).value();
    memory = quire::memory(); /* the compaction keeps it */
    CHECK(moved.step() && device.destroy().code() == QUIRE_ERROR_BUSY);
    moved = quire::compaction();
    CHECK(device.destroy());
}

int main()
{
    run_case("a step moves up to its limits", test_compaction);
    run_case("a compaction moves what is movable", test_what_moves);
    run_case("a stretch of a page becomes free", test_largest_free);
    run_case("allocations leave and wake", test_eviction);
    run_case("copies in the order of a stream", test_stream);
    run_case("moves of the caller", test_offers);
    run_case("buffers move", test_buffers);
    run_case("a compaction keeps its memory", test_lives_of_compactions);
    std::printf("1..%d\n", cases);
}
