/*
 * vulkan.c - the contract's subjects of the Vulkan backend: the driver of this machine, opened by
 * quire under whatever layers the environment asks for. A warning of theirs fails the scenario.
 */
#include "quire/vulkan.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/contract/contract.h"

/* What layers and driver said. */
typedef struct heard {
    pthread_mutex_t lock;
    uint64_t count;
    char first[1024];
} heard;

/* Lines of the library itself, about leaks that a test makes on purpose, do not begin so. */
static const char FROM_VULKAN[] = "vulkan: ";

static void hear(void *user, quire_log_level level, const char *line)
{
    heard *h = user;
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
    heard *h = calloc(1, sizeof *h);
    CHECK(h);
    pthread_mutex_init(&h->lock, NULL);
    quire_vulkan_options options = {
        .settings = {.device = {.host_memory = host,
                                .log = {.write = hear, .user = h, .level = QUIRE_LOG_WARNING}}}};
    (void)subject;
    opened->own = h;
    quire_result result = quire_vulkan_open(&options, &opened->device);
    if (result)
        free(h);
    return result;
}

static void close_driver(void *own)
{
    heard *h = own;
    if (h->count)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " messages, the first: %s", h->count, h->first);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static const contract_subject subject_driver = {
    .name = "vulkan, this machine's driver",
    .open = open_driver,
    .close = close_driver,
    .is_shared = true,
};

const contract_subject *const vulkan_subjects[] = {&subject_driver, NULL};
