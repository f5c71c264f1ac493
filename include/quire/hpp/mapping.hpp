/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/mapping.hpp - the owner of a map of an allocation, and its elements.
 *
 * Thread-safety: as quire/allocation.h; the owner itself is moved and destroyed by one thread.
 */
#ifndef QUIRE_HPP_MAPPING_HPP
#define QUIRE_HPP_MAPPING_HPP

#include <type_traits>

#include "quire/hpp/owner.hpp"

namespace quire
{

/* Elements in mapped memory. Owns nothing: valid as long as the mapping. std::span takes one. */
template <class T> class mapped_span
{
  public:
    mapped_span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }

    T *data() const noexcept
    {
        return data_;
    }

    /* number of elements */
    std::size_t size() const noexcept
    {
        return size_;
    }

    T *begin() const noexcept
    {
        return data_;
    }

    T *end() const noexcept
    {
        return data_ + size_;
    }

    /* `index` is below size(). */
    T &operator[](std::size_t index) const noexcept
    {
        return data_[index];
    }

  private:
    T *data_;
    std::size_t size_;
};

/* A map of an allocation, which is not freed before. The destructor unmaps. */
class mapping
{
  public:
    mapping() noexcept = default;

    mapping(mapping &&other) noexcept
        : home_(std::move(other.home_)), memory_(std::exchange(other.memory_, nullptr)),
          allocation_(other.allocation_), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0))
    {
    }

    mapping &operator=(mapping &&other) noexcept
    {
        if (this != &other) {
            (void)unmap();
            home_ = std::move(other.home_);
            memory_ = std::exchange(other.memory_, nullptr);
            allocation_ = other.allocation_;
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }

    ~mapping()
    {
        (void)unmap();
    }

    explicit operator bool() const noexcept
    {
        return data_ != nullptr;
    }

    /* The first mapped byte; null if the owner is empty. */
    void *data() const noexcept
    {
        return data_;
    }

    /* bytes; 0 if the owner is empty */
    std::uint64_t size() const noexcept
    {
        return size_;
    }

    /* The mapped bytes as elements; a rest that is smaller than an element is left out. The caller
       ensures that the first byte is aligned for T: an allocation made with that alignment is. */
    template <class T> mapped_span<T> as() const noexcept
    {
        static_assert(std::is_trivially_copyable<T>::value, "devices know bytes, not objects");
        return mapped_span<T>(static_cast<T *>(data_), static_cast<std::size_t>(size_ / sizeof(T)));
    }

    /* Unmaps, and leaves the owner empty; an empty owner succeeds. quire_unmap */
    status unmap()
    {
        const detail::keeper home = std::move(home_);
        quire_memory *memory = std::exchange(memory_, nullptr);
        data_ = nullptr;
        size_ = 0;
        return memory ? status::of(quire_unmap(memory, allocation_)) : status();
    }

  private:
    friend class placed;

    mapping(const detail::keeper &home, quire_memory *memory, quire_allocation allocation,
            void *data, std::uint64_t size) noexcept
        : home_(home), memory_(memory), allocation_(allocation), data_(data), size_(size)
    {
    }

    detail::keeper home_;
    quire_memory *memory_ = nullptr;
    quire_allocation allocation_ = {};
    void *data_ = nullptr;
    std::uint64_t size_ = 0;
};

} // namespace quire

#endif
