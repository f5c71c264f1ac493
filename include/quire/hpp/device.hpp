/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/device.hpp - the owner of a device (quire/device.h).
 *
 * Thread-safety: as quire/device.h; the owner itself is moved and destroyed by one thread.
 */
#ifndef QUIRE_HPP_DEVICE_HPP
#define QUIRE_HPP_DEVICE_HPP

#include "quire/hpp/owner.hpp"

namespace quire
{
namespace detail
{

struct device_traits {
    using handle = quire_device;
    static constexpr const char *name = "quire::device";
    static void destroy(quire_device *device)
    {
        quire_device_destroy(&device);
    }
};

} // namespace detail

/*
 * Owns a device. The device is destroyed with the last of its owner and the owners of what was made
 * on it: memories, streams, and what lies in them. A device on which C functions made memories or
 * streams that live then stays until the process ends.
 */
class device : public detail::owner<detail::device_traits>
{
  public:
    device() noexcept = default;

    /*
     * Opens a device with a function of a backend: quire_host_open, quire_vulkan_open,
     * quire_vulkan_wrap, quire_cuda_open, quire_cuda_wrap or quire_plugin_open, whose header the
     * caller includes. `options` are that function's, read only during the call; null: its
     * defaults. May throw std::bad_alloc. Errors: those of the function.
     */
    template <class Options>
    static result<device> open(quire_result (*function)(const Options *, quire_device **),
                               const Options *options = nullptr)
    {
        detail::keeper kept = prepare({});
        quire_device *opened = nullptr;
        const quire_result code = function(options, &opened);
        return detail::make_result(code, device(opened, std::move(kept)));
    }

    /* Takes over a device that a function of C opened; null: an empty owner. May throw
       std::bad_alloc; the caller keeps the device then. */
    static device adopt(quire_device *handle)
    {
        return device(handle, prepare({}));
    }

    /* quire_device_get_info */
    result<quire_device_info> info() const
    {
        quire_device_info info;
        const quire_result code = quire_device_get_info(handle_, &info);
        return checked(code, std::move(info));
    }

    /* quire_device_get_stats */
    result<quire_device_stats> stats() const
    {
        quire_device_stats stats;
        const quire_result code = quire_device_get_stats(handle_, &stats);
        return checked(code, std::move(stats));
    }

    /* Text for people. May throw std::bad_alloc. quire_device_write_report */
    result<std::string> report() const
    {
        return written(quire_device_write_report);
    }

    /* The same as JSON. May throw std::bad_alloc. quire_device_write_report_json */
    result<std::string> report_json() const
    {
        return written(quire_device_write_report_json);
    }

    /* docs/formats.md describes it. May throw std::bad_alloc. quire_device_write_json */
    result<std::string> json() const
    {
        return written(quire_device_write_json);
    }

    /* A picture. May throw std::bad_alloc. quire_device_write_svg */
    result<std::string> svg() const
    {
        return written(quire_device_write_svg);
    }

    /*
     * Calls `visit(quire_memory *)` for each memory of the device, default memories included. The
     * memory stays with its owner. `visit` returns nothing, or a bool: false ends the walk, which
     * has succeeded then. What `visit` throws ends the walk, and walk() throws it.
     * quire_device_walk
     */
    template <class Visitor> status walk(Visitor &&visit) const
    {
        detail::callback<std::remove_reference_t<Visitor>> visitor(visit);
        const quire_result code =
            quire_device_walk(handle_, visitor.template call<quire_memory *>, &visitor);
        visitor.rethrow();
        return checked(code);
    }

    /* The memory of a live allocation of the device, which stays with its owner.
       quire_device_owner */
    result<quire_memory *> memory_of(quire_allocation of) const
    {
        quire_memory *found = nullptr;
        const quire_result code = quire_device_owner(handle_, of, &found);
        return checked(code, std::move(found));
    }

    /* Frees an allocation of the device that no C++ owner holds. quire_device_free */
    status free(quire_allocation handle) const
    {
        return checked(quire_device_free(handle_, handle));
    }

    /* quire_device_get_budget */
    result<quire_budget_info> budget(std::uint32_t heap) const
    {
        quire_budget_info info;
        const quire_result code = quire_device_get_budget(handle_, heap, &info);
        return checked(code, std::move(info));
    }

    /* quire_device_choose_kind */
    result<std::uint32_t> choose_kind(const quire_kind_request &request) const
    {
        std::uint32_t kind = 0;
        const quire_result code = quire_device_choose_kind(handle_, &request, &kind);
        return checked(code, std::move(kind));
    }

    /* quire_device_set_heap_limit: bytes of the pages of one heap; 0: no limit */
    status set_heap_limit(std::uint32_t heap, std::uint64_t bytes) const
    {
        return checked(quire_device_set_heap_limit(handle_, heap, bytes));
    }

    /* quire_device_set_page_limit: live pages; 0: only the backend's limit */
    status set_page_limit(std::uint64_t pages) const
    {
        return checked(quire_device_set_page_limit(handle_, pages));
    }

    /* quire_device_trim; returns the released bytes */
    result<std::uint64_t> trim(std::uint64_t target = 0) const
    {
        std::uint64_t released = 0;
        const quire_result code = quire_device_trim(handle_, target, &released);
        return checked(code, std::move(released));
    }

    /* quire_device_set_default_options */
    status set_default_options(const quire_memory_options &options) const
    {
        return checked(quire_device_set_default_options(handle_, &options));
    }

    /* Destroys the device; on BUSY the owner keeps it. quire_device_destroy */
    status destroy()
    {
        return destroyed(quire_device_destroy(&handle_));
    }

  private:
    using owner::owner;
};

} // namespace quire

#endif
