/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/memory_resource.hpp - std::pmr::memory_resource over a host-visible memory, for the
 * containers of std::pmr. Absent where the standard library has no <memory_resource>.
 *
 * Thread-safety: any thread may allocate and deallocate.
 */
#ifndef QUIRE_HPP_MEMORY_RESOURCE_HPP
#define QUIRE_HPP_MEMORY_RESOURCE_HPP

#include "quire/hpp/allocation.hpp"

namespace quire
{
namespace detail
{

/* Whether a memory can serve pointers: allocates a byte, frees it by its address. `host`: the host
   pointer, otherwise the device address. May create the first page of the memory. */
inline status try_pointers(const memory &home, bool host)
{
    quire_allocation_info info;
    allocation_options options(1);
    options.with_mapped(host).info = &info;
    result<allocation> trial = allocation::create(home, options);
    if (!trial)
        return std::move(trial).error();
    const std::uint64_t address = host ? reinterpret_cast<std::uintptr_t>(info.host) : info.address;
    result<quire_allocation> found = home.find(address);
    return std::move(found).error();
}

} // namespace detail
} // namespace quire

#if defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>

namespace quire
{

/*
 * Gives out host pointers into a memory, which it keeps alive. The resource must outlive everything
 * that is allocated from it, and must not be moved while containers point to it: a resource that
 * was moved from has no memory and refuses every call. Two resources are equal if they are the same
 * object. Each element takes at least the granule of the memory, 256 bytes by default:
 * memory_options::with_granule.
 *
 * allocate: `bytes` of 0 allocate one byte. A refusal throws std::bad_alloc, and quire_last_error
 * has the reason; without exceptions it prints the sentence and aborts. A pointer is aligned as
 * requested, at most to quire_fit_options.max_alignment.
 * deallocate: a pointer that is not the start of a live allocation is refused: nothing is freed,
 * and quire_last_error has the reason. No work of a device may use the bytes any more.
 */
class memory_resource final : public std::pmr::memory_resource
{
  public:
    /*
     * The memory must be host-visible, with the option find_by_address and without map_on_demand;
     * the call tries it with an allocation of one byte.
     * Errors: those of quire_allocate, NOT_HOST_VISIBLE, UNSUPPORTED (no find_by_address),
     * OUT_OF_RANGE (map_on_demand).
     */
    static result<memory_resource> create(const memory &home)
    {
        status usable = detail::try_pointers(home, true);
        if (!usable)
            return std::move(usable).error();
        return memory_resource(home);
    }

    memory_resource(memory_resource &&other) noexcept
        : home_(std::move(other.home_)), memory_(std::exchange(other.memory_, nullptr))
    {
    }

    memory_resource &operator=(memory_resource &&other) noexcept
    {
        memory_ = std::exchange(other.memory_, nullptr);
        home_ = std::move(other.home_);
        return *this;
    }

  private:
    explicit memory_resource(const memory &home) noexcept
        : home_(detail::access::keeper_of(home)), memory_(home.handle())
    {
    }

    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        quire_allocation_info info;
        allocation_options options(bytes ? bytes : 1);
        options.with_alignment(alignment).with_mapped().info = &info;
        quire_allocation made = {};
        if (quire_allocate(memory_, &options, &made) != QUIRE_SUCCESS)
            detail::raise(quire_last_error(), std::bad_alloc());
        /* quire aligns the native address; the host may see the page at another one */
        if (reinterpret_cast<std::uintptr_t>(info.host) & (alignment - 1)) {
            quire_free(memory_, made);
            detail::raise("the pages are not mapped at this alignment", std::bad_alloc());
        }
        return info.host;
    }

    void do_deallocate(void *pointer, std::size_t, std::size_t) override
    {
        quire_free_at_address(memory_, reinterpret_cast<std::uintptr_t>(pointer), nullptr);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    detail::keeper home_;
    quire_memory *memory_;
};

} // namespace quire

#endif
#endif

#endif
