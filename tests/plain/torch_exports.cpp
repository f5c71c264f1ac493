/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_exports.cpp - the functions that libquire_torch.so exports, called with the C++ types of
 * torch's interface, on the fake driver: what they throw and return, and the filters of pools.
 *
 *     torch_exports DRIVER
 */
#include <dlfcn.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

using stream_type = void *;
using pool_type = std::pair<unsigned long long, unsigned long long>;
using filter_type = std::function<bool(stream_type)>;

extern "C" {
void *quire_torch_alloc(ssize_t size, int device, stream_type stream);
void quire_torch_free(void *pointer, ssize_t size, int device, stream_type stream);
void *quire_torch_pool_alloc(ssize_t size, int device, stream_type stream);
void quire_torch_pool_free(void *pointer, ssize_t size, int device, stream_type stream);
void quire_torch_init(int device_count);
void quire_torch_reset();
void quire_torch_memory_fraction(double fraction, int device);
void *quire_torch_base_alloc(void *pointer, size_t *size);
void quire_torch_record_stream(void *pointer, stream_type stream);
void quire_torch_begin_allocate_to_pool(int device, pool_type pool, filter_type filter);
void quire_torch_end_allocate_to_pool(int device, pool_type pool);
void quire_torch_release_pool(int device, pool_type pool);
}

static int cases;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::printf("not ok %d - %s\n# line %d: %s\n1..%d\n", cases + 1, __func__, __LINE__,   \
                        #what, cases + 1);                                                         \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

/* The sentence of the exception of this type that a call throws; "" if it throws none. */
template <class exception> static std::string thrown(const std::function<void()> &call)
{
    try {
        call();
    } catch (const exception &e) {
        return e.what();
    } catch (...) {
    }
    return "";
}

static bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

static void exhausted_memory()
{
    const ssize_t huge = ssize_t(1) << 45;
    std::string text = thrown<std::runtime_error>([=] { quire_torch_alloc(huge, 0, nullptr); });
    CHECK(text.find("CUDA out of memory. ") == 0);
    CHECK(has(text, "quire_torch_alloc"));
    CHECK(!quire_torch_pool_alloc(huge, 0, nullptr));
    for (int bits = 40; bits < 63; bits++) {
        const ssize_t size = ssize_t(1) << bits;
        text = thrown<std::runtime_error>([=] { quire_torch_alloc(size, 0, nullptr); });
        CHECK(text.find("CUDA out of memory. ") == 0);
    }
    const ssize_t all = std::numeric_limits<ssize_t>::max();
    text = thrown<std::runtime_error>([=] { quire_torch_alloc(all, 0, nullptr); });
    CHECK(text.find("CUDA out of memory. ") == 0);
}

static void memory_comes_and_goes()
{
    size_t size = 0;
    quire_torch_init(1);
    void *a = quire_torch_alloc(1000, 0, nullptr), *b = quire_torch_pool_alloc(1000, 0, nullptr);
    CHECK(a && b && a != b);
    CHECK(quire_torch_base_alloc(a, &size) <= a && size >= 1000);
    quire_torch_record_stream(a, reinterpret_cast<stream_type>(2));
    quire_torch_free(a, 1000, 0, nullptr);
    quire_torch_pool_free(b, 1000, 0, nullptr);
    quire_torch_free(nullptr, 0, 0, nullptr);
    CHECK(!quire_torch_alloc(0, 0, nullptr));
    quire_torch_reset();
}

static void bad_arguments()
{
    int stray = 0;
    using invalid = std::invalid_argument;
    CHECK(has(thrown<invalid>([] { quire_torch_alloc(-1, 0, nullptr); }), "-1 bytes"));
    CHECK(has(thrown<invalid>([] { quire_torch_init(1000); }), "1000 devices"));
    CHECK(has(thrown<invalid>([] { quire_torch_memory_fraction(2, 0); }), "fraction of 2"));
    CHECK(has(thrown<invalid>([] { quire_torch_end_allocate_to_pool(0, {5, 6}); }), "(5, 6)"));
    CHECK(!quire_torch_pool_alloc(-1, 0, nullptr));
    /* a line in stderr, and no exception: torch calls them from destructors */
    quire_torch_free(&stray, 4, 0, nullptr);
    quire_torch_release_pool(0, {5, 6});
}

static void filters()
{
    int lives = 0, asked = 0;
    struct life {
        int *lives;
        explicit life(int *counter) : lives(counter)
        {
            ++*lives;
        }
        life(const life &other) : lives(other.lives)
        {
            ++*lives;
        }
        ~life()
        {
            --*lives;
        }
    };
    const stream_type selected = nullptr;
    {
        life one(&lives);
        filter_type filter = [one, &asked, selected](stream_type stream) {
            asked++;
            if (stream != selected)
                throw std::runtime_error("a stream that cannot be asked");
            return true;
        };
        quire_torch_begin_allocate_to_pool(0, {1, 0}, filter);
    }
    CHECK(lives == 1);
    void *inside = quire_torch_alloc(1000, 0, selected);
    void *outside = quire_torch_alloc(1000, 0, reinterpret_cast<stream_type>(2));
    CHECK(asked == 2);
    size_t size = 0;
    void *base = quire_torch_base_alloc(inside, &size);
    CHECK(base != quire_torch_base_alloc(outside, &size));
    quire_torch_end_allocate_to_pool(0, {1, 0});
    CHECK(lives == 0);
    quire_torch_begin_allocate_to_pool(0, {1, 0}, nullptr);
    void *other = quire_torch_alloc(1000, 0, reinterpret_cast<stream_type>(2));
    CHECK(quire_torch_base_alloc(other, &size) == base);
    quire_torch_end_allocate_to_pool(0, {1, 0});
    quire_torch_free(inside, 1000, 0, selected);
    quire_torch_free(outside, 1000, 0, reinterpret_cast<stream_type>(2));
    quire_torch_free(other, 1000, 0, reinterpret_cast<stream_type>(2));
    quire_torch_release_pool(0, {1, 0});
    quire_torch_release_pool(0, {1, 0});
    quire_torch_reset();
}

static void run(const char *name, void (*body)())
{
    body();
    std::printf("ok %d - %s\n", ++cases, name);
    std::fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 2 || !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
        std::printf("Bail out! %s\n", argc == 2 ? dlerror() : "usage: torch_exports DRIVER");
        return 1;
    }
    run("memory comes and goes", memory_comes_and_goes);
    run("exhausted memory is an exception, or NULL in a pool", exhausted_memory);
    run("bad arguments are exceptions, but not in frees", bad_arguments);
    run("filters select, may throw, and end with their pool", filters);
    std::printf("1..%d\n", cases);
    return 0;
}
