/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * paddle_runtime.c - the adapter that offers quire as the memory of a CustomDevice runtime, between
 * a host program that behaves like PaddlePaddle, and the test plugin, which checks its calls.
 *
 *     paddle_runtime [--steps N] [--seed N]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/paddle_host.h"
#include "tests/support/plain.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static uint64_t steps;
static uint64_t seed;

/* ---- versions ------------------------------------------------------------------------------- */

static void versions(void)
{
    host_program h = {.tp = plugin_bench_control()};
    h.tp->reset(&(tp_options){.params_size = 88, .interface_size = 904});
    CHECK(host_load(&h, 88, 904));
    CHECK(!host_load(&h, 96, 1032));
    h.tp->reset(&(tp_options){.params_size = 96, .interface_size = 1032});
    CHECK(host_load(&h, 96, 1032));
    CHECK(!host_load(&h, 88, 904));
    h.tp->reset(NULL);
    unsetenv("QUIRE_PADDLE_PLUGIN");
    CHECK(!host_load(&h, 88, 904));
    setenv("QUIRE_PADDLE_PLUGIN", "/nonexistent/plugin.so", 1);
    CHECK(!host_load(&h, 88, 904));
    setenv("QUIRE_PADDLE_PLUGIN", PADDLE_RUNTIME, 1); /* the runtime itself */
    CHECK(!host_load(&h, 88, 904));
    setenv("QUIRE_PADDLE_PLUGIN", TEST_PLUGIN, 1);
}

static void what_the_plugin_has_not_the_adapter_has_not(void)
{
    static const uint32_t OFFSETS[] = {240, 256, 416, 272, 296, 56, 232};
    host_program h;
    uint64_t absent = 0;
    for (size_t i = 0; i < sizeof OFFSETS / sizeof *OFFSETS; i++)
        absent |= TP_BIT(OFFSETS[i]);
    host_begin(&h, &(tp_options){.absent = absent});
    for (size_t i = 0; i < sizeof OFFSETS / sizeof *OFFSETS; i++)
        CHECK(!HOST_CALL(&h, plain_function, OFFSETS[i]));
    void *block = host_take(&h, 0, 4096);
    CHECK(block);
    host_give(&h, 0, block, 4096);
    host_end(&h);
}

/* The runtime reports the error of a plugin that fails to start. */
static void a_plugin_that_fails(void)
{
    host_program h = {.tp = plugin_bench_control()};
    h.tp->reset(NULL);
    CHECK(host_load(&h, 88, 904));
    h.tp->fail(&(tp_fault){.offset = 8, .call = 1, .status = TP_INTERNAL_ERROR});
    CHECK_EQ(HOST_CALL(&h, plain_function, 8)(), TP_INTERNAL_ERROR);
    h.tp->fail(NULL);
    host_device wrong = {.id = 99};
    CHECK_EQ(HOST_CALL(&h, plain_function, 8)(), 0);
    CHECK_EQ(HOST_CALL(&h, of_device, 24)(&wrong), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, of_device, 48)(&wrong), TP_ERROR);
    void *pointer = &wrong;
    CHECK_EQ(HOST_CALL(&h, taking, 216)(&wrong, &pointer, 100), TP_ERROR);
    CHECK(!pointer);
    CHECK_EQ(HOST_CALL(&h, plain_function, 16)(), 0);
    CHECK(!h.tp->message());
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void blocks_lie_in_pages(void)
{
    host_program h;
    void *made[100];
    size_t total = 0;
    host_begin(&h, &(tp_options){.bytes = 256 * MIB, .base_offset = 16, .sizes = {512}});
    size_t before = host_free_bytes(&h, 0, &total);
    CHECK_EQ(total, 256 * MIB);
    CHECK_EQ(before, 256 * MIB);
    for (int i = 0; i < 100; i++) {
        made[i] = host_take(&h, 0, 10240);
        CHECK(made[i]);
        CHECK_EQ((uintptr_t)made[i] % 512, 0); /* outside the plugin's own range */
    }
    CHECK(h.tp->blocks() < 3);
    CHECK_EQ(before - host_free_bytes(&h, 0, &total), 100 * 10240);
    for (int i = 0; i < 100; i++)
        host_give(&h, 0, made[i], 10240);
    CHECK_EQ(host_free_bytes(&h, 0, &total), before);
    CHECK(h.tp->calls(120) >= 100); /* the device had finished its work */
    host_end(&h);
}

/* With another size, as another kind, twice, or never allocated: rejected, and the block stays. */
static void what_is_given_back_must_have_been_taken(void)
{
    host_program h;
    host_begin(&h, &(tp_options){.device_count = 2});
    host_device *d = &h.devices[0];
    void *block = host_take(&h, 0, 1024), *host = NULL;
    CHECK_EQ(HOST_CALL(&h, giving, 224)(d, block, 1023), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, giving, 224)(d, block, 2048), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, giving, 248)(d, block, 1024), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, giving, 224)(&h.devices[1], block, 1024), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, giving, 224)(d, (char *)block + 256, 768), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, giving, 224)(d, NULL, 1024), TP_ERROR);
    host_give(&h, 0, block, 1024);
    CHECK_EQ(HOST_CALL(&h, giving, 224)(d, block, 1024), TP_ERROR);
    CHECK_EQ(HOST_CALL(&h, taking, 240)(d, &host, 1000), 0);
    memset(host, 1, 1000);
    CHECK_EQ(HOST_CALL(&h, giving, 248)(d, host, 1000), 0);
    CHECK_EQ(HOST_CALL(&h, taking, 256)(d, &host, 1000), 0);
    memset(host, 1, 1000);
    CHECK_EQ(HOST_CALL(&h, giving, 264)(d, host, 1000), 0);
    host_end(&h);
}

/* Success without a pointer, so that the host program releases its idle chunks and retries. */
static void out_of_memory(void)
{
    host_program h;
    host_begin(&h, &(tp_options){.bytes = 8 * MIB});
    void *first = host_take(&h, 0, 3 * MIB), *second = host_take(&h, 0, 3 * MIB);
    CHECK(first && second);
    CHECK(!host_take(&h, 0, 3 * MIB));
    CHECK(!host_take(&h, 0, 1000 * MIB));
    host_give(&h, 0, first, 3 * MIB);
    host_give(&h, 0, second, 3 * MIB);
    first = host_take(&h, 0, 6 * MIB); /* the pages that were kept do not block it */
    CHECK(first);
    host_give(&h, 0, first, 6 * MIB);
    host_end(&h);
}

/* A host program that ends without releasing anything. */
static void what_is_left_goes_with_the_end(void)
{
    host_program h;
    host_begin(&h, &(tp_options){.device_count = 2});
    for (int i = 0; i < 10; i++)
        CHECK(host_take(&h, i % 2, 5 * MIB));
    h.devices[0].id = h.devices[1].id = 0; /* nor deinitialised */
    host_end(&h);
}

/* Every step, as far as possible. */
static void use(host_program *h)
{
    size_t count = 0, list[4] = {0}, total = 0, left = 0;
    host_device d;
    void *block = NULL;
    if (HOST_CALL(h, plain_function, 8)())
        return;
    bool listed = !HOST_CALL(h, of_list, 400)(&count) && !HOST_CALL(h, of_list, 408)(list);
    d.id = (int32_t)list[0];
    if (listed && !HOST_CALL(h, of_device, 24)(&d)) {
        int32_t failed = HOST_CALL(h, of_device, 32)(&d);
        failed |= HOST_CALL(h, two_sizes, 416)(&d, &total, &left);
        failed |= HOST_CALL(h, taking, 216)(&d, &block, 100000);
        CHECK(!failed || total <= 1024 * MIB);
        if (block) /* released in any case, because nobody retries */
            failed |= HOST_CALL(h, giving, 224)(&d, block, 100000);
        CHECK_EQ(HOST_CALL(h, of_device, 48)(&d), 0);
    }
    CHECK_EQ(HOST_CALL(h, plain_function, 16)(), 0);
}

static void every_call_of_the_plugin_fails(void)
{
    static const int32_t STATUSES[] = {TP_WARNING, TP_FAILED, TP_ERROR, TP_INTERNAL_ERROR};
    uint64_t failures = 0;
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++) {
        bool hit = true;
        for (uint64_t call = 1; hit; call++) {
            host_program h = {.tp = plugin_bench_control()};
            h.tp->reset(&(tp_options){.sizes = {512}});
            CHECK(host_load(&h, 88, 904));
            h.tp->fail(&(tp_fault){.call = call, .status = STATUSES[i]});
            use(&h);
            hit = h.tp->has_failed();
            failures += hit;
            if (h.tp->message())
                check_failed(__FILE__, __LINE__, "%s", h.tp->message());
            CHECK_EQ(h.tp->blocks(), 0);
        }
    }
    printf("# %" PRIu64 " calls failed\n", failures);
}

static void sizes(void)
{
    host_program h;
    size_t size = 7;
    host_begin(&h, &(tp_options){.sizes = {512, 100, 200, 32, 300, 400}});
    host_device *d = &h.devices[0];
    host_set(&h, 0);
    static const size_t EXPECTED[] = {512, 0, 200, 32, 300, 400};
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(HOST_CALL(&h, one_size, 424 + 8 * i)(d, &size), 0);
        CHECK_EQ(size, EXPECTED[i]);
    }
    host_end(&h);
    host_begin(&h, &(tp_options){.absent = TP_BIT(424)});
    host_set(&h, 0);
    CHECK_EQ(HOST_CALL(&h, one_size, 424)(&h.devices[0], &size), 0);
    CHECK_EQ(size, 256);
    host_end(&h);
}

/* ---- auto_growth ---------------------------------------------------------------------------- */

static void auto_growth(void)
{
    host_program h;
    size_t total = 0;
    host_begin(&h,
               &(tp_options){.bytes = 8 * MIB, .base_offset = 16, .sizes = {512}, .renumber = 9});
    host_play(&h, 0, steps, seed);
    CHECK_EQ(host_free_bytes(&h, 0, &total), 8 * MIB);
    printf("# %llu allocations of the plugin for the whole run\n",
           (unsigned long long)h.tp->calls(216));
    host_end(&h);
}

typedef struct player {
    host_program *h;
    int device;
} player;

static void *play_in_thread(void *user)
{
    const player *p = user;
    host_play(p->h, p->device, steps / 4, seed + (uint64_t)p->device);
    return NULL;
}

static void threads_on_two_devices(void)
{
    host_program h;
    pthread_t threads[4];
    player players[4];
    host_begin(&h, &(tp_options){.bytes = 256 * MIB, .device_count = 2, .sizes = {512}});
    for (int i = 0; i < 4; i++) {
        players[i] = (player){&h, i % 2};
        CHECK_EQ(pthread_create(&threads[i], NULL, play_in_thread, &players[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    host_end(&h);
}

/* ---- stacked -------------------------------------------------------------------------------- */

/* quire's own plugin backend acts as the host program; the contract tests do so in depth. */
static void quire_on_quire(void)
{
    plugin_bench b;
    quire_plugin_info info;
    quire_allocation a, c;
    char in[100] = "through two of them", out[100];
    const quire_plugin_options options = {.path = PADDLE_RUNTIME, .alignment = 256};
    plugin_bench_begin(&b, &(tp_options){.device_count = 2, .sizes = {512, 4096}, .renumber = 2});
    CHECK(plugin_bench_open(&b, 0, &options) && plugin_bench_open(&b, 1, &options));
    CHECK_OK(quire_plugin_get_info(b.devices[1], &info));
    CHECK_EQ(info.id, 6);
    CHECK_EQ(info.sizes.max_chunk, 0);
    for (uint32_t i = 0; i < 2; i++) {
        quire_memory *m = plugin_bench_memory(
            &b, i, 0, &(quire_memory_options){.pages = {.page_size = 64 * KIB}});
        CHECK_OK(quire_allocate(m, &(quire_allocation_options){.size = 100}, &a));
        CHECK_OK(quire_allocate(m, &(quire_allocation_options){.size = MIB}, &c));
        CHECK_OK(quire_write(m, a, 0, in, sizeof in));
        CHECK_OK(quire_read(m, a, 0, out, sizeof out));
        CHECK(!memcmp(in, out, sizeof in));
        CHECK(b.tp->bytes(i) > 2 * MIB &&
              b.tp->bytes(i) < 3 * MIB); /* the pages of the adapter follow use */
    }
    plugin_bench_end(&b);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 4000);
    seed = plain_option(argc, argv, "seed", 1);
    setenv("QUIRE_PADDLE_PLUGIN", TEST_PLUGIN, 1);
    printf("# seed %" PRIu64 "\n", seed);
    plain_case("versions of the interface", versions);
    plain_case("the adapter has only the functions of the plugin",
               what_the_plugin_has_not_the_adapter_has_not);
    plain_case("a plugin that fails", a_plugin_that_fails);
    plain_case("blocks lie in pages", blocks_lie_in_pages);
    plain_case("only allocated blocks can be freed", what_is_given_back_must_have_been_taken);
    plain_case("out of memory", out_of_memory);
    plain_case("the end releases live blocks", what_is_left_goes_with_the_end);
    plain_case("every call of the plugin fails", every_call_of_the_plugin_fails);
    plain_case("sizes", sizes);
    plain_case("auto_growth", auto_growth);
    plain_case("threads on two devices", threads_on_two_devices);
    plain_case("quire on quire", quire_on_quire);
    return plain_end();
}
