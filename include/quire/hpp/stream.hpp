/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/hpp/stream.hpp - the owner of a stream, and points (quire/stream.h).
 *
 * Thread-safety: as quire/stream.h; the owner itself is moved and destroyed by one thread.
 */
#ifndef QUIRE_HPP_STREAM_HPP
#define QUIRE_HPP_STREAM_HPP

#include "quire/hpp/device.hpp"

namespace quire
{
namespace detail
{

struct stream_traits {
    using handle = quire_stream;
    static constexpr const char *name = "quire::stream";
    static void destroy(quire_stream *stream)
    {
        quire_stream_destroy(&stream);
    }
};

} // namespace detail

/*
 * Owns a stream. The destructor waits at most one second for points that have not passed. If one
 * has not passed then, or live allocations have a recorded use of the stream, the stream stays
 * until the process ends, and so does its device.
 */
class stream : public detail::owner<detail::stream_traits>
{
  public:
    stream() noexcept = default;

    /* quire_stream_create; may throw std::bad_alloc */
    static result<stream> create(const device &parent, const quire_stream_options &options = {})
    {
        detail::keeper kept = prepare(detail::access::keeper_of(parent));
        quire_stream *created = nullptr;
        const quire_result code = quire_stream_create(parent.handle(), &options, &created);
        return detail::access::checked(parent, code, stream(created, std::move(kept)));
    }

    /* Takes over a stream that a function of C created or wrapped, as quire_cuda_stream_wrap; null:
       an empty owner. A native stream stays with its owner. The device must outlive it. May throw
       std::bad_alloc; the caller keeps the stream then. */
    static stream adopt(quire_stream *handle)
    {
        return stream(handle, prepare({}));
    }

    /* quire_stream_get_info */
    result<quire_stream_info> info() const
    {
        quire_stream_info info;
        const quire_result code = quire_stream_get_info(handle_, &info);
        return checked(code, std::move(info));
    }

    /* A point after all work submitted so far. quire_stream_mark */
    result<quire_point> mark() const
    {
        quire_point point;
        const quire_result code = quire_stream_mark(handle_, &point);
        return checked(code, std::move(point));
    }

    /* quire_stream_announce */
    status announce(std::uint64_t value) const
    {
        return checked(quire_stream_announce(handle_, value));
    }

    /* Later work of the stream waits for the point; the host does not. quire_stream_wait */
    status wait(const quire_point &point) const
    {
        return checked(quire_stream_wait(handle_, &point));
    }

    /* Destroys the stream; on BUSY the owner keeps it. quire_stream_destroy */
    status destroy()
    {
        return destroyed(quire_stream_destroy(&handle_));
    }

  private:
    using owner::owner;
};

/* quire_point_has_passed */
inline result<bool> has_passed(const quire_point &point)
{
    bool passed = false;
    const quire_result code = quire_point_has_passed(&point, &passed);
    return detail::make_result(code, std::move(passed));
}

/* Sleeps until the point has passed, for at most `nanoseconds`. quire_point_await */
inline status await(const quire_point &point, std::uint64_t nanoseconds = QUIRE_FOREVER)
{
    return status::of(quire_point_await(&point, nanoseconds));
}

} // namespace quire

#endif
