/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan.c - the contract's subjects for the Vulkan backend: the first driver that the loader
 * finds, under the layers that the environment enables, whose warnings fail the scenario; and the
 * fake driver in several poses.
 */
#include "quire/vulkan.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/contract/contract.h"
#include "tests/support/valgrind.h"
#include "tests/support/vulkan/fake_vulkan.h"

#define MAX_HEAP (UINT64_C(256) << 20)

/* The messages of layers and driver. */
typedef struct messages {
    pthread_mutex_t lock;
    uint64_t count;
    char first[1024];
} messages;

/* Lines of the library itself, about leaks that a test causes on purpose, begin differently. */
static const char FROM_VULKAN[] = "vulkan: ";

static void collect_message(void *user, quire_log_level level, const char *line)
{
    messages *h = user;
    if (level > QUIRE_LOG_WARNING || strncmp(line, FROM_VULKAN, sizeof FROM_VULKAN - 1))
        return;
    pthread_mutex_lock(&h->lock);
    if (!h->count++)
        snprintf(h->first, sizeof h->first, "%s", line);
    pthread_mutex_unlock(&h->lock);
}

static quire_result open_driver(const contract_subject *subject, const quire_host_memory *host,
                                contract_opened *opened)
{
    if (under_valgrind())
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "valgrind finds what drivers and layers leak");
    messages *h = calloc(1, sizeof *h);
    CHECK(h);
    pthread_mutex_init(&h->lock, NULL);
    quire_vulkan_options options = {
        .settings = {
            .device = {.host_memory = host,
                       .log = {.write = collect_message, .user = h, .level = QUIRE_LOG_WARNING}}}};
    (void)subject;
    opened->own = h;
    quire_result result = quire_vulkan_open(&options, &opened->device);
    if (result)
        free(h);
    return result;
}

static void close_driver(void *own)
{
    messages *h = own;
    if (h->count)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " messages, the first: %s", h->count, h->first);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static const contract_subject subject_driver = {
    .name = "vulkan, a driver",
    .open = open_driver,
    .close = close_driver,
    .is_shared = true,
};

/* ---- the fake driver ----------------------------------------------------------------------- */

/* A layout, and the restrictions of the driver. */
typedef struct pose {
    const char *layout;
    uint32_t flags; /* FV_ */
} pose;

static quire_result open_fake(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    const pose *p = subject->options;
    fv_layout layout = *fv_layout_named(p->layout);
    for (uint32_t i = 0; i < layout.heap_count; i++) /* limited to what the test machine can hold */
        layout.heaps[i].size = layout.heaps[i].size > MAX_HEAP ? MAX_HEAP : layout.heaps[i].size;
    layout.extensions |= FV_BIT(BUDGET); /* so that set_budget has an effect */
    const fv_options options = {.layouts = {&layout}, .flags = p->flags};
    fv_driver *driver = fv_create(&options);
    fv_allow(driver, "fv-overlap"); /* in the order of a stream objects share bytes on purpose */
    const quire_vulkan_options open = {
        .device = "0",
        .get_instance_proc_addr = fv_door(driver),
        .settings = {.device = {.host_memory = host}, .staging_size = 64 * 1024}};
    opened->own = driver;
    return quire_vulkan_open(&open, &opened->device);
}

static void close_fake(void *own)
{
    fv_driver *driver = own;
    const char *message = fv_message(driver, 0);
    if (message)
        check_failed(__FILE__, __LINE__, "%s", message);
    CHECK_EQ(fv_live(driver, FV_MEMORY) + fv_live(driver, FV_BUFFER) + fv_live(driver, FV_IMAGE),
             0);
    fv_destroy(driver);
}

static quire_result set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    fv_set_budget(own, 0, heap, bytes, 0);
    return QUIRE_SUCCESS;
}

#define POSE(layout_name, how)                                                                     \
    {                                                                                              \
        .name = "vulkan, posing as " layout_name " (" #how ")",                                    \
        .options = &(const pose){layout_name, how}, .open = open_fake, .close = close_fake,        \
        .set_budget = set_budget, .is_shared = true /* the staging ring uses a heap too */         \
    }

static const contract_subject poses[] = {
    POSE("amd-bar", FV_DIRTY),
    POSE("amd-bar", FV_LATE | FV_PREFER_DEDICATED),
    POSE("amd-apu", FV_DIRTY | FV_ODD_SIZES),
    POSE("nvidia-11", FV_DIRTY | FV_LARGE_ALIGNMENTS),
    POSE("nvidia-bar", FV_LATE),
    POSE("intel-2017", FV_DIRTY),
    POSE("adreno", FV_STALE),
    POSE("incoherent", FV_STALE | FV_DIRTY),
    POSE("swiftshader", FV_DIRTY),
};

const contract_subject *const vulkan_subjects[] = {
    &subject_driver, &poses[0], &poses[1], &poses[2], &poses[3], &poses[4],
    &poses[5],       &poses[6], &poses[7], &poses[8], NULL,
};
