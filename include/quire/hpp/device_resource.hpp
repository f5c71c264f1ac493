/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/device_resource.hpp - device memory in the order of CUDA streams, with the functions
 * that RMM and CCCL require of a memory resource. Needs no header of CUDA.
 *
 * Thread-safety: any thread may call any function.
 */
#ifndef QUIRE_HPP_DEVICE_RESOURCE_HPP
#define QUIRE_HPP_DEVICE_RESOURCE_HPP

#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "quire/cuda.h"
#include "quire/hpp/memory_resource.hpp"

namespace quire
{

/* Wraps a native stream for quire: quire_cuda_stream_wrap, or a function of the caller. */
using wrap_stream = quire_result (*)(quire_device *device, void *native, const char *name,
                                     quire_stream **stream);

namespace detail
{

/* The native stream of a void *, a cudaStream_t, or a class that converts to one or has get(). */
template <class Stream> void *native_stream(const Stream &stream)
{
    if constexpr (std::is_convertible_v<const Stream &, void *>)
        return stream;
    else
        return stream.get();
}

/* CU_STREAM_PER_THREAD: another stream in each thread */
inline bool is_per_thread(const void *native)
{
    return reinterpret_cast<std::uintptr_t>(native) == 2;
}

/* What the copies of a resource share: the memory and the wrapped streams. */
class stream_cache
{
  public:
    stream_cache(const memory &home, quire_device *device, wrap_stream wrap)
        : home_(access::keeper_of(home)), memory_(home.handle()), device_(device), wrap_(wrap)
    {
    }

    quire_memory *memory_handle() const noexcept
    {
        return memory_;
    }

    /* The stream of a native one, wrapped at its first use; null, with quire's last error, if quire
       refuses it. */
    quire_stream *find(void *native)
    {
        const std::lock_guard<std::mutex> hold(lock_);
        const std::size_t index = index_of(native);
        if (index < entries_.size())
            return entries_[index].wrapped.handle();
        entries_.emplace_back(); /* before the stream exists: it may throw */
        quire_stream *wrapped = nullptr;
        if (wrap_(device_, native, "memory resource", &wrapped) != QUIRE_SUCCESS) {
            entries_.pop_back();
            return nullptr;
        }
        entries_.back() = {native, std::this_thread::get_id(), stream::adopt(wrapped)};
        return wrapped;
    }

    status forget(void *native)
    {
        const std::lock_guard<std::mutex> hold(lock_);
        const std::size_t index = index_of(native);
        if (index == entries_.size())
            return status();
        status destroyed = entries_[index].wrapped.destroy();
        if (destroyed) {
            std::swap(entries_[index], entries_.back());
            entries_.pop_back();
        }
        return destroyed;
    }

  private:
    struct entry {
        void *native = nullptr;
        std::thread::id thread;
        stream wrapped;
    };

    std::size_t index_of(const void *native) const
    {
        std::size_t index = 0;
        while (index < entries_.size() &&
               (entries_[index].native != native ||
                (is_per_thread(native) && entries_[index].thread != std::this_thread::get_id())))
            index++;
        return index;
    }

    keeper home_; /* outlives the streams */
    quire_memory *memory_;
    quire_device *device_;
    wrap_stream wrap_;
    std::mutex lock_;
    std::vector<entry> entries_;
};

} // namespace detail

/*
 * A memory resource over a memory of the CUDA backend, which all its copies keep alive. Copies are
 * equal and share the streams. `Properties` are those that the resource has, named by the
 * program, which includes the header that declares them:
 *
 *     using resource = quire::device_resource<cuda::mr::device_accessible>;
 *
 * A stream is a cudaStream_t, a CUstream, or an object that converts to one or has get(), such as
 * cuda::stream_ref and rmm::cuda_stream_view. It must outlive the resource, or forget() must name
 * it before it is destroyed; so must a thread its own default stream before it ends.
 *
 * Allocating 0 bytes returns null. A refusal throws std::bad_alloc, and quire_last_error has the
 * reason; without exceptions it prints the sentence and aborts. Deallocating null does nothing. A
 * pointer that is not the start of a live allocation, or a stream that quire refuses, is not freed;
 * quire_last_error then has the reason. `bytes` and `alignment` of a deallocation are not used. The
 * first use of a stream needs a little host memory; a deallocation that does not get it ends the
 * program.
 */
template <class... Properties> class device_resource
{
    template <class Stream> using needs_stream = std::enable_if_t<!std::is_integral_v<Stream>, int>;

  public:
    /* Alignment of allocations that name none, in bytes: that of cudaMalloc. */
    static constexpr std::size_t default_alignment = 256;

    /*
     * The memory needs the option find_by_address and pages with addresses; the call tries it with
     * an allocation of one byte. `wrap` wraps native streams; null: quire_cuda_stream_wrap. May
     * throw std::bad_alloc.
     * Errors: those of quire_allocate, UNSUPPORTED (no find_by_address), OUT_OF_RANGE (no
     * addresses).
     */
    static result<device_resource> create(const memory &home, wrap_stream wrap = nullptr)
    {
        status usable = detail::try_pointers(home, false);
        if (!usable)
            return std::move(usable).error();
        result<quire_memory_info> info = home.info();
        if (!info)
            return std::move(info).error();
        return device_resource(std::make_shared<detail::stream_cache>(
            home, info->device, wrap ? wrap : quire_cuda_stream_wrap));
    }

    /* There is no move: a resource that was moved from stays usable. */
    device_resource(const device_resource &) noexcept = default;
    device_resource &operator=(const device_resource &) noexcept = default;

    /* In the order of a stream: for work that is submitted to it after the call. */
    template <class Stream, needs_stream<Stream> = 0>
    void *allocate(const Stream &stream, std::size_t bytes,
                   std::size_t alignment = default_alignment)
    {
        if (!bytes)
            return nullptr;
        quire_stream *order = cache_->find(detail::native_stream(stream));
        if (!order)
            detail::raise(quire_last_error(), std::bad_alloc());
        return allocate_from(order, bytes, alignment);
    }

    /* The range is reused once the work submitted to the stream so far is done, and by the stream
       itself at once. */
    template <class Stream, needs_stream<Stream> = 0>
    void deallocate(const Stream &stream, void *pointer, std::size_t bytes,
                    std::size_t alignment = default_alignment) noexcept
    {
        (void)bytes, (void)alignment;
        if (!pointer)
            return;
        quire_stream *order = cache_->find(detail::native_stream(stream));
        if (order)
            free_at(pointer, order);
    }

    /* For any stream: no work uses the memory when the call returns. */
    void *allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment)
    {
        return bytes ? allocate_from(nullptr, bytes, alignment) : nullptr;
    }

    /* No work of the device uses the memory any more. */
    void deallocate_sync(void *pointer, std::size_t bytes,
                         std::size_t alignment = default_alignment) noexcept
    {
        (void)bytes, (void)alignment;
        if (pointer)
            free_at(pointer, nullptr);
    }

    /* The names of CCCL before 3.1, where the plain ones were those without a stream. */
    void *allocate(std::size_t bytes, std::size_t alignment = default_alignment)
    {
        return allocate_sync(bytes, alignment);
    }

    void deallocate(void *pointer, std::size_t bytes,
                    std::size_t alignment = default_alignment) noexcept
    {
        deallocate_sync(pointer, bytes, alignment);
    }

    template <class Stream, needs_stream<Stream> = 0>
    void *allocate_async(std::size_t bytes, std::size_t alignment, const Stream &stream)
    {
        return allocate(stream, bytes, alignment);
    }

    template <class Stream, needs_stream<Stream> = 0>
    void deallocate_async(void *pointer, std::size_t bytes, std::size_t alignment,
                          const Stream &stream) noexcept
    {
        deallocate(stream, pointer, bytes, alignment);
    }

    /* Drops what quire keeps of a native stream; a stream that was never used succeeds. Waits as
       quire_stream_destroy, whose errors it has. */
    template <class Stream> status forget(const Stream &stream)
    {
        return cache_->forget(detail::native_stream(stream));
    }

    friend bool operator==(const device_resource &one, const device_resource &other) noexcept
    {
        return one.cache_->memory_handle() == other.cache_->memory_handle();
    }

    friend bool operator!=(const device_resource &one, const device_resource &other) noexcept
    {
        return !(one == other);
    }

    /* (is_void_v, never true here, makes the condition depend on Property without Properties) */
    template <class Property>
    friend constexpr std::enable_if_t<(std::is_same_v<Property, Properties> || ... ||
                                       std::is_void_v<Property>)>
    get_property(const device_resource &, Property) noexcept
    {
    }

  private:
    explicit device_resource(std::shared_ptr<detail::stream_cache> cache) noexcept
        : cache_(std::move(cache))
    {
    }

    void *allocate_from(quire_stream *order, std::size_t bytes, std::size_t alignment)
    {
        quire_allocation_info info;
        allocation_options options(bytes);
        options.with_alignment(alignment);
        options.stream = order;
        options.info = &info;
        quire_allocation made = {};
        if (quire_allocate(cache_->memory_handle(), &options, &made) != QUIRE_SUCCESS)
            detail::raise(quire_last_error(), std::bad_alloc());
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(info.address));
    }

    void free_at(void *pointer, quire_stream *order) noexcept
    {
        quire_free_at_address(cache_->memory_handle(), reinterpret_cast<std::uintptr_t>(pointer),
                              order);
    }

    std::shared_ptr<detail::stream_cache> cache_;
};

} // namespace quire

#endif
