/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/allocation.hpp - the owners of allocations, buffers and images
 * (quire/allocation.h, quire/resource.h).
 *
 * Thread-safety: as quire/allocation.h; the owner itself is moved and destroyed by one thread.
 */
#ifndef QUIRE_HPP_ALLOCATION_HPP
#define QUIRE_HPP_ALLOCATION_HPP

#include "quire/hpp/mapping.hpp"
#include "quire/hpp/memory.hpp"

namespace quire
{

/*
 * What allocations, buffers and images have in common: an owned range of a memory, which lives as
 * long as the range has an owner. The destructor frees the range, so no work of a device may use it
 * then, except copies and fills of quire; free_on and free_after free what work still uses. If it
 * cannot be freed, because it is mapped, it stays until its memory is destroyed.
 */
class placed
{
  public:
    explicit operator bool() const noexcept
    {
        return allocation_.id != 0;
    }

    /* The handle, which stays owned; {0} if the owner is empty. */
    quire_allocation handle() const noexcept
    {
        return allocation_;
    }

    /* The memory in which it lies; null if the owner is empty. */
    quire_memory *memory_handle() const noexcept
    {
        return memory_;
    }

    /* Gives the range up to the caller, who frees it, and leaves the owner empty. The memory needs
       another owner then. */
    QUIRE_NODISCARD quire_allocation release() noexcept
    {
        home_ = detail::keeper();
        memory_ = nullptr;
        return std::exchange(allocation_, quire_allocation{});
    }

    /* quire_allocation_get_info */
    result<quire_allocation_info> place() const
    {
        quire_allocation_info info;
        const quire_result code = quire_allocation_get_info(memory_, allocation_, &info);
        return checked(code, std::move(info));
    }

    /* The name; "" if there is none. quire_allocation_get_name */
    result<std::string> name() const
    {
        char text[QUIRE_MAX_NAME + 1];
        const quire_result code =
            quire_allocation_get_name(memory_, allocation_, text, sizeof text);
        return checked(code, std::string(code == QUIRE_SUCCESS ? text : ""));
    }

    /* The name is copied; null removes it. quire_allocation_set_name */
    status set_name(const char *name) const
    {
        return checked(quire_allocation_set_name(memory_, allocation_, name));
    }

    /* quire_allocation_set_user_data */
    status set_user_data(std::uint64_t number) const
    {
        return checked(quire_allocation_set_user_data(memory_, allocation_, number));
    }

    /* Maps `size` bytes from `offset` on; size 0: to the end of the requested bytes.
       quire_map_range */
    result<mapping> map(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        if (!size) {
            quire_allocation_info info;
            const quire_result known = quire_allocation_get_info(memory_, allocation_, &info);
            if (known != QUIRE_SUCCESS)
                return checked(known).error();
            /* behind the end: a byte, which quire refuses with its own sentence */
            size = offset < info.requested ? info.requested - offset : 1;
        }
        void *data = nullptr;
        const quire_result code = quire_map_range(memory_, allocation_, offset, size, &data);
        if (code != QUIRE_SUCCESS)
            return checked(code).error();
        return mapping(home_, memory_, allocation_, data, size);
    }

    /* quire_flush; size 0: to the end */
    status flush(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        return checked(quire_flush(memory_, allocation_, offset, size));
    }

    /* quire_invalidate; size 0: to the end */
    status invalidate(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        return checked(quire_invalidate(memory_, allocation_, offset, size));
    }

    /* Copies `size` bytes from the host; complete on return. quire_write */
    status write(std::uint64_t offset, const void *data, std::uint64_t size) const
    {
        return checked(quire_write(memory_, allocation_, offset, data, size));
    }

    /* Copies `size` bytes to the host; complete on return. quire_read */
    status read(std::uint64_t offset, void *data, std::uint64_t size) const
    {
        return checked(quire_read(memory_, allocation_, offset, data, size));
    }

    /* A checked part, which owns nothing; size 0: to the end. quire_view_create */
    result<quire_view> view(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        quire_view part;
        const quire_result code = quire_view_create(memory_, allocation_, offset, size, &part);
        return checked(code, std::move(part));
    }

    /* Lower priorities are evicted first; QUIRE_PRIORITY_STAYS: never. quire_set_priority */
    status set_priority(std::int8_t priority) const
    {
        return checked(quire_set_priority(memory_, allocation_, priority));
    }

    /* The current frame uses it. quire_touch */
    status touch() const
    {
        return checked(quire_touch(memory_, allocation_));
    }

    /* Gives it a place again if it is evicted. quire_wake */
    status wake() const
    {
        return checked(quire_wake(memory_, allocation_));
    }

    /* The free also waits for the work that uses it on this stream. quire_record_use */
    status record_use(const stream &user) const
    {
        if (*this && !user)
            return detail::access::empty(user);
        return checked(quire_record_use(memory_, allocation_, user.handle()));
    }

    /* Each of the three frees the range and leaves the owner empty. On an error the owner keeps it,
       except CORRUPTED, which checked builds return after they have freed. quire_free */
    status free()
    {
        return ended(quire_free(memory_, allocation_));
    }

    /* Frees after all work submitted to the stream so far. quire_free_on_stream */
    status free_on(const stream &user)
    {
        if (*this && !user)
            return detail::access::empty(user);
        return ended(quire_free_on_stream(memory_, allocation_, user.handle()));
    }

    /* Frees once the point has passed. quire_free_after_point */
    status free_after(const quire_point &point)
    {
        return ended(quire_free_after_point(memory_, allocation_, &point));
    }

  protected:
    friend struct detail::access;

    placed() noexcept = default;

    placed(const detail::keeper &home, quire_memory *memory, quire_allocation allocation) noexcept
        : home_(home), memory_(memory), allocation_(allocation)
    {
    }

    placed(placed &&other) noexcept
        : home_(std::move(other.home_)), memory_(other.memory_), allocation_(other.release())
    {
    }

    placed &operator=(placed &&other) noexcept
    {
        if (this != &other) {
            if (*this)
                (void)free();
            home_ = std::move(other.home_);
            memory_ = other.memory_;
            allocation_ = other.release();
        }
        return *this;
    }

    ~placed()
    {
        if (*this)
            (void)free();
    }

    status ended(quire_result code)
    {
        status result = checked(code);
        if (code == QUIRE_SUCCESS || code == QUIRE_ERROR_CORRUPTED)
            (void)release();
        return result;
    }

    static constexpr const char *owner_name = "owner of an allocation, a buffer or an image";

    /* The result of a function of C that got the handle. */
    status checked(quire_result code) const
    {
        if (code == QUIRE_SUCCESS)
            return status();
        return detail::failure_of(!*this, owner_name, code);
    }

    template <class T> result<T> checked(quire_result code, T &&value) const
    {
        if (code == QUIRE_SUCCESS)
            return std::move(value);
        return detail::failure_of(!*this, owner_name, code);
    }

    detail::keeper home_; /* of an adopted range: none */
    quire_memory *memory_ = nullptr;
    quire_allocation allocation_ = {};
};

namespace detail
{

/* The allocation behind what a function of C made. */
inline quire_allocation allocation_of(quire_allocation made) noexcept
{
    return made;
}

inline quire_allocation allocation_of(quire_buffer made) noexcept
{
    return made.allocation;
}

inline quire_allocation allocation_of(quire_image made) noexcept
{
    return made.allocation;
}

/* The owner of the Made, a handle of C, that `function` makes in a memory. `arguments` are those
   between the memory and the handle. */
template <class Owned, class Made, class Function, class... Arguments>
result<Owned> make(const memory &home, Function function, Arguments... arguments)
{
    Made made = {};
    const quire_result code = function(home.handle(), arguments..., &made);
    return access::place<Owned>(home, code, home.handle(), allocation_of(made));
}

/* The same in the default memory of a device that `function` chooses. */
template <class Owned, class Made, class Function, class... Arguments>
result<Owned> make(const device &home, Function function, Arguments... arguments)
{
    quire_memory *chosen = nullptr;
    Made made = {};
    const quire_result code = function(home.handle(), arguments..., &chosen, &made);
    return access::place<Owned>(home, code, chosen, allocation_of(made));
}

} // namespace detail

/* Owns a raw range. */
class allocation final : public placed
{
  public:
    allocation() noexcept = default;

    /* quire_allocate */
    static result<allocation> create(const memory &home, const quire_allocation_options &options)
    {
        return detail::make<allocation, quire_allocation>(home, quire_allocate, &options);
    }

    /* In the default memory of the best kind that has room. quire_device_allocate */
    static result<allocation> create(const device &home, const quire_kind_request &kinds,
                                     const quire_allocation_options &options)
    {
        return detail::make<allocation, quire_allocation>(home, quire_device_allocate, &kinds,
                                                          &options);
    }

    /* Gives memory to a part of a lazy allocation; size 0: to the end. quire_back_range */
    status back(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        const quire_view part = {allocation_, offset, size};
        return checked(detail::back_ranges(memory_, &part, 1));
    }

    /* Takes the memory of a part of a lazy allocation; size 0: to the end. quire_unback_range */
    status unback(std::uint64_t offset = 0, std::uint64_t size = 0) const
    {
        const quire_view part = {allocation_, offset, size};
        return checked(detail::unback_ranges(memory_, &part, 1, nullptr));
    }

    /* The same once the point has passed. */
    status unback_after(const quire_point &point, std::uint64_t offset = 0,
                        std::uint64_t size = 0) const
    {
        const quire_view part = {allocation_, offset, size};
        return checked(detail::unback_ranges(memory_, &part, 1, &point));
    }

    /* Takes over an allocation that a function of C made; {0}: an empty owner. The memory
       must outlive it. */
    static allocation adopt(quire_memory *home, quire_allocation handle) noexcept
    {
        return allocation({}, home, handle);
    }

  private:
    using placed::placed;
};

/* Owns a buffer. */
class buffer final : public placed
{
  public:
    buffer() noexcept = default;

    /* quire_buffer_create */
    static result<buffer> create(const memory &home, const quire_buffer_options &options)
    {
        return detail::make<buffer, quire_buffer>(home, quire_buffer_create, &options);
    }

    /* In the default memory of the best kind that has room. quire_device_buffer_create */
    static result<buffer> create(const device &home, const quire_kind_request &kinds,
                                 const quire_buffer_options &options)
    {
        return detail::make<buffer, quire_buffer>(home, quire_device_buffer_create, &kinds,
                                                  &options);
    }

    /* Takes over a buffer that a function of C made; {0}: an empty owner. The memory
       must outlive it. */
    static buffer adopt(quire_memory *home, quire_buffer handle) noexcept
    {
        return buffer({}, home, handle.allocation);
    }

    /* quire_buffer_get_info */
    result<quire_buffer_info> info() const
    {
        quire_buffer_info info;
        const quire_result code = quire_buffer_get_info(memory_, {allocation_}, &info);
        return checked(code, std::move(info));
    }

  private:
    using placed::placed;
};

/* Owns an image. */
class image final : public placed
{
  public:
    image() noexcept = default;

    /* quire_image_create */
    static result<image> create(const memory &home, const quire_image_options &options)
    {
        return detail::make<image, quire_image>(home, quire_image_create, &options);
    }

    /* In the default memory of the best kind that has room. quire_device_image_create */
    static result<image> create(const device &home, const quire_kind_request &kinds,
                                const quire_image_options &options)
    {
        return detail::make<image, quire_image>(home, quire_device_image_create, &kinds, &options);
    }

    /* Takes over an image that a function of C made; {0}: an empty owner. The memory
       must outlive it. */
    static image adopt(quire_memory *home, quire_image handle) noexcept
    {
        return image({}, home, handle.allocation);
    }

    /* quire_image_get_info */
    result<quire_image_info> info() const
    {
        quire_image_info info;
        const quire_result code = quire_image_get_info(memory_, {allocation_}, &info);
        return checked(code, std::move(info));
    }

  private:
    using placed::placed;
};

} // namespace quire

#endif
