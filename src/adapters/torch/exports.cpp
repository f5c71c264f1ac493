/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * exports.cpp - the functions that libquire_torch.so exports, with the C++ types of torch's
 * interface: torch/csrc/cuda/CUDAPluggableAllocator.h has the signatures (a pool is a std::pair of
 * two unsigned 64-bit numbers, its filter a std::function). torch gets addresses of these
 * functions.
 *
 * Errors are exceptions, because torch checks no result if the adapter is its allocator. Only
 * quire_torch_pool_alloc returns NULL: torch then reports that memory is exhausted. Functions that
 * free never throw, because torch calls them from destructors: they write a line to stderr.
 */
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/adapters/torch/calls.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace
{

using stream_type = void *; /* cudaStream_t */
using pool_type = std::pair<unsigned long long, unsigned long long>;
using filter_type = std::function<bool(stream_type)>;

/* torch makes a RuntimeError of std::exception. Programs look for the first words of the sentence to
   distinguish exhausted memory. */
void check(quire_result result, const char *function)
{
    if (result == QUIRE_SUCCESS)
        return;
    std::string text = std::string(function) + ": " + torch_message();
    if (torch_is_exhausted(result))
        throw std::runtime_error("CUDA out of memory. " + text);
    if (result == QUIRE_ERROR_INVALID_ARGUMENT)
        throw std::invalid_argument(text);
    throw std::runtime_error(text);
}

void report(quire_result result, const char *function) noexcept
{
    if (result != QUIRE_SUCCESS)
        std::fprintf(stderr, "%s: %s\n", function, torch_message());
}

/* torch's filter may throw, for example for the legacy default stream during a capture. */
bool matches(void *state, void *stream) noexcept
{
    try {
        return (*static_cast<filter_type *>(state))(stream);
    } catch (...) {
        return false;
    }
}

void destroy(void *state) noexcept
{
    delete static_cast<filter_type *>(state);
}

torch_pool_id id_of(pool_type pool)
{
    return torch_pool_id{pool.first, pool.second};
}

} // namespace

/* ---- as torch's allocator, or as the allocator of a MemPool --------------------------------- */

EXPORT void *quire_torch_alloc(ssize_t size, int device, stream_type stream)
{
    void *pointer = nullptr;
    check(torch_allocate(size, device, stream, &pointer), "quire_torch_alloc");
    return pointer;
}

EXPORT void quire_torch_free(void *pointer, ssize_t, int device, stream_type stream)
{
    report(torch_free(pointer, device, stream), "quire_torch_free");
}

EXPORT void *quire_torch_pool_alloc(ssize_t size, int device, stream_type stream)
{
    void *pointer = nullptr;
    quire_result result = torch_allocate(size, device, stream, &pointer);
    report(torch_is_exhausted(result) ? QUIRE_SUCCESS : result, "quire_torch_pool_alloc");
    return pointer;
}

EXPORT void quire_torch_pool_free(void *pointer, ssize_t, int device, stream_type stream)
{
    report(torch_free_segment(pointer, device, stream), "quire_torch_pool_free");
}

/* ---- the other functions of an allocator ---------------------------------------------------- */

EXPORT void quire_torch_init(int device_count)
{
    check(torch_init(device_count), "quire_torch_init");
}

EXPORT void quire_torch_reset()
{
    check(torch_reset(), "quire_torch_reset");
}

EXPORT void quire_torch_memory_fraction(double fraction, int device)
{
    check(torch_set_fraction(fraction, device), "quire_torch_memory_fraction");
}

EXPORT void *quire_torch_base_alloc(void *pointer, size_t *size)
{
    return torch_get_base(pointer, size);
}

EXPORT void quire_torch_record_stream(void *pointer, stream_type stream)
{
    check(torch_record_stream(pointer, stream), "quire_torch_record_stream");
}

/* An empty std::function selects every stream. */
EXPORT void quire_torch_begin_allocate_to_pool(int device, pool_type pool, filter_type filter)
{
    torch_filter wanted = {nullptr, nullptr, nullptr};
    if (filter)
        wanted = torch_filter{matches, destroy, new filter_type(std::move(filter))};
    check(torch_begin_pool(device, id_of(pool), &wanted), "quire_torch_begin_allocate_to_pool");
}

EXPORT void quire_torch_end_allocate_to_pool(int device, pool_type pool)
{
    check(torch_end_pool(device, id_of(pool)), "quire_torch_end_allocate_to_pool");
}

/* The destructor of a graph calls it. */
EXPORT void quire_torch_release_pool(int device, pool_type pool)
{
    report(torch_release_pool(device, id_of(pool)), "quire_torch_release_pool");
}

/* ---- for quire_torch.py --------------------------------------------------------------------- */

/* 0 or an error; quire_torch_message has the sentence. */
EXPORT int quire_torch_record_history(uint64_t count)
{
    return torch_record_history(count);
}

EXPORT int quire_torch_reset_peaks(int device)
{
    return torch_reset_peaks(device);
}

/* NULL: no tag. */
EXPORT int quire_torch_set_tag(const char *tag)
{
    return torch_set_tag(tag);
}

EXPORT const char *quire_torch_tag()
{
    return torch_tag();
}

EXPORT int quire_torch_sleep(int device, const char *prefix, int keep, uint64_t *bytes)
{
    return torch_sleep(device, prefix, keep != 0, bytes);
}

EXPORT int quire_torch_wake(int device, const char *prefix, uint64_t *bytes)
{
    return torch_wake(device, prefix, bytes);
}

EXPORT const char *quire_torch_message()
{
    return torch_message();
}

/* JSON; the caller releases it by quire_torch_text_free. NULL: host memory is exhausted. */
EXPORT char *quire_torch_statistics()
{
    return torch_statistics();
}

EXPORT char *quire_torch_snapshot()
{
    return torch_snapshot();
}

EXPORT void quire_torch_text_free(char *text)
{
    std::free(text);
}
