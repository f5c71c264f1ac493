/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/memory.hpp - the owner of a memory (quire/memory.h), stats scopes, and the
 * owner of a compaction (quire/compact.h).
 *
 * Thread-safety: as quire/memory.h and quire/compact.h; the owner itself is moved and destroyed by
 * one thread.
 */
#ifndef QUIRE_HPP_MEMORY_HPP
#define QUIRE_HPP_MEMORY_HPP

#include <cstddef>
#include <vector>

#include "quire/hpp/options.hpp"
#include "quire/hpp/stream.hpp"

namespace quire
{
namespace detail
{

struct memory_traits {
    using handle = quire_memory;
    static constexpr const char *name = "quire::memory";
    static void destroy(quire_memory *memory)
    {
        quire_memory_destroy_all(&memory);
    }
};

/* The only calls of these functions of C. */
inline quire_result back_ranges(quire_memory *memory, const quire_view *ranges, std::uint64_t count)
{
    return quire_back_range(memory, ranges, count);
}

inline quire_result unback_ranges(quire_memory *memory, const quire_view *ranges,
                                  std::uint64_t count, const quire_point *after)
{
    return quire_unback_range(memory, ranges, count, after);
}

inline quire_result sleep(quire_memory *memory, const char *prefix, quire_sleep_mode mode,
                          const quire_point *after, std::uint64_t *bytes)
{
    return quire_memory_sleep(memory, prefix, mode, after, bytes);
}

inline quire_result wake(quire_memory *memory, const char *prefix, std::uint64_t *bytes)
{
    return quire_memory_wake(memory, prefix, bytes);
}

} // namespace detail

/*
 * Owns a memory. The memory is destroyed with the last of its owner and the owners of what lies in
 * it: allocations, buffers, images, mappings, resources, stats scopes and compactions. What
 * functions of C allocated in it is freed then, as quire_memory_destroy_all does, which sleeps
 * until freed allocations have passed the points that they wait for.
 */
class memory : public detail::owner<detail::memory_traits>
{
  public:
    memory() noexcept = default;

    /* quire_memory_create; may throw std::bad_alloc */
    static result<memory> create(const device &parent, const quire_memory_options &options = {})
    {
        detail::keeper kept = prepare(detail::access::keeper_of(parent));
        quire_memory *created = nullptr;
        const quire_result code = quire_memory_create(parent.handle(), &options, &created);
        return detail::access::checked(parent, code, memory(created, std::move(kept)));
    }

    /* Takes over a memory that a function of C created; null: an empty owner. Not for the default
       memories of a device, which belong to it. The device must outlive it. May throw
       std::bad_alloc; the caller keeps the memory then. */
    static memory adopt(quire_memory *handle)
    {
        return memory(handle, prepare({}));
    }

    /* quire_memory_get_info */
    result<quire_memory_info> info() const
    {
        quire_memory_info info;
        const quire_result code = quire_memory_get_info(handle_, &info);
        return checked(code, std::move(info));
    }

    /* quire_memory_get_stats */
    result<quire_memory_stats> stats() const
    {
        quire_memory_stats stats;
        const quire_result code = quire_memory_get_stats(handle_, &stats);
        return checked(code, std::move(stats));
    }

    /* Text for people. May throw std::bad_alloc. quire_memory_write_report */
    result<std::string> report() const
    {
        return written(quire_memory_write_report);
    }

    /* The same as JSON. May throw std::bad_alloc. quire_memory_write_report_json */
    result<std::string> report_json() const
    {
        return written(quire_memory_write_report_json);
    }

    /* docs/formats.md describes it. May throw std::bad_alloc. quire_memory_write_json */
    result<std::string> json() const
    {
        return written(quire_memory_write_json);
    }

    /* A picture. May throw std::bad_alloc. quire_memory_write_svg */
    result<std::string> svg() const
    {
        return written(quire_memory_write_svg);
    }

    /* Releases empty pages until `target` bytes of them are left; returns the released bytes.
       quire_memory_trim */
    result<std::uint64_t> trim(std::uint64_t target = 0) const
    {
        std::uint64_t released = 0;
        const quire_result code = quire_memory_trim(handle_, target, &released);
        return checked(code, std::move(released));
    }

    /* Gives memory to `count` ranges of lazy allocations, to all or to none. quire_back_range */
    status back_ranges(const quire_view *ranges, std::uint64_t count) const
    {
        return checked(detail::back_ranges(handle_, ranges, count));
    }

    /* Takes the memory of `count` ranges of lazy allocations, of all or of none: once the point has
       passed; null: now. quire_unback_range */
    status unback_ranges(const quire_view *ranges, std::uint64_t count,
                         const quire_point *after = nullptr) const
    {
        return checked(detail::unback_ranges(handle_, ranges, count, after));
    }

    /* Puts the allocations whose names start with the prefix, null: all, to sleep: once the point
       has passed; null: now. Returns the bytes of chunks that lost their memory.
       quire_memory_sleep */
    result<std::uint64_t> sleep(const char *prefix = nullptr,
                                quire_sleep_mode mode = QUIRE_SLEEP_KEEP,
                                const quire_point *after = nullptr) const
    {
        std::uint64_t bytes = 0;
        const quire_result code = detail::sleep(handle_, prefix, mode, after, &bytes);
        return checked(code, std::move(bytes));
    }

    /* Wakes them, all or none, and in a memory of pages what is evicted. Returns the bytes of
       chunks that got memory, or of these allocations. quire_memory_wake */
    result<std::uint64_t> wake(const char *prefix = nullptr) const
    {
        std::uint64_t bytes = 0;
        const quire_result code = detail::wake(handle_, prefix, &bytes);
        return checked(code, std::move(bytes));
    }

    /* Evicts allocations of at least so many bytes, if they may leave, from the lowest priorities
       on. What the last frames have used stays. Returns the bytes. quire_memory_evict */
    result<std::uint64_t> evict(std::uint64_t bytes, std::uint64_t recent_frames = 0,
                                quire_sleep_mode mode = QUIRE_SLEEP_KEEP) const
    {
        std::uint64_t evicted = 0;
        const quire_evict_options options = {bytes, recent_frames, mode, {0, 0, 0, 0}};
        const quire_result code = quire_memory_evict(handle_, &options, &evicted);
        return checked(code, std::move(evicted));
    }

    /* Begins a frame, which counts uses. quire_memory_frame */
    status frame() const
    {
        return checked(quire_memory_frame(handle_));
    }

    /* quire_memory_preallocate: bytes of pages, in use or empty; 0: none */
    status preallocate(std::uint64_t bytes) const
    {
        return checked(quire_memory_preallocate(handle_, bytes));
    }

    /* quire_memory_set_limit: maximum bytes of pages; 0: no limit */
    status set_limit(std::uint64_t bytes) const
    {
        return checked(quire_memory_set_limit(handle_, bytes));
    }

    /* Frees what waits for points that have passed; returns its bytes. quire_collect */
    result<std::uint64_t> collect() const
    {
        std::uint64_t released = 0;
        const quire_result code = quire_collect(handle_, &released);
        return checked(code, std::move(released));
    }

    /* Verifies every record. quire_memory_check */
    status check() const
    {
        return checked(quire_memory_check(handle_));
    }

    /* The live allocation that contains a device address or a host pointer, which stays with its
       owner; the memory needs the option find_by_address. quire_memory_find */
    result<quire_allocation> find(std::uint64_t address) const
    {
        quire_allocation found = {};
        const quire_result code = quire_memory_find(handle_, address, &found);
        return checked(code, std::move(found));
    }

    result<quire_allocation> find(const void *pointer) const
    {
        return find(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)));
    }

    /* Destroys the memory if nothing lives in it; on BUSY the owner keeps it.
       quire_memory_destroy */
    status destroy()
    {
        return destroyed(quire_memory_destroy(&handle_));
    }

  private:
    using owner::owner;
};

namespace detail
{

struct scope_traits {
    using handle = quire_memory;
    static constexpr const char *name = "quire::stats_scope";
    static void destroy(quire_memory *memory)
    {
        quire_memory_stats stats;
        quire_memory_pop_stats(memory, &stats);
    }
};

} // namespace detail

/*
 * A stats scope of a memory: the statistics from begin() to end(). The
 * destructor ends it and drops them. Scopes of a memory end in the reverse order of their begin;
 * threads take turns. (quire_memory_push_stats)
 */
class stats_scope : public detail::owner<detail::scope_traits>
{
  public:
    stats_scope() noexcept = default;

    /* May throw std::bad_alloc. */
    static result<stats_scope> begin(const memory &observed)
    {
        detail::keeper kept = prepare(detail::access::keeper_of(observed));
        const quire_result code = quire_memory_push_stats(observed.handle());
        quire_memory *begun = code == QUIRE_SUCCESS ? observed.handle() : nullptr;
        return detail::access::checked(observed, code, stats_scope(begun, std::move(kept)));
    }

    /* Ends the scope and returns its statistics; the owner is empty then. */
    result<quire_memory_stats> end()
    {
        quire_memory_stats stats;
        const quire_result code = quire_memory_pop_stats(handle_, &stats);
        result<quire_memory_stats> ended = checked(code, std::move(stats));
        (void)release();
        return ended;
    }

  private:
    using owner::owner;
};

namespace detail
{

struct compaction_traits {
    using handle = quire_compaction;
    static constexpr const char *name = "quire::compaction";
    static void destroy(quire_compaction *compaction)
    {
        quire_compact_end(&compaction);
    }
};

} // namespace detail

/*
 * A compaction of a memory: movable allocations leave the emptiest pages, which become free. The
 * destructor ends it; what has moved stays where it is. A memory has one at a time.
 */
class compaction : public detail::owner<detail::compaction_traits>
{
  public:
    compaction() noexcept = default;

    /* What a compaction that begins now would do at most. quire_compact_estimate */
    static result<quire_compact_stats> estimate(const memory &compacted)
    {
        quire_compact_stats most;
        const quire_result code = quire_compact_estimate(compacted.handle(), &most);
        return detail::access::checked(compacted, code, std::move(most));
    }

    /* Moves nothing. May throw std::bad_alloc. quire_compact_begin */
    static result<compaction> begin(const memory &compacted)
    {
        detail::keeper kept = prepare(detail::access::keeper_of(compacted));
        quire_compaction *begun = nullptr;
        const quire_result code = quire_compact_begin(compacted.handle(), &begun);
        return detail::access::checked(compacted, code, compaction(begun, std::move(kept)));
    }

    /* Moves allocations up to the limits; without them until no further page can be freed. Returns
       what the compaction has done since it began. After an error the next step goes on.
       quire_compact_step */
    result<quire_compact_stats> step(const quire_compact_limits &limits = {}) const
    {
        quire_compact_stats stats;
        const quire_result code = quire_compact_step(handle_, &limits, &stats);
        return checked(code, std::move(stats));
    }

    /* The same with copies in the order of a stream. quire_compact_step_on_stream */
    result<quire_compact_stats> step_on_stream(const stream &order,
                                               const quire_compact_limits &limits = {}) const
    {
        quire_compact_stats stats;
        const quire_result code =
            quire_compact_step_on_stream(handle_, &limits, order.handle(), &stats);
        return checked(code, std::move(stats));
    }

    /* Offers up to `most` moves that the caller executes, and accepts or declines; none: see
       stats().is_complete. A call that fails declines what it has offered. May throw
       std::bad_alloc before it offers. quire_compact_offer */
    result<std::vector<quire_compact_move>> offer(std::size_t most,
                                                  const quire_compact_limits &limits = {}) const
    {
        std::vector<quire_compact_move> moves(most);
        std::uint64_t count = 0;
        const quire_result code =
            quire_compact_offer(handle_, &limits, moves.data(), most, &count, nullptr);
        moves.resize(static_cast<std::size_t>(count));
        if (code == QUIRE_SUCCESS)
            return checked(code, std::move(moves));
        result<std::vector<quire_compact_move>> failed =
            checked(code, std::vector<quire_compact_move>());
        for (const quire_compact_move &move : moves)
            (void)quire_compact_decline(handle_, &move);
        return failed;
    }

    /* The source has the place of the target from now on; the old place is free after the point,
       without one at once. quire_compact_accept */
    status accept(const quire_compact_move &move, const quire_point *after = nullptr) const
    {
        return checked(quire_compact_accept(handle_, &move, after));
    }

    /* quire_compact_decline */
    status decline(const quire_compact_move &move) const
    {
        return checked(quire_compact_decline(handle_, &move));
    }

    /* quire_compact_get_stats */
    result<quire_compact_stats> stats() const
    {
        quire_compact_stats stats;
        const quire_result code = quire_compact_get_stats(handle_, &stats);
        return checked(code, std::move(stats));
    }

    /* Ends the compaction, complete or not; the owner is empty then. quire_compact_end */
    void end() noexcept
    {
        *this = compaction();
    }

  private:
    using owner::owner;
};

} // namespace quire

#endif
