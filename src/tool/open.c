/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.c - opens devices, and chooses and names their memory kinds.
 */
#include "src/tool/open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "quire/cuda.h"
#include "quire/plugin.h"
#include "quire/vulkan.h"

/* ---- devices ------------------------------------------------------------------------------ */

/*
 * Opens the host itself, or the device that a profile describes. The library copies the name, so it
 * is freed after opening. An error about the profile's values is printed with the file name.
 */
static int open_host(const device_choice *choice, quire_device **device)
{
    quire_host_profile profile = {0};
    quire_host_options options = {0};
    char *name = NULL;
    if (choice->profile) {
        if (!read_profile(choice->profile, &profile, &name))
            return EXIT_FAILED;
        options.profile = &profile;
    }
    quire_result result = quire_host_open(&options, device);
    free(name);
    if (!result)
        return -1;
    if (choice->profile)
        print_problem("quire: %s: %s", choice->profile, quire_last_error());
    else
        fail_with_last_error();
    return EXIT_FAILED;
}

/* Only the host backend can simulate another device. */
static int refuse_profile(const command *self)
{
    return bad_usage(self, "--profile requires the host backend, which simulates the device");
}

static int open_vulkan(const command *self, const device_choice *choice, quire_device **device)
{
    if (choice->profile)
        return refuse_profile(self);
    const quire_vulkan_options options = {.device = choice->device};
    return quire_vulkan_open(&options, device) ? fail_with_last_error() : -1;
}

static int open_cuda(const command *self, const device_choice *choice, quire_device **device)
{
    if (choice->profile)
        return refuse_profile(self);
    const quire_cuda_options options = {.device = choice->device};
    return quire_cuda_open(&options, device) ? fail_with_last_error() : -1;
}

/* Checks the options before it loads the file, because loading a plugin runs its code. */
static int open_plugin(const command *self, const device_choice *choice, quire_device **device)
{
    if (choice->profile)
        return refuse_profile(self);
    if (!choice->plugin)
        return bad_usage(self, "--backend plugin requires --plugin FILE");
    if (choice->plugin_device > UINT32_MAX)
        return bad_usage(self, "no plugin has a device %" PRIu64, choice->plugin_device);
    const quire_plugin_options options = {.path = choice->plugin,
                                          .device = (uint32_t)choice->plugin_device};
    return quire_plugin_open(&options, device) ? fail_with_last_error() : -1;
}

const char *backend_of(const device_choice *choice)
{
    return choice->backend ? choice->backend : "host";
}

int open_device(const command *self, const device_choice *choice, quire_device **device)
{
    const char *backend = backend_of(choice);
    if (choice->device && (!strcmp(backend, "host") || !strcmp(backend, "plugin")))
        return bad_usage(self, "--device requires --backend vulkan or cuda");
    if (!strcmp(backend, "plugin"))
        return open_plugin(self, choice, device);
    if (choice->plugin || choice->plugin_device)
        return bad_usage(self, "--plugin and --plugin-device require --backend plugin");
    if (!strcmp(backend, "host"))
        return open_host(choice, device);
    if (!strcmp(backend, "vulkan"))
        return open_vulkan(self, choice, device);
    if (!strcmp(backend, "cuda"))
        return open_cuda(self, choice, device);
    return bad_usage(self, "unknown backend '%s'; the backends are host, vulkan, cuda and plugin",
                     backend);
}

/* ---- memory kinds ------------------------------------------------------------------------- */

/* Returns the kind for an intent, or NO_KIND if no kind of the device satisfies it. */
static uint32_t kind_for(const quire_device *device, quire_intent intent)
{
    uint32_t kind = 0;
    quire_result result =
        quire_device_choose_kind(device, &(quire_kind_request){.intent = intent}, &kind);
    return result ? NO_KIND : kind;
}

/* Shared memory is requested by its flags instead of an intent. */
kind_choices choose_kinds(const quire_device *device)
{
    uint32_t shared = 0;
    quire_kind_request request = {.required = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE,
                                  .preferred = QUIRE_HOST_COHERENT};
    quire_result result = quire_device_choose_kind(device, &request, &shared);
    return (kind_choices){
        .device = kind_for(device, QUIRE_INTENT_DEVICE),
        .upload = kind_for(device, QUIRE_INTENT_UPLOAD),
        .readback = kind_for(device, QUIRE_INTENT_HOST_READ),
        .both = kind_for(device, QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE),
        .shared = result ? NO_KIND : shared,
    };
}

const char *flags_text(quire_memory_flags flags, char *buffer, size_t size)
{
    size_t length = 0;
    snprintf(buffer, size, "none");
    for (quire_memory_flags flag = 1; quire_memory_flag_name(flag) && length < size; flag <<= 1) {
        if (!(flags & flag))
            continue;
        int more = snprintf(buffer + length, size - length, "%s%s", length ? "|" : "",
                            quire_memory_flag_name(flag));
        length += more > 0 ? (size_t)more : 0;
    }
    return buffer;
}
