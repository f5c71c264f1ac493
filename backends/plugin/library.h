/*
 * library.h - plugins that are loaded, shared by the quire devices on them, and their devices.
 *
 * A plugin is initialised once, whoever opens it how often; so the list of those loaded is one of
 * the process, kept under a mutex, and its records come from malloc: they may outlive the device
 * that came first, and with it that one's host memory callbacks.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_LIBRARY_H
#define QUIRE_BACKENDS_PLUGIN_LIBRARY_H

#include <stdbool.h>

#include "backends/plugin/abi.h"
#include "quire/backend.h"
#include "src/base/host_memory.h"

/* One device of a plugin. What the plugin gets as C_Device stays where it is. */
typedef struct qi_plugin_unit {
    qi_pd_device device; /* its number since init_device */
    int32_t listed;      /* its number in the plugin's list */
    uint32_t users;      /* quire devices on it */
} qi_plugin_unit;

typedef struct qi_plugin_library {
    struct qi_plugin_library *next;
    qi_host host;
    void *handle;    /* dlopen's */
    uint32_t users;  /* quire devices, and whoever else took it */
    bool has_forked; /* this is the copy of a child: nothing of it is called */
    char *path;      /* as it was first opened, for sentences */
    char *device_type;
    char *sub_device_type;
    qi_plugin_unit *units;
    uint32_t unit_count;
    qi_pd_params_block params;
    qi_pd_interface_block block;
    quire_backend table; /* of all its devices, so that the core sees one backend */
} qi_plugin_library;

/* The functions of a plugin. */
static inline const qi_pd_interface *qi_plugin_functions(const qi_plugin_library *library)
{
    return &library->block.interface;
}

/* The plugin at a path, loaded and initialised unless it is already. */
QUIRE_MUST_USE quire_result qi_plugin_library_take(const char *path, qi_plugin_library **library);
/* The last one finalises and unloads it. Accepts NULL. */
void qi_plugin_library_give(qi_plugin_library *library);

/* A device of it, by its place in the list, which is initialised unless it is already. */
QUIRE_MUST_USE quire_result qi_plugin_unit_take(qi_plugin_library *library, uint32_t index,
                                                qi_plugin_unit **unit);
/* Accepts NULL. */
void qi_plugin_unit_give(qi_plugin_library *library, qi_plugin_unit *unit);

/* The name of the function at an offset; NULL: there is none. */
const char *qi_plugin_name_at(size_t offset);

/* Bit (offset - 8) / 8 for each function that is there. */
uint64_t qi_plugin_present(const qi_pd_interface *f);

/* Fails with the answer of a function: what it means for one that makes memory, and for others. */
quire_result qi_plugin_fail_memory(const qi_plugin_library *library, qi_pd_status status,
                                   const char *function, uint64_t size);
quire_result qi_plugin_fail(const qi_plugin_library *library, qi_pd_status status,
                            const char *function);

/* table.c: the table of a plugin's devices, by the functions that it has. */
void qi_plugin_fill_table(const qi_pd_interface *f, quire_backend *table);

#endif
