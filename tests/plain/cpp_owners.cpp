/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cpp_owners.cpp - quire.hpp: who owns what, results and errors, options, mappings, streams, stats
 * scopes, walks, texts, misuse. Built with exceptions and without.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/plain/cpp.h"

#if __cplusplus >= 201703L
template <class Owner>
constexpr bool is_move_only =
    !std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner> &&
    std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner> &&
    std::is_nothrow_default_constructible_v<Owner>;

static_assert(is_move_only<quire::device> && is_move_only<quire::memory>);
static_assert(is_move_only<quire::stream> && is_move_only<quire::stats_scope>);
static_assert(is_move_only<quire::allocation> && is_move_only<quire::buffer>);
static_assert(is_move_only<quire::image> && is_move_only<quire::mapping>);
static_assert(!std::is_convertible_v<quire_memory *, quire::memory>);
static_assert(!std::is_convertible_v<quire::buffer, quire::allocation>);
static_assert(!std::is_convertible_v<quire::allocation, quire::buffer>);
static_assert(!std::is_convertible_v<quire::image, quire::buffer>);
static_assert(!std::is_convertible_v<quire::memory, quire::device>);
static_assert(!std::is_convertible_v<quire::memory, bool>);
static_assert(!std::is_convertible_v<std::uint64_t, quire::buffer_options>);
static_assert(!std::is_constructible_v<quire::allocation, quire_memory *, quire_allocation>);
static_assert(std::is_base_of_v<std::runtime_error, quire::error>);
#endif

static quire::memory host_memory(const quire::device &device)
{
    return quire::memory::create(device,
                                 quire::memory_options().with_intent(QUIRE_INTENT_HOST_WRITE))
        .value();
}

static void test_moves()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    quire_memory *handle = memory.handle();
    quire::memory moved(std::move(memory));
    CHECK(!memory && moved && moved.handle() == handle);

    quire::memory *alias = &moved;
    moved = std::move(*alias); /* to itself: nothing changes */
    CHECK(moved.handle() == handle && moved.info());

    quire::buffer one = quire::buffer::create(moved, quire::buffer_options(100)).value();
    quire::buffer two = quire::buffer::create(moved, quire::buffer_options(200)).value();
    const quire_allocation old = one.handle(), kept = two.handle();
    one = std::move(two);
    CHECK(!two && !two.memory_handle() && one.handle().id == kept.id);
    CHECK(!is_live(handle, old) && is_live(handle, kept));
    quire::buffer *same = &one;
    one = std::move(*same);
    CHECK(one && is_live(handle, kept));

    moved = quire::memory(); /* `one` keeps what it owned */
    CHECK(!moved && one.place());
    (void)one.release();
    CHECK(!one);
}

static void test_release_and_adopt()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    quire::allocation made =
        quire::allocation::create(memory, quire::allocation_options(64)).value();
    const quire_allocation handle = made.release();
    CHECK(!made && is_live(memory.handle(), handle));
    {
        quire::allocation again = quire::allocation::adopt(memory.handle(), handle);
        CHECK(again.place()->requested == 64);
    }
    CHECK(!is_live(memory.handle(), handle));
    CHECK(!quire::allocation::adopt(memory.handle(), {}));
    CHECK(!quire::memory::adopt(nullptr) && !quire::device::adopt(nullptr));
    CHECK(memory.destroy() && !memory); /* nothing was left in it */
    CHECK(device.destroy() && !device);
}

/* The wrong order: quire refuses, and nothing is lost. */
static void test_destruction_order()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    const quire::status busy = device.destroy();
    CHECK(busy.code() == QUIRE_ERROR_BUSY && device && *busy.message());
    quire::buffer made = quire::buffer::create(memory, quire::buffer_options(100)).value();
    CHECK(memory.destroy().code() == QUIRE_ERROR_BUSY && memory);
    const quire_allocation mapped = made.handle();
    quire::mapping map = made.map().value();
    CHECK(made.free().code() == QUIRE_ERROR_BUSY && made);
    made = quire::buffer();
    CHECK(is_live(memory.handle(), mapped)); /* until the memory is destroyed */
    CHECK(map.unmap() && memory.destroy().code() == QUIRE_ERROR_BUSY);
    CHECK(quire_free(memory.handle(), mapped) == QUIRE_SUCCESS);
    CHECK(memory.destroy() && device.destroy());
}

/* ---- lives ------------------------------------------------------------------------------------ */

/* Counts the host memory of a device: none is left when the device is destroyed. */
static std::atomic<int> blocks{0};

static void *take(void *, size_t size, size_t alignment)
{
    blocks++;
    return ::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void give(void *, void *pointer, size_t, size_t)
{
    blocks--;
    std::free(pointer);
}

static quire::device counted_device()
{
    static const quire_host_memory counted = {take, give, nullptr};
    quire_host_options options = {};
    options.device.host_memory = &counted;
    return quire::device::open(quire_host_open, &options).value();
}

struct renderer {
    quire::device device;
    quire::memory memory;
    quire::stream stream;
    quire::buffer vertices;
};

struct upside_down {
    quire::mapping map;
    quire::buffer vertices;
    quire::stats_scope scope;
    quire::stream stream;
    quire::memory memory;
    quire::device device;
};

template <class World> static World make_world()
{
    World w;
    w.device = counted_device();
    w.memory = host_memory(w.device);
    w.stream = quire::stream::create(w.device).value();
    w.vertices = quire::buffer::create(w.memory, quire::buffer_options(64)).value();
    return w;
}

/* Members are assigned and destroyed in any order. */
static void test_lives()
{
    auto r = make_world<renderer>();
    CHECK(blocks > 0);
    r = renderer{}; /* the device first */
    CHECK(blocks == 0);
    {
        auto u = make_world<upside_down>();
        u.scope = quire::stats_scope::begin(u.memory).value();
        u.map = u.vertices.map().value();
    } /* the device first, the mapped buffer before its map */
    CHECK(blocks == 0);
    auto u = make_world<upside_down>();
    u.scope = quire::stats_scope::begin(u.memory).value();
    u.map = u.vertices.map().value();
    u = upside_down{}; /* the map first */
    CHECK(blocks == 0);
}

static void test_last_owners()
{
    auto r = make_world<renderer>();
    quire_memory *memory = r.memory.handle();
    quire::buffer kept = std::move(r.vertices);
    r = renderer{};
    CHECK(blocks > 0 && kept.memory_handle() == memory && kept.set_name("kept"));
    quire::mapping map = kept.map().value();
    kept = quire::buffer(); /* is mapped, and stays */
    static_cast<char *>(map.data())[63] = 1;
    CHECK(blocks > 0 && map.unmap() && blocks == 0);

    r = make_world<renderer>(); /* a memory that was given up is the caller's */
    memory = r.memory.release();
    r.vertices = quire::buffer();
    CHECK(quire_memory_check(memory) == QUIRE_SUCCESS);
    r.memory = quire::memory::adopt(memory);
    CHECK(r.memory.destroy());
    r = renderer{};
    CHECK(blocks == 0);

    r.device = counted_device(); /* of a default memory */
    kept = quire::buffer::create(r.device, {}, quire::buffer_options(64)).value();
    r = renderer{};
    CHECK(blocks > 0 && kept.place());
    kept = quire::buffer();
    CHECK(blocks == 0);
}

static void test_last_owners_of_threads()
{
    for (int round = 0; round < 200; round++) {
        auto r = make_world<renderer>();
        quire::buffer other = quire::buffer::create(r.memory, quire::buffer_options(64)).value();
        std::thread thread([mine = std::move(other)]() mutable { mine = quire::buffer(); });
        r = renderer{};
        thread.join();
        CHECK(blocks == 0);
    }
}

static void test_names_of_empty_owners()
{
    quire::memory memory;
    CHECK(std::strstr(memory.info().message(), "quire::memory is empty"));
    CHECK(std::strstr(quire::device().info().message(), "quire::device is empty"));
    CHECK(std::strstr(quire::memory::create(quire::device()).message(), "quire::device is empty"));
    CHECK(std::strstr(quire::buffer::create(memory, quire::buffer_options(1)).message(),
                      "quire::memory is empty"));
    CHECK(std::strstr(quire::buffer().map().message(), "a buffer or an image is empty"));
    CHECK(std::strstr(quire::stream().mark().message(), "quire::stream is empty"));
    CHECK(std::strstr(quire::stats_scope().end().message(), "quire::stats_scope is empty"));
    auto r = make_world<renderer>();
    CHECK(std::strstr(r.vertices.free_on(quire::stream()).message(), "quire::stream is empty"));
    CHECK(std::strstr(r.vertices.record_use(quire::stream()).message(), "quire::stream is empty"));
    CHECK(!std::strstr(r.vertices.map(64).message(), "empty"));
}

static void test_results()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    auto failed = quire::buffer::create(memory, quire::buffer_options(0));
    CHECK(!failed && failed.code() == QUIRE_ERROR_INVALID_ARGUMENT && failed.native_code() == 0);
    const std::string sentence = failed.message();
    CHECK(sentence == quire_last_error() && !sentence.empty());
    CHECK(!quire::buffer::create(memory, quire::buffer_options(UINT64_MAX)));
    CHECK(sentence == failed.message() && sentence != quire_last_error());
    auto made = quire::buffer::create(memory, quire::buffer_options(8));
    CHECK(made && made.code() == QUIRE_SUCCESS && made->info()->size == 8);
    CHECK(quire::status() && quire::status().code() == QUIRE_SUCCESS);
    CHECK(std::strcmp(std::move(failed).error().message(), sentence.c_str()) == 0);
    quire::buffer out = *std::move(made);
    CHECK(out);
}

#if defined(__cpp_exceptions)
static void test_value_of_failure()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    int caught = 0;
    try {
        (void)quire::buffer::create(memory, quire::buffer_options(0)).value();
    } catch (const std::runtime_error &e) {
        const auto *error = dynamic_cast<const quire::error *>(&e);
        CHECK(error && error->code() == QUIRE_ERROR_INVALID_ARGUMENT && !error->native_code());
        CHECK(std::strcmp(e.what(), quire_last_error()) == 0);
        caught++;
    }
    try {
        device.destroy().value();
    } catch (const quire::error &e) {
        CHECK(e.code() == QUIRE_ERROR_BUSY);
        caught++;
    }
    CHECK(caught == 2);
}
#else
static void test_value_of_failure()
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    std::fflush(stdout);
    const pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        (void)quire::memory::create(quire::device()).value();
        _exit(0);
    }
    close(ends[1]);
    char text[200] = "";
    const ssize_t size = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    int state = 0;
    CHECK(waitpid(child, &state, 0) == child && WIFSIGNALED(state) && WTERMSIG(state) == SIGABRT);
    CHECK(size > 7 && std::strncmp(text, "quire: ", 7) == 0);
}
#endif

static void test_options()
{
    quire::device device = open_host();
    quire::memory_options copy;
    {
        quire::memory_options options;
        options.with_name("upload").with_intent(QUIRE_INTENT_UPLOAD);
        copy = options;
    }
    const quire::memory_options again(copy);
    CHECK(again.kind.intent == QUIRE_INTENT_UPLOAD);
    quire::memory memory = quire::memory::create(device, again).value();
    CHECK(std::string(memory.info()->name) == "upload" && memory.info()->mappable);

    quire_memory_options plain = {}; /* the struct of C */
    plain.kind.required = QUIRE_HOST_VISIBLE;
    plain.limit = 1 << 20;
    CHECK(quire::memory::create(device, plain).value().info()->limit == 1 << 20);

    const quire::allocation_options existing =
        quire::allocation_options(100).with_existing_pages().with_within_budget();
    CHECK(existing.within_budget &&
          quire::allocation::create(memory, existing).code() == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    const quire::allocation_options texels =
        quire::allocation_options(100).with_offset_alignment(384);
    CHECK(quire::allocation::create(memory, texels).value().place().value().offset % 384 == 0);
    quire::allocation made = quire::allocation::create(memory, quire::allocation_options(100)
                                                                   .with_alignment(4096)
                                                                   .with_name("table")
                                                                   .with_user_data(7)
                                                                   .with_mapped()
                                                                   .with_zero())
                                 .value();
    const quire_allocation_info place = made.place().value();
    CHECK(reinterpret_cast<std::uintptr_t>(place.host) % 4096 == 0 && place.user_data == 7 &&
          place.requested == 100);
    CHECK(place.host && static_cast<const char *>(place.host)[99] == 0);
    CHECK(quire::allocation::create(memory, existing)); /* in the page of `made` */
    CHECK(made.set_name("other") && made.set_user_data(8) && made.place()->user_data == 8);
    CHECK(made.name().value() == "other");
    CHECK(!made.map(200) && std::strstr(quire_last_error(), "a range of 1 byte at offset 200"));
    CHECK(made.set_name(std::string(300, 'x').c_str()).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

static void test_lazy()
{
    const std::uint64_t chunk = 1 << 20;
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device, quire::memory_options()
                                                             .with_intent(QUIRE_INTENT_HOST_WRITE)
                                                             .with_elastic()
                                                             .with_address_space(64 * chunk)
                                                             .with_page_size(chunk)
                                                             .with_limit(8 * chunk))
                               .value();
    const quire::allocation_options whole = quire::allocation_options(4 * chunk).with_lazy();
    quire::allocation one = quire::allocation::create(memory, whole).value();
    quire::allocation two = quire::allocation::create(memory, whole).value();
    CHECK(one.write(0, "x", 1).code() == QUIRE_ERROR_WRONG_STATE);
    CHECK(one.back(chunk, 1) && one.place()->backed == chunk && one.write(chunk, "x", 1));
    CHECK(one.back(3 * chunk) && one.place()->backed == 2 * chunk);
    const quire_view both[] = {{one.handle(), 0, chunk}, {two.handle(), chunk, 0}};
    CHECK(memory.back_ranges(both, 2) && one.place()->backed == 3 * chunk);
    CHECK(two.place()->backed == 3 * chunk && memory.stats()->live_bytes == 6 * chunk);
    CHECK(memory.unback_ranges(both, 2) && memory.stats()->live_bytes == 2 * chunk);
    CHECK(one.unback(chunk, chunk) && one.place()->backed == chunk && one.unback());
    CHECK(one.place()->backed == 0);

    CHECK(two.set_name("two") && two.back(chunk, 2 * chunk) && two.write(chunk, "y", 1));
    CHECK(memory.sleep("none").value() == 0 && memory.sleep("tw").value() == 2 * chunk);
    CHECK(two.place()->asleep && two.write(chunk, "x", 1).code() == QUIRE_ERROR_WRONG_STATE);
    CHECK(memory.stats()->asleep_count == 1 && memory.wake().value() == 2 * chunk);
    char kept = 0;
    CHECK(two.read(chunk, &kept, 1) && kept == 'y');
    CHECK(memory.sleep(nullptr, QUIRE_SLEEP_DISCARD).value() == 2 * chunk && memory.wake());
    CHECK(two.unback());

    quire::stream stream = quire::stream::create(device).value();
    const quire_point point = stream.mark().value();
    CHECK(one.back() && one.unback_after(point, chunk, chunk) && quire::await(point));
    CHECK(memory.unback_ranges(both, 1, &point) && memory.collect());
    CHECK(one.place()->backed == 2 * chunk);

    CHECK(one.back(4 * chunk + 1).code() == QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(one.unback(0, 4 * chunk + 1).code() == QUIRE_ERROR_OUT_OF_RANGE);
    quire::memory plain = host_memory(device);
    CHECK(plain.back_ranges(both, 2).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(plain.unback_ranges(both, 2).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(quire::allocation::create(plain, whole).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

static void test_mappings()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device);
    quire::buffer made = quire::buffer::create(memory, quire::buffer_options(100)).value();
    quire::mapping map = made.map().value();
    CHECK(map && map.size() == 100 && made.place()->map_count == 1);
    const quire::mapped_span<std::uint32_t> numbers = map.as<std::uint32_t>();
    CHECK(numbers.size() == 25 && numbers.data() == map.data());
    std::uint32_t next = 0;
    for (std::uint32_t &number : numbers)
        number = next++;
    CHECK(made.flush());
    std::uint32_t back = 0;
    CHECK(made.read(4 * 24, &back, 4) && back == 24 && numbers[24] == 24);
    back = 77;
    CHECK(made.write(0, &back, 4) && made.invalidate() && numbers[0] == 77);

    quire::mapping part = made.map(96).value();
    CHECK(part.size() == 4 && part.as<std::uint32_t>()[0] == 24);
    quire::mapping moved(std::move(part));
    CHECK(!part && !part.data() && !part.size() && part.as<char>().size() == 0 && part.unmap());
    CHECK(made.place()->map_count == 2);
    map = std::move(moved); /* ends the first map */
    CHECK(made.place()->map_count == 1 && map.unmap() && !map && !made.place()->map_count);

    {
        quire::mapping brief = made.map().value();
        CHECK(brief && made.place()->map_count == 1);
    }
    CHECK(made.place()->map_count == 0);
    CHECK(made.map(100).code() == QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(made.map(UINT64_MAX).code() == QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(made.map(50, 1000).code() == QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(made.view(10, 20)->size == 20);
    CHECK(made.view(10, UINT64_MAX).code() == QUIRE_ERROR_OUT_OF_RANGE);
    quire::memory local = quire::memory::create(device).value();
    quire::buffer hidden = quire::buffer::create(local, quire::buffer_options(100)).value();
    CHECK(hidden.map().code() == QUIRE_ERROR_NOT_HOST_VISIBLE);
}

static void test_objects()
{
    quire::device device = open_host();
    CHECK(device.info()->kind_count == 4 && device.stats()->memory_count == 0);
    quire_kind_request choice = {};
    quire::buffer vertices =
        quire::buffer::create(device, choice, quire::buffer_options(64).with_host_write()).value();
    quire::allocation raw =
        quire::allocation::create(device, choice, quire::allocation_options(64)).value();
    quire::image chosen = quire::image::create(device, choice, quire::image_options(4, 4)).value();
    CHECK(vertices.memory_handle() && vertices.info()->size == 64 && raw && chosen);

    quire::memory memory = quire::memory::create(device).value();
    quire::image picture = quire::image::create(memory, quire::image_options(640, 480)
                                                            .with_channels(4, QUIRE_UINT8)
                                                            .with_usage(QUIRE_USAGE_SAMPLED))
                               .value();
    const quire_image_info info = picture.info().value();
    CHECK(info.width == 640 && info.dimensions == 2 && info.minimum_size == 640 * 480 * 4);
    CHECK(quire::image::create(memory, quire::image_options()).code() ==
          QUIRE_ERROR_INVALID_ARGUMENT);
    quire::buffer wrong = quire::buffer::adopt(memory.handle(), {picture.handle()});
    CHECK(!wrong.info()); /* an image is no buffer */
    (void)wrong.release();

    CHECK(device.budget(0)->size > 0 && device.budget(99).code() == QUIRE_ERROR_OUT_OF_RANGE);
    quire_kind_request readback = {};
    readback.intent = QUIRE_INTENT_HOST_READ;
    CHECK(device.choose_kind(readback));
    quire_kind_request impossible = {};
    impossible.required = QUIRE_PROTECTED;
    CHECK(device.choose_kind(impossible).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(memory.set_limit(1) && device.set_heap_limit(0, 1 << 20) && device.set_page_limit(9));
    CHECK(device.set_default_options({}).code() == QUIRE_ERROR_WRONG_STATE && device.trim());
    CHECK(quire::buffer::create(memory, quire::buffer_options(64 << 20)).code() ==
          QUIRE_ERROR_OVER_BUDGET);
    CHECK(memory.set_limit(0) && memory.check() && memory.trim());
    CHECK(memory.preallocate(UINT64_MAX).code() == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
}

static void test_streams()
{
    quire::device device = open_host();
    quire::stream stream = quire::stream::create(device).value();
    quire::memory memory = quire::memory::create(device).value();
    quire::buffer made =
        quire::buffer::create(memory, quire::buffer_options(100).with_stream(stream)).value();
    const quire_allocation first = made.handle();
    CHECK(made.record_use(stream));
    CHECK(made.free_on(stream) && !made && !is_live(memory.handle(), first));
    const quire_point point = stream.mark().value();
    CHECK(quire::await(point) && *quire::has_passed(point) && stream.wait(point));
    made = quire::buffer::create(memory, quire::buffer_options(100)).value();
    CHECK(made.free_after(point) && !made);
    CHECK(memory.collect() && stream.info()->device == device.handle());
    CHECK(stream.announce(5).code() == QUIRE_ERROR_UNSUPPORTED);
    CHECK(device.destroy().code() == QUIRE_ERROR_BUSY);

    quire_point never = point;
    never.value += 100;
    made = quire::buffer::create(memory, quire::buffer_options(100)).value();
    CHECK(made.free_after(never).code() == QUIRE_ERROR_INVALID_ARGUMENT && made);
    CHECK(made.free_on(quire::stream()).code() == QUIRE_ERROR_INVALID_ARGUMENT && made);
    CHECK(made.free() && stream.destroy() && !stream);
}

static void test_stats_scopes()
{
    quire::device device = open_host();
    quire::memory memory = quire::memory::create(device).value();
    quire::stats_scope outer = quire::stats_scope::begin(memory).value();
    for (int i = 0; i < 2; i++) {
        quire::stats_scope inner = quire::stats_scope::begin(memory).value();
        CHECK(quire::buffer::create(memory, quire::buffer_options(100)));
    } /* drops its statistics */
    quire::stats_scope moved(std::move(outer));
    CHECK(!outer && outer.end().code() == QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(moved.end()->allocations == 2 && !moved);
    quire_memory_stats stats;
    CHECK(quire_memory_pop_stats(memory.handle(), &stats) == QUIRE_ERROR_WRONG_STATE);
    CHECK(!quire::stats_scope::begin(quire::memory()) && memory.stats()->allocations == 2);
}

static void test_find()
{
    quire::device device = open_host();
    quire::memory memory =
        quire::memory::create(
            device, quire::memory_options().with_find_by_address().with_flags(QUIRE_HOST_VISIBLE))
            .value();
    quire::allocation made =
        quire::allocation::create(memory, quire::allocation_options(64).with_mapped()).value();
    char *host = static_cast<char *>(made.place()->host);
    CHECK(memory.find(host)->id == made.handle().id);
    CHECK(memory.find(host + 63)->id == made.handle().id);
    CHECK(memory.find(std::uint64_t(1)).code() == QUIRE_ERROR_OUT_OF_RANGE);
    quire::memory without = quire::memory::create(device).value();
    CHECK(without.find(host).code() == QUIRE_ERROR_UNSUPPORTED);
}

/* ---- a device as a whole ---------------------------------------------------------------------- */

static quire::memory named_memory(const quire::device &device, const char *name)
{
    return quire::memory::create(device, quire::memory_options().with_name(name)).value();
}

static void test_walks()
{
    quire::device device = open_host();
    std::vector<quire_memory *> seen;
    const auto note = [&seen](quire_memory *memory) { seen.push_back(memory); };
    CHECK(device.walk(note) && seen.empty());
    quire::memory one = named_memory(device, "one"), two = named_memory(device, "two");
    quire::buffer third = quire::buffer::create(device, {}, quire::buffer_options(64)).value();
    const std::vector<quire_memory *> all = {one.handle(), two.handle(), third.memory_handle()};
    CHECK(device.walk(note) && seen == all);

    seen.clear(); /* a visitor that goes on, with a state of its own */
    CHECK(device.walk([&seen, left = 3](quire_memory *memory) mutable {
        seen.push_back(memory);
        return --left > 0;
    }));
    CHECK(seen == all);
    seen.clear(); /* one that ends the walk */
    const auto until_two = [&](quire_memory *memory) {
        seen.push_back(memory);
        return memory != two.handle();
    };
    CHECK(device.walk(until_two) && seen.size() == 2 && seen.back() == two.handle());

    CHECK(device.walk([&](quire_memory *memory) {
        if (memory == one.handle())
            CHECK(one.destroy());
    }));
    CHECK(!one && device.stats()->memory_count == 2);
    seen.clear();
    const quire::status refused = quire::device().walk(note);
    CHECK(refused.code() == QUIRE_ERROR_INVALID_ARGUMENT && seen.empty());
    CHECK(std::strstr(refused.message(), "quire::device is empty"));
}

static bool append(void *text, const char *piece, size_t size)
{
    static_cast<std::string *>(text)->append(piece, size);
    return true;
}

template <class Handle>
static std::string written(quire_result (*write)(const Handle *, quire_sink, void *),
                           const Handle *handle)
{
    std::string text;
    CHECK(write(handle, append, &text) == QUIRE_SUCCESS);
    return text;
}

/* The JSON of a device counts the calls that its own writing makes. */
static std::string without_digits(const std::string &text)
{
    std::string rest;
    for (const char c : text)
        if (c < '0' || c > '9')
            rest += c;
    return rest;
}

/* The texts are those of the functions of C, all of them and nothing else. */
static void test_texts()
{
    quire::device device = open_host();
    quire::memory one = named_memory(device, "one"), two = named_memory(device, "two");
    quire::buffer made =
        quire::buffer::create(one, quire::buffer_options(64).with_name("vertices")).value();
    const std::string report = device.report().value(), json = device.json().value(),
                      svg = device.svg().value();
    CHECK(report == written(quire_device_write_report, device.handle()));
    CHECK(without_digits(json) ==
          without_digits(written(quire_device_write_json, device.handle())));
    CHECK(svg == written(quire_device_write_svg, device.handle()));
    CHECK(json.find("\"one\"") != json.npos && json.find("\"two\"") != json.npos);
    CHECK(report.find("vertices") != report.npos && svg.find("</svg>") != svg.npos);

    CHECK(one.report().value() == written(quire_memory_write_report, one.handle()));
    CHECK(one.json().value() == written(quire_memory_write_json, one.handle()));
    CHECK(without_digits(one.report_json().value()) ==
          without_digits(written(quire_memory_write_report_json, one.handle())));
    CHECK(without_digits(device.report_json().value()) ==
          without_digits(written(quire_device_write_report_json, device.handle())));
    CHECK(one.report_json()->find("\"report\"") != json.npos);
    CHECK(one.svg().value() == written(quire_memory_write_svg, one.handle()));
    CHECK(one.json().value() != two.json().value());
    CHECK(one.json()->find("vertices") != json.npos && two.json()->find("vertices") == json.npos);
}

static void test_handles_alone()
{
    quire::device device = open_host(), other = open_host();
    quire::memory one = named_memory(device, "one"), two = named_memory(device, "two");
    quire::buffer made = quire::buffer::create(two, quire::buffer_options(64)).value();
    CHECK(device.memory_of(made.handle()).value() == two.handle());
    CHECK(other.memory_of(made.handle()).code() == QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK(other.free(made.handle()).code() == QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK(is_live(two.handle(), made.handle()));
    const quire_allocation handle = made.release();
    CHECK(device.free(handle) && !is_live(two.handle(), handle));
    CHECK(device.free(handle).code() == QUIRE_ERROR_STALE_HANDLE);
    CHECK(device.memory_of(handle).code() == QUIRE_ERROR_STALE_HANDLE);
    CHECK(device.memory_of({}).code() == QUIRE_ERROR_INVALID_ARGUMENT);
}

#if defined(__cpp_exceptions)
/* The exception itself arrives, and the walk has ended: no visit of the memory is left that its
   destruction would wait for. */
static void test_throwing_visitors()
{
    quire::device device = open_host();
    quire::memory one = named_memory(device, "one"), two = named_memory(device, "two");
    int visits = 0, caught = 0;
    try {
        (void)device.walk([&](quire_memory *) {
            visits++;
            throw std::string("stop");
        });
    } catch (const std::string &thrown) {
        CHECK(thrown == "stop");
        caught++;
    }
    CHECK(visits == 1 && caught == 1);
    try { /* a visitor that has a result throws from a walk inside a walk */
        (void)device.walk([&](quire_memory *outer) {
            CHECK(device.walk([&](quire_memory *memory) { return memory != outer; }));
            return device.walk([&](quire_memory *) -> bool { throw visits; }) || true;
        });
    } catch (int thrown) {
        CHECK(thrown == visits);
        caught++;
    }
    CHECK(caught == 2 && device.walk([&](quire_memory *) { visits++; }) && visits == 3);
    CHECK(one.destroy() && two.destroy() && device.destroy());
}
#endif

static void test_empty_owners()
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    quire::device device;
    CHECK(device.info().code() == invalid && device.stats().code() == invalid);
    CHECK(device.budget(0).code() == invalid && device.set_page_limit(1).code() == invalid);
    CHECK(device.trim().code() == invalid && device.set_default_options({}).code() == invalid);
    CHECK(device.report().code() == invalid && device.json().code() == invalid);
    CHECK(device.report_json().code() == invalid);
    CHECK(device.svg().code() == invalid && device.memory_of({}).code() == invalid);
    CHECK(device.free({}).code() == invalid);
    CHECK(quire::memory::create(device).code() == invalid && device.destroy());
    CHECK(quire::stream::create(device).code() == invalid);
    quire::memory memory;
    CHECK(memory.info().code() == invalid && memory.stats().code() == invalid && memory.destroy());
    CHECK(memory.trim().code() == invalid && memory.collect().code() == invalid);
    CHECK(memory.report().code() == invalid && memory.json().code() == invalid);
    CHECK(memory.svg().code() == invalid && memory.back_ranges(nullptr, 0).code() == invalid);
    CHECK(memory.unback_ranges(nullptr, 0).code() == invalid);
    CHECK(memory.check().code() == invalid && memory.find(&memory).code() == invalid);
    CHECK(quire::buffer::create(memory, quire::buffer_options(1)).code() == invalid);
    quire::stream stream;
    CHECK(stream.mark().code() == invalid && stream.info().code() == invalid && stream.destroy());
    quire::allocation none;
    char byte = 0;
    CHECK(none.place().code() == invalid && none.map().code() == invalid);
    CHECK(none.back().code() == invalid && none.unback().code() == invalid);
    CHECK(none.unback_after({}).code() == invalid);
    CHECK(none.write(0, &byte, 1).code() == invalid && none.free().code() == invalid);
    CHECK(none.free_on(stream).code() == invalid && none.view().code() == invalid);
    CHECK(quire::image().info().code() == invalid && quire::buffer().info().code() == invalid);
    CHECK(quire::device::open(quire_host_open, static_cast<quire_host_options *>(nullptr)));
}

static void test_wrong_handles()
{
    quire::device device = open_host();
    quire::memory memory = host_memory(device), other = host_memory(device);
    quire::allocation made =
        quire::allocation::create(memory, quire::allocation_options(64)).value();
    quire::allocation foreign = quire::allocation::adopt(other.handle(), made.handle());
    CHECK(foreign.map().code() == QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK(foreign.free().code() == QUIRE_ERROR_FOREIGN_HANDLE && foreign);
    (void)foreign.release();
    quire::allocation twice = quire::allocation::adopt(memory.handle(), made.handle());
    CHECK(twice.free() && !twice && made.place().code() == QUIRE_ERROR_STALE_HANDLE);
    CHECK(made.free().code() == QUIRE_ERROR_STALE_HANDLE && made.release().id);

    quire_allocation_options options = quire::allocation_options(64);
    quire_allocation reserved;
    CHECK(quire_reserve(memory.handle(), &options, &reserved) == QUIRE_SUCCESS);
    made = quire::allocation::adopt(memory.handle(), reserved);
    CHECK(made.map().code() == QUIRE_ERROR_WRONG_STATE);
    CHECK(quire_commit(memory.handle(), reserved) == QUIRE_SUCCESS && made.map());
    CHECK(
        quire::allocation::create(memory, quire::allocation_options(64).with_alignment(3)).code() ==
        QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(!quire::allocation::create(memory, quire::allocation_options(UINT64_MAX)));
}

int main()
{
    run_case("owners move, also to themselves", test_moves);
    run_case("handles are released and adopted", test_release_and_adopt);
    run_case("objects in the wrong order are refused and not lost", test_destruction_order);
    run_case("members in any order are destroyed in the right one", test_lives);
    run_case("the last owner destroys a memory and its device", test_last_owners);
    run_case("threads drop the last owners", test_last_owners_of_threads);
    run_case("errors name the empty owner", test_names_of_empty_owners);
    run_case("results keep their code and sentence", test_results);
    run_case("value() of a failure throws or aborts", test_value_of_failure);
    run_case("options have setters", test_options);
    run_case("lazy allocations get and lose memory", test_lazy);
    run_case("mappings map and unmap", test_mappings);
    run_case("buffers, images and devices", test_objects);
    run_case("streams and points", test_streams);
    run_case("stats scopes", test_stats_scopes);
    run_case("allocations are found by address", test_find);
    run_case("a walk visits the memories of a device", test_walks);
    run_case("reports, JSON and pictures of devices and memories", test_texts);
    run_case("a device finds and frees by the handle alone", test_handles_alone);
#if defined(__cpp_exceptions)
    run_case("what a visitor throws ends the walk", test_throwing_visitors);
#endif
    run_case("empty owners are refused", test_empty_owners);
    run_case("foreign, stale and reserved handles are refused", test_wrong_handles);
    std::printf("1..%d\n", cases);
}
