/*
 * quire/hpp/memory.hpp - the owner of a memory (quire/memory.h), and stats scopes.
 *
 * Thread-safety: as quire/memory.h; the owner itself is moved and destroyed by one thread.
 */
#ifndef QUIRE_HPP_MEMORY_HPP
#define QUIRE_HPP_MEMORY_HPP

#include "quire/hpp/options.hpp"

namespace quire
{
namespace detail
{

inline void destroy_memory(quire_memory *memory)
{
    quire_memory_destroy_all(&memory);
}

} // namespace detail

/*
 * Owns a memory. The destructor destroys everything in it, as quire_memory_destroy_all does, and
 * sleeps until freed allocations have passed the points that they wait for. Owners of allocations,
 * buffers, images and mappings of the memory must be gone or released before.
 */
class memory : public detail::owner<quire_memory, detail::destroy_memory>
{
  public:
    memory() noexcept = default;

    /* quire_memory_create */
    static result<memory> create(const device &parent, const quire_memory_options &options = {})
    {
        quire_memory *created = nullptr;
        const quire_result code = quire_memory_create(parent.handle(), &options, &created);
        return detail::make_result(code, memory(created));
    }

    /* Takes over a memory that a function of C created; null: an empty owner. Not for the default
       memories of a device, which belong to it. */
    static memory adopt(quire_memory *handle) noexcept
    {
        return memory(handle);
    }

    /* quire_memory_get_info */
    result<quire_memory_info> info() const
    {
        quire_memory_info info;
        const quire_result code = quire_memory_get_info(handle_, &info);
        return detail::make_result(code, std::move(info));
    }

    /* quire_memory_get_stats */
    result<quire_memory_stats> stats() const
    {
        quire_memory_stats stats;
        const quire_result code = quire_memory_get_stats(handle_, &stats);
        return detail::make_result(code, std::move(stats));
    }

    /* Releases empty pages until `target` bytes of them are left; returns the released bytes.
       quire_memory_trim */
    result<std::uint64_t> trim(std::uint64_t target = 0) const
    {
        std::uint64_t released = 0;
        const quire_result code = quire_memory_trim(handle_, target, &released);
        return detail::make_result(code, std::move(released));
    }

    /* quire_memory_preallocate: bytes of pages, in use or empty; 0: none */
    status preallocate(std::uint64_t bytes) const
    {
        return status::of(quire_memory_preallocate(handle_, bytes));
    }

    /* quire_memory_set_limit: maximum bytes of pages; 0: no limit */
    status set_limit(std::uint64_t bytes) const
    {
        return status::of(quire_memory_set_limit(handle_, bytes));
    }

    /* Frees what waits for points that have passed; returns its bytes. quire_collect */
    result<std::uint64_t> collect() const
    {
        std::uint64_t released = 0;
        const quire_result code = quire_collect(handle_, &released);
        return detail::make_result(code, std::move(released));
    }

    /* Verifies every record. quire_memory_check */
    status check() const
    {
        return status::of(quire_memory_check(handle_));
    }

    /* The live allocation that contains a device address or a host pointer, which stays with its
       owner; the memory needs the option find_by_address. quire_memory_find */
    result<quire_allocation> find(std::uint64_t address) const
    {
        quire_allocation found = {};
        const quire_result code = quire_memory_find(handle_, address, &found);
        return detail::make_result(code, std::move(found));
    }

    result<quire_allocation> find(const void *pointer) const
    {
        return find(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)));
    }

    /* Destroys the memory if nothing lives in it; on BUSY the owner keeps it.
       quire_memory_destroy */
    status destroy()
    {
        return status::of(quire_memory_destroy(&handle_));
    }

  private:
    explicit memory(quire_memory *handle) noexcept : owner(handle)
    {
    }
};

namespace detail
{

inline void drop_scope(quire_memory *memory)
{
    quire_memory_stats stats;
    (void)!quire_memory_pop_stats(memory, &stats);
}

} // namespace detail

/*
 * A stats scope of a memory, which must outlive it: the statistics from begin() to end(). The
 * destructor ends it and drops them. Scopes of a memory end in the reverse order of their begin;
 * threads take turns. (quire_memory_push_stats)
 */
class stats_scope : public detail::owner<quire_memory, detail::drop_scope>
{
  public:
    stats_scope() noexcept = default;

    static result<stats_scope> begin(const memory &observed)
    {
        const quire_result code = quire_memory_push_stats(observed.handle());
        return detail::make_result(
            code, stats_scope(code == QUIRE_SUCCESS ? observed.handle() : nullptr));
    }

    /* Ends the scope and returns its statistics; the owner is empty then. */
    result<quire_memory_stats> end()
    {
        quire_memory_stats stats;
        const quire_result code = quire_memory_pop_stats(release(), &stats);
        return detail::make_result(code, std::move(stats));
    }

  private:
    explicit stats_scope(quire_memory *observed) noexcept : owner(observed)
    {
    }
};

} // namespace quire

#endif
