/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.h - the device that --backend, --profile and --plugin select, and its memory kinds.
 */
#ifndef QUIRE_SRC_TOOL_OPEN_H
#define QUIRE_SRC_TOOL_OPEN_H

#include "quire/host.h"
#include "src/tool/options.h"

/* ---- devices ------------------------------------------------------------------------------ */

/* Targets of DEVICE_OPTIONS. */
typedef struct device_choice {
    const char *backend;    /* "host", "vulkan", "cuda" or "plugin"; NULL means host */
    const char *profile;    /* path of a device profile, or NULL */
    const char *device;     /* index or part of the name, for vulkan and cuda; NULL: any */
    const char *plugin;     /* path of a plugin, or NULL */
    uint64_t plugin_device; /* index in the plugin's list of devices */
} device_choice;

#define DEVICE_HELP                                                                                \
    "index or part of its name (default: the variable\n"                                           \
    "QUIRE_VULKAN_DEVICE or QUIRE_CUDA_DEVICE)"

/* The option_spec rows that select a device. */
#define DEVICE_OPTIONS(choice)                                                                     \
    {"backend", "B", "host (default), vulkan, cuda or plugin", OPTION_TEXT, &(choice)->backend},   \
        {"profile", "FILE", "simulate the device that a profile describes", OPTION_TEXT,           \
         &(choice)->profile},                                                                      \
        {"device", "D", DEVICE_HELP, OPTION_TEXT, &(choice)->device},                              \
        {"plugin", "FILE", "compiled plugin, for the plugin backend", OPTION_TEXT,                 \
         &(choice)->plugin},                                                                       \
    {                                                                                              \
        "plugin-device", "N", "index in the plugin's list of devices, from 0", OPTION_NUMBER,      \
            &(choice)->plugin_device                                                               \
    }

/* The name of the chosen backend; "host" if none is given. */
const char *backend_of(const device_choice *choice);

/* Opens the device. Returns -1, or prints the error and returns the exit code. */
int open_device(const command *self, const device_choice *choice, quire_device **device);

/*
 * Reads a device profile (docs/formats.md). Prints the error and returns false if the file is
 * unreadable or invalid. The caller frees *name, which profile->name points to.
 */
bool read_profile(const char *path, quire_host_profile *profile, char **name);

/* ---- memory kinds ------------------------------------------------------------------------- */

/* The memory kinds that quire chooses for typical uses; NO_KIND if no kind qualifies. */
#define NO_KIND UINT32_MAX
typedef struct kind_choices {
    uint32_t device, upload, readback, both, shared;
} kind_choices;

kind_choices choose_kinds(const quire_device *device);

/* Writes flags such as "DEVICE_LOCAL|HOST_VISIBLE" into the buffer and returns it; "none" for 0. */
const char *flags_text(quire_memory_flags flags, char *buffer, size_t size);

#endif
