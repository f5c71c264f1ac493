/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp_resources.cpp - the memory resources of quire.hpp: std::pmr over the host backend, and the
 * resource of RMM and CCCL on a CUDA driver.
 *
 *     cpp_resources [DRIVER]
 */
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/plain/cpp.h"

/* ---- what RMM and CCCL require, restated ------------------------------------------------------ */

namespace mr
{
struct device_accessible {
};
struct host_accessible {
};
} // namespace mr

struct native_stream; /* as CUstream_st: incomplete */

/* as cuda::stream_ref: get() */
struct stream_ref {
    native_stream *native;

    native_stream *get() const
    {
        return native;
    }
};

/* as rmm::cuda_stream_view: converts */
struct stream_view {
    native_stream *native;

    operator native_stream *() const
    {
        return native;
    }
};

template <class R>
using sync_allocate = decltype(std::declval<R &>().allocate_sync(std::size_t(), std::size_t()));
template <class R>
using sync_deallocate = decltype(std::declval<R &>().deallocate_sync(std::declval<void *>(),
                                                                     std::size_t(), std::size_t()));
template <class R, class S>
using stream_allocate =
    decltype(std::declval<R &>().allocate(std::declval<S>(), std::size_t(), std::size_t()));
template <class R, class S>
using stream_deallocate = decltype(std::declval<R &>().deallocate(
    std::declval<S>(), std::declval<void *>(), std::size_t(), std::size_t()));
template <class R>
using old_allocate = decltype(std::declval<R &>().allocate(std::size_t(), std::size_t()));
template <class R>
using old_deallocate =
    decltype(std::declval<R &>().deallocate(std::declval<void *>(), std::size_t(), std::size_t()));
template <class R, class S>
using async_allocate =
    decltype(std::declval<R &>().allocate_async(std::size_t(), std::size_t(), std::declval<S>()));
template <class R, class S>
using async_deallocate = decltype(std::declval<R &>().deallocate_async(
    std::declval<void *>(), std::size_t(), std::size_t(), std::declval<S>()));

template <class R, class S>
constexpr bool is_resource = std::is_same_v<sync_allocate<R>, void *> &&std::is_void_v<
    sync_deallocate<R>> &&std::is_same_v<stream_allocate<R, S>,
                                         void *> &&std::is_void_v<stream_deallocate<R, S>>
    &&std::is_same_v<old_allocate<R>, void *> &&std::is_void_v<old_deallocate<R>>
        &&std::is_same_v<async_allocate<R, S>, void *> &&std::is_void_v<async_deallocate<R, S>>
            &&std::is_same_v<decltype(std::declval<const R &>() == std::declval<const R &>()), bool>
                &&std::is_same_v<decltype(std::declval<const R &>() != std::declval<const R &>()),
                                 bool> &&std::is_copy_constructible_v<R>
                    &&std::is_copy_assignable_v<R> &&std::is_nothrow_move_constructible_v<R>
                        &&noexcept(std::declval<R &>().deallocate_sync(nullptr, 0, 0)) &&noexcept(
                            std::declval<R &>().deallocate(std::declval<S>(), nullptr, 0, 0));

template <class R, class P, class = void> constexpr bool has_property = false;
template <class R, class P>
constexpr bool
    has_property<R, P, std::void_t<decltype(get_property(std::declval<const R &>(), P()))>> = true;

using resource = quire::device_resource<mr::device_accessible>;
static_assert(is_resource<resource, stream_ref> && is_resource<resource, stream_view>);
static_assert(is_resource<resource, void *> && is_resource<resource, native_stream *>);
static_assert(has_property<resource, mr::device_accessible>);
static_assert(!has_property<resource, mr::host_accessible>);
static_assert(has_property<quire::device_resource<mr::host_accessible, mr::device_accessible>,
                           mr::host_accessible>);
static_assert(!has_property<quire::device_resource<>, mr::device_accessible>);

/* Whether a call throws std::bad_alloc. */
template <class Call> static bool is_refused(Call call)
{
    try {
        call();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

/* ---- std::pmr --------------------------------------------------------------------------------- */

static quire::memory_options host_options()
{
    return quire::memory_options().with_flags(QUIRE_HOST_VISIBLE).with_find_by_address();
}

static void test_containers()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, host_options()).value();
    quire::memory_resource resource = quire::memory_resource::create(memory).value();
    {
        std::pmr::vector<int> numbers(&resource);
        for (int i = 0; i < 10000; i++)
            numbers.push_back(i);
        std::pmr::map<std::pmr::string, int> names(&resource);
        for (int i = 0; i < 200; i++)
            names["a name that is too long for the string itself " +
                  std::pmr::string(std::to_string(i))] = i;
        CHECK(numbers[9999] == 9999 && names.size() == 200);
        CHECK(memory.find(numbers.data()) && memory.find(&*names.begin()));
        CHECK(memory.find(names.begin()->first.data()));
        std::pmr::vector<int> moved(std::move(numbers));
        CHECK(moved.size() == 10000 && moved.get_allocator().resource() == &resource);
    }
    CHECK(memory.destroy()); /* everything was given back */
}

/* A resource that was moved from refuses, also what it gave out before. */
static void test_moved_resource()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, host_options()).value();
    quire::memory_resource first = quire::memory_resource::create(memory).value();
    void *bytes = first.allocate(64);
    quire::memory_resource second(std::move(first));
    CHECK(is_refused([&] { (void)first.allocate(8); }));
    first.deallocate(bytes, 64);
    CHECK(memory.find(bytes));
    second.deallocate(bytes, 64);
    CHECK(!memory.find(bytes));
    first = std::move(second);
    first.deallocate(first.allocate(8), 8);
    CHECK(is_refused([&] { (void)second.allocate(8); }));
}

/* Small elements take the granule that the memory was made with. */
static void test_granule()
{
    quire::device device = open_host();
    std::uint64_t held[2];
    for (int i = 0; i < 2; i++) {
        quire::memory memory =
            quire::memory::create(device, host_options().with_granule(i ? 256 : 16)).value();
        quire::memory_resource resource = quire::memory_resource::create(memory).value();
        std::pmr::vector<char> few(10, 'x', &resource);
        held[i] = memory.stats()->live_bytes;
    }
    CHECK(held[0] < held[1]); /* checked builds add red zones */
}

/* A resource keeps its memory, and the memory its device. */
static void test_lasting_resource()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, host_options()).value();
    quire::memory_resource resource = quire::memory_resource::create(memory).value();
    std::pmr::vector<char> few(10, 'x', &resource);
    device = quire::device();
    memory = quire::memory();
    few.resize(100000, 'y');
    CHECK(few[9] == 'x' && few[99999] == 'y');
}

static void test_alignments()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, host_options()).value();
    quire::memory_resource resource = quire::memory_resource::create(memory).value();
    void *first = resource.allocate(1, 1); /* so that no other starts the page */
    for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2)
        for (std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(1000)}) {
            void *pointer = resource.allocate(bytes, alignment);
            CHECK(pointer && reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0);
            std::memset(pointer, 1, bytes);
            resource.deallocate(pointer, bytes, alignment);
        }
    CHECK(is_refused([&] { (void)resource.allocate(1, std::size_t(1) << 30); }));
    resource.deallocate(first, 1, 1);
    CHECK(memory.destroy());
}

static void test_refusals()
{
    quire::device device = open_host();
    quire::memory memory =
        quire::memory::create(device, host_options().with_limit(1 << 20)).value();
    quire::memory_resource resource = quire::memory_resource::create(memory).value();
    CHECK(is_refused([&] { std::pmr::vector<char> too_large(std::size_t(2) << 20, &resource); }));
    CHECK(quire_last_result() == QUIRE_ERROR_OVER_BUDGET);
    volatile std::size_t huge = SIZE_MAX; /* the compiler would warn of it */
    CHECK(is_refused([&] { (void)resource.allocate(huge, 1); }));

    char *pointer = static_cast<char *>(resource.allocate(100));
    resource.deallocate(pointer + 1, 100); /* inside of the allocation */
    CHECK(quire_last_result() == QUIRE_ERROR_INVALID_ARGUMENT && memory.find(pointer));
    resource.deallocate(&device, 1); /* of someone else */
    CHECK(quire_last_result() == QUIRE_ERROR_OUT_OF_RANGE && memory.find(pointer));
    resource.deallocate(pointer, 100);
    CHECK(!memory.find(pointer));

    quire::memory_resource other = quire::memory_resource::create(memory).value();
    CHECK(resource.is_equal(resource) && !resource.is_equal(other));
    CHECK(!resource.is_equal(*std::pmr::new_delete_resource()));
}

static void test_wrong_memories()
{
    quire::device device = open_host();
    using quire::memory_resource;
    quire::memory local =
        quire::memory::create(device, quire::memory_options().with_find_by_address()).value();
    CHECK(memory_resource::create(local).code() == QUIRE_ERROR_NOT_HOST_VISIBLE);
    quire::memory without =
        quire::memory::create(device, quire::memory_options().with_flags(QUIRE_HOST_VISIBLE))
            .value();
    CHECK(memory_resource::create(without).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(memory_resource::create(quire::memory()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(resource::create(without).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(resource::create(quire::memory()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(resource::create(local).code() == QUIRE_ERROR_OUT_OF_RANGE); /* it has no addresses */
}

/* ---- on CUDA's streams ------------------------------------------------------------------------ */

static const char *driver;

struct cuda {
    quire::device device;
    quire::stream stream;
    quire::memory memory;
    native_stream *native = nullptr;

    explicit cuda(std::uint64_t limit = 0)
    {
        quire_cuda_options options = {};
        options.library = driver;
        device = quire::device::open(quire_cuda_open, &options).value();
        stream = quire::stream::create(device).value();
        memory = quire::memory::create(
                     device, quire::memory_options().with_find_by_address().with_limit(limit))
                     .value();
        void *found = nullptr;
        CHECK(quire_cuda_stream_get(stream.handle(), &found) == QUIRE_SUCCESS);
        native = static_cast<native_stream *>(found);
    }
};

static void test_device_resource()
{
    cuda on;
    resource pool = resource::create(on.memory).value();
    const stream_ref ref{on.native};
    const stream_view view{on.native};

    void *first = pool.allocate(ref, 1000);
    CHECK(first && reinterpret_cast<std::uintptr_t>(first) % 256 == 0);
    CHECK(on.memory.find(first));
    pool.deallocate(view, first, 1000);
    CHECK(!on.memory.find(first));
    void *second = pool.allocate_async(1000, 4096, view);
    CHECK(second && reinterpret_cast<std::uintptr_t>(second) % 4096 == 0);
    pool.deallocate_async(second, 1000, 4096, ref);
    void *third = pool.allocate(1000, 512), *fourth = pool.allocate_sync(1000, 512);
    CHECK(third && fourth && third != fourth &&
          reinterpret_cast<std::uintptr_t>(fourth) % 512 == 0);
    pool.deallocate(third, 1000, 512);
    pool.deallocate_sync(fourth, 1000, 512);
    void *fifth = pool.allocate(nullptr, 64); /* the default stream */
    pool.deallocate(static_cast<void *>(nullptr), fifth, 64);

    CHECK(!pool.allocate(ref, 0) && !pool.allocate_sync(0));
    pool.deallocate(ref, nullptr, 0);
    pool.deallocate_sync(nullptr, 0);

    const resource copy = pool;
    cuda elsewhere;
    CHECK(copy == pool && !(copy != pool));
    CHECK(resource::create(elsewhere.memory).value() != pool);
    resource first_pool = resource::create(on.memory, nullptr).value();
    const resource moved(std::move(first_pool));
    CHECK(moved == first_pool && moved == pool); /* a move copies */
    CHECK(pool.forget(ref) && pool.forget(ref) && pool.forget(nullptr));
    void *again = pool.allocate(ref, 100);
    pool.deallocate(ref, again, 100);
    CHECK(!on.memory.find(again) && pool.forget(ref));
    CHECK(on.memory.collect() && on.memory.destroy());
}

static void test_device_refusals()
{
    cuda on(4 << 20);
    resource pool = resource::create(on.memory).value();
    const stream_ref ref{on.native};
    volatile std::size_t huge = SIZE_MAX;
    CHECK(is_refused([&] { (void)pool.allocate(ref, 64 << 20); }));
    CHECK(quire_last_result() == QUIRE_ERROR_OVER_BUDGET);
    CHECK(is_refused([&] { (void)pool.allocate_sync(huge); }));
    CHECK(is_refused([&] { (void)pool.allocate_sync(100, 3); }));

    char *kept = static_cast<char *>(pool.allocate(ref, 1000));
    pool.deallocate(ref, kept + 256, 744);
    CHECK(quire_last_result() == QUIRE_ERROR_INVALID_ARGUMENT && on.memory.find(kept));
    pool.deallocate(ref, kept, 1000);
    pool.deallocate(ref, kept, 1000); /* a second time */
    CHECK(quire_last_result() == QUIRE_ERROR_OUT_OF_RANGE);

    resource refusing = resource::create(on.memory, [](quire_device *, void *native,
                                                       const char *name, quire_stream **stream) {
                            return quire_cuda_stream_wrap(nullptr, native, name, stream);
                        }).value();
    CHECK(is_refused([&] { (void)refusing.allocate(ref, 100); }));
    void *live = refusing.allocate_sync(100);
    refusing.deallocate(ref, live, 100);
    CHECK(quire_last_result() == QUIRE_ERROR_INVALID_ARGUMENT && on.memory.find(live));
    refusing.deallocate_sync(live, 100);
    CHECK(!on.memory.find(live) && refusing.forget(ref));
}

/* Threads share a resource and its streams; each has its own default stream. */
static void test_device_threads()
{
    cuda on;
    resource pool = resource::create(on.memory).value();
    native_stream *const per_thread =
        static_cast<native_stream *>(reinterpret_cast<void *>(std::uintptr_t(2)));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([pool, &on, per_thread]() mutable {
            for (std::size_t step = 1; step <= 50; step++) {
                void *one = pool.allocate(stream_ref{on.native}, step * 100);
                void *two = pool.allocate(stream_view{per_thread}, step * 100);
                CHECK(one && two && one != two);
                pool.deallocate(stream_view{per_thread}, two, step * 100);
                pool.deallocate(stream_ref{on.native}, one, step * 100);
            }
            CHECK(pool.forget(per_thread));
        });
    for (std::thread &thread : threads)
        thread.join();
    CHECK(pool.forget(on.native) && on.memory.collect() && on.memory.destroy());
}

int main(int count, char **arguments)
{
    run_case("containers of std::pmr", test_containers);
    run_case("elements take the granule of the memory", test_granule);
    run_case("a resource keeps its memory alive", test_lasting_resource);
    run_case("a resource that was moved from refuses", test_moved_resource);
    run_case("alignments are honoured", test_alignments);
    run_case("refusals are std::bad_alloc, wrong pointers stay", test_refusals);
    run_case("memories without host pointers or addresses are refused", test_wrong_memories);
    if (count > 1) {
        driver = arguments[1];
        run_case("allocations in the order of streams", test_device_resource);
        run_case("refusals of the device resource", test_device_refusals);
        run_case("threads share a device resource", test_device_threads);
    }
    std::printf("1..%d\n", cases);
}
