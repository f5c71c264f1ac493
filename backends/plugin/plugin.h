/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plugin.h - the state of a quire device on a plugin, and the functions that the files of the
 * plugin backend call in each other. A plugin is a compiled PaddlePaddle CustomDevice runtime.
 *
 * Layers, from the bottom: library.c (loaded plugins); copy.c, page.c, stream.c and device.c (the
 * current device, sizes, description, public calls); table.c (function table, opening a device).
 *
 * Locks: each stream has a mutex (stream.c), and library.c has one for the list of plugins. The
 * fields of qi_plugin never change after quire_plugin_open, except the atomic `addresses`. quire
 * calls a plugin from several threads at once, as the interface permits.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_PLUGIN_H
#define QUIRE_BACKENDS_PLUGIN_PLUGIN_H

#include "backends/plugin/library.h"
#include "quire/plugin.h"
#include "src/base/atomic.h"

/* The memory that a page consists of; quire_native_page.data holds it. */
typedef enum qi_plugin_role {
    QI_PLUGIN_DEVICE = 0,
    QI_PLUGIN_HOST,   /* pinned host memory */
    QI_PLUGIN_UNIFIED /* one address for host and device */
} qi_plugin_role;

enum { QI_PLUGIN_ROLES = 3 };

typedef struct qi_plugin {
    qi_host host;
    qi_plugin_library *library; /* one user of it */
    qi_plugin_unit *unit;       /* one user of it */
    const qi_pd_interface *f;   /* library->block.interface */
    uint32_t index;             /* in the plugin's device list */
    bool restores;              /* quire_plugin_options.restores_device */
    uint64_t alignment;         /* of every page address, bytes; 1 if none is promised */
    uint64_t multiple;          /* page sizes are multiples of it: min_chunk, of any value >= 1 */
    uint64_t device_bytes;      /* 0 if the plugin does not report it */
    uint64_t host_bytes;
    qi_plugin_role roles[QI_PLUGIN_ROLES]; /* by memory kind */
    uint32_t kind_count;
    void *own_stream; /* for copies that the plugin has on streams only; NULL if there are none, or
                         if the plugin returned no stream */
    qi_atomic_u64 addresses; /* bitwise or of all page addresses: its lowest bit is their common
                                alignment */
} qi_plugin;

/* ---- device.c ----------------------------------------------------------------------------- */

/* Returns the state of a quire device; NULL for a device of another backend and for NULL. */
qi_plugin *qi_plugin_of(const quire_device *device);

/* The device that was current before qi_plugin_enter. */
typedef struct qi_plugin_saved_device {
    qi_pd_device before;
    bool restores;
} qi_plugin_saved_device;

/*
 * Makes the plugin's device current on the calling thread. Every call of the plugin that takes a
 * device stands between enter and leave; `plugin` is the state of the first device it takes. After
 * a failed enter there must be no leave. Leave restores the device of before if the options ask for
 * it; its failure is not reported.
 */
QUIRE_MUST_USE quire_result qi_plugin_enter(const qi_plugin *plugin, qi_plugin_saved_device *saved);
void qi_plugin_leave(const qi_plugin *plugin, const qi_plugin_saved_device *saved);

/*
 * Queries the size callbacks. A size whose callback is missing or fails is 0; min_chunk is then 1.
 * A failing device_extra_padding_size is an error.
 */
QUIRE_MUST_USE quire_result qi_plugin_query_sizes(const qi_plugin *plugin,
                                                  quire_paddle_sizes *sizes);

/* Queries total and free device bytes. Both are 0 if the plugin has no such callback. */
QUIRE_MUST_USE quire_result qi_plugin_query_stats(const qi_plugin *plugin, size_t *total,
                                                  size_t *free_bytes);

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_plugin_describe(void *state, quire_device_info *info);
quire_result qi_plugin_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);
quire_result qi_plugin_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *requirements);

/* ---- page.c: entries of the backend table ------------------------------------------------- */

quire_result qi_plugin_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page);
void qi_plugin_page_destroy(void *state, const quire_native_page *page);
quire_result qi_plugin_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_plugin_page_unmap(void *state, const quire_native_page *page);

/* ---- copy.c ------------------------------------------------------------------------------- */

/* Which of the plugin's copy functions serves: host to device (H2D) and so on. */
typedef enum qi_plugin_direction {
    QI_PLUGIN_H2D = 0,
    QI_PLUGIN_D2H,
    QI_PLUGIN_D2D,
    QI_PLUGIN_P2P,        /* between two devices of the plugin */
    QI_PLUGIN_WITHIN_HOST /* the host reaches both ends: memcpy */
} qi_plugin_direction;

/* Returns true if the plugin copies in a direction, synchronously or on a stream. */
bool qi_plugin_can_copy(const qi_pd_interface *f, qi_plugin_direction direction);

/* Returns true if the plugin copies in some direction on streams only, so that a device needs a
   stream of its own for synchronous copies. */
bool qi_plugin_needs_stream(const qi_pd_interface *f);

/* Entries of the backend table. All return after the bytes have moved. */
quire_result qi_plugin_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size);
quire_result qi_plugin_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size);
quire_result qi_plugin_copy_pages(void *state, const quire_copy_job *job); /* and copy_peer */
quire_result qi_plugin_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value);

/* Submits a copy to a stream of the plugin. UNSUPPORTED if the plugin has no function for it. */
quire_result qi_plugin_copy_on(const qi_plugin *plugin, void *stream, const quire_copy_job *job);

/* ---- stream.c ----------------------------------------------------------------------------- */

/* Returns true if the plugin can create streams and report their progress. */
bool qi_plugin_has_streams(const qi_pd_interface *f);
/* Returns true if the plugin can make one stream wait for another. */
bool qi_plugin_has_order(const qi_pd_interface *f);
/* The plugin's stream; NULL if the plugin returned none. */
void *qi_plugin_stream_handle(uint64_t stream);

/* Entries of the backend table. */
quire_result qi_plugin_stream_create(void *state, const void *description, uint64_t *stream);
void qi_plugin_stream_destroy(void *state, uint64_t stream);
quire_result qi_plugin_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_plugin_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_plugin_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed);
quire_result qi_plugin_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_plugin_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);

#endif
