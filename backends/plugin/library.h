/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * library.h - the plugins that this process has loaded, their devices, and the results of their
 * functions. Quire devices and the Paddle adapter share them.
 *
 * A plugin is initialised once per process, however many quire devices are open on it. The list of
 * loaded plugins is therefore global. A mutex of library.c protects the list, `users` of libraries
 * and units, and their init and deinit calls. Every other field is constant while the library has a
 * user. Records come from malloc, because they may outlive the first device and its host memory
 * callbacks.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_LIBRARY_H
#define QUIRE_BACKENDS_PLUGIN_LIBRARY_H

#include <stdbool.h>

#include "backends/plugin/abi.h"
#include "quire/backend.h"
#include "src/base/host_memory.h"

/* One device of a plugin. Plugins keep the pointer to `device`, so the record never moves. */
typedef struct qi_plugin_unit {
    qi_pd_device device; /* C_Device; its number is the one that init_device set */
    int32_t listed;      /* its number in get_device_list */
    uint32_t users;      /* quire devices on it; init_device for the first, deinit for the last */
} qi_plugin_unit;

typedef struct qi_plugin_library {
    struct qi_plugin_library *next;
    qi_host host;
    void *handle;    /* of dlopen */
    uint32_t users;  /* quire devices, and the adapter */
    bool has_forked; /* this process is a child of the one that loaded it: no function is called */
    char *path;      /* of the first opening, for messages */
    char *device_type;
    char *sub_device_type; /* "" if the plugin gives none */
    qi_plugin_unit *units; /* unit_count of them, in the plugin's order */
    uint32_t unit_count;
    qi_pd_params_block params;
    qi_pd_interface_block block;
    quire_backend table; /* shared by all its devices, so that the core sees one backend */
} qi_plugin_library;

/* The functions of a plugin. Functions that it lacks are NULL. */
static inline const qi_pd_interface *qi_plugin_functions(const qi_plugin_library *library)
{
    return &library->block.interface;
}

/* ---- users -------------------------------------------------------------------------------- */

/* Fills in the backend table for the functions that a plugin has. */
typedef void (*qi_plugin_fill_table)(const qi_pd_interface *f, quire_backend *table);

/*
 * Adds a user to the plugin at a path. The first user loads and initialises it. `fill_table` is
 * called once per library; NULL if the caller does not need the table. NOT_PERMITTED in a child of
 * the process that initialised the plugin.
 */
QUIRE_MUST_USE quire_result qi_plugin_library_acquire(const char *path,
                                                      qi_plugin_fill_table fill_table,
                                                      qi_plugin_library **library);
/* Removes a user. The last one finalises and unloads the plugin. Accepts NULL. */
void qi_plugin_library_release(qi_plugin_library *library);

/* Adds a user to the device at a position of the plugin's list. OUT_OF_RANGE if it has none. */
QUIRE_MUST_USE quire_result qi_plugin_unit_acquire(qi_plugin_library *library, uint32_t index,
                                                   qi_plugin_unit **unit);
/* Accepts NULL. */
void qi_plugin_unit_release(qi_plugin_library *library, qi_plugin_unit *unit);

/* ---- functions and their results ---------------------------------------------------------- */

/* The name of the function at an offset of C_DeviceInterface; NULL if quire knows none there. */
const char *qi_plugin_name_at(size_t offset);

/* Bit (offset - 8) / 8 is set for each function that the plugin has. */
uint64_t qi_plugin_present(const qi_pd_interface *f);

/* Reports the status of a function that allocates `size` bytes, and of every other function. */
quire_result qi_plugin_fail_memory(const qi_plugin_library *library, qi_pd_status status,
                                   const char *function, uint64_t size);
quire_result qi_plugin_fail(const qi_plugin_library *library, qi_pd_status status,
                            const char *function);

#endif
