/*
 * plugin.h - the state of a quire device on a plugin, shared by the parts of the plugin backend.
 *
 * Nothing here has a lock but streams: a plugin serves several threads, and what quire keeps of a
 * device does not change while it lives.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_PLUGIN_H
#define QUIRE_BACKENDS_PLUGIN_PLUGIN_H

#include "backends/plugin/library.h"
#include "quire/plugin.h"
#include "src/base/atomic.h"

/* What a page is made of; quire_native_page.data. */
typedef enum qi_plugin_role {
    QI_PLUGIN_DEVICE = 0,
    QI_PLUGIN_HOST,
    QI_PLUGIN_UNIFIED
} qi_plugin_role;

enum { QI_PLUGIN_ROLES = 3 };

typedef struct qi_plugin {
    qi_host host;
    qi_plugin_library *library;
    qi_plugin_unit *unit;
    const qi_pd_interface *f;
    uint32_t index; /* in the plugin's list */
    bool restores;
    uint64_t alignment; /* of every page; 1: nothing is known of it */
    uint64_t multiple;  /* page sizes are multiples of it: min_chunk, any number */
    uint64_t device_bytes, host_bytes;
    qi_plugin_role roles[QI_PLUGIN_ROLES]; /* by memory kind */
    uint32_t kind_count;
    void *own_stream; /* for what the plugin copies on streams alone; NULL: not needed, or none */
    qi_atomic_u64 addresses; /* of all pages so far, joined by or: the lowest bit is their
                                alignment */
} qi_plugin;

/* Of the quire device; NULL for one of another backend, and for NULL. */
qi_plugin *qi_plugin_of(const quire_device *device);

/* ---- one call of the plugin ----------------------------------------------------------------- */

/* What leave needs to know. */
typedef struct qi_plugin_turn {
    qi_pd_device before;
    bool restores;
} qi_plugin_turn;

/*
 * Makes the device current on the calling thread; every call that names a device stands between the
 * two. `plugin` is the one whose device is named first.
 */
QUIRE_MUST_USE quire_result qi_plugin_enter(const qi_plugin *plugin, qi_plugin_turn *turn);
void qi_plugin_leave(const qi_plugin *plugin, const qi_plugin_turn *turn);

/* ---- device.c ------------------------------------------------------------------------------- */

/* The answers of the size callbacks; a missing or failing one is 0, min_chunk then 1. */
QUIRE_MUST_USE quire_result qi_plugin_ask_sizes(const qi_plugin *plugin, quire_paddle_sizes *sizes);

/* Total and free bytes; both 0 where the plugin does not tell. */
QUIRE_MUST_USE quire_result qi_plugin_ask_stats(const qi_plugin *plugin, size_t *total,
                                                size_t *free_bytes);

quire_result qi_plugin_describe(void *state, quire_device_info *info);
quire_result qi_plugin_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);
quire_result qi_plugin_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *requirements);
void qi_plugin_end(void *state);

/* Entries of the table, as quire/backend.h says. */
void qi_plugin_fork_prepare(void *state);
void qi_plugin_fork_done(void *state);
void qi_plugin_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

/* ---- page.c --------------------------------------------------------------------------------- */

quire_result qi_plugin_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page);
void qi_plugin_page_destroy(void *state, const quire_native_page *page);
quire_result qi_plugin_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_plugin_page_unmap(void *state, const quire_native_page *page);

/* ---- copy.c --------------------------------------------------------------------------------- */

typedef enum qi_plugin_way {
    QI_PLUGIN_H2D = 0,
    QI_PLUGIN_D2H,
    QI_PLUGIN_D2D,
    QI_PLUGIN_P2P,
    QI_PLUGIN_WITHIN_HOST
} qi_plugin_way;

/* Whether the plugin copies so, by itself or on a stream that is waited for. */
bool qi_plugin_can_copy(const qi_pd_interface *f, qi_plugin_way way);
/* Whether some way is open on streams alone, so that a device needs one of its own. */
bool qi_plugin_needs_stream(const qi_pd_interface *f);

quire_result qi_plugin_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size);
quire_result qi_plugin_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size);
quire_result qi_plugin_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_plugin_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value);
/* On a stream of the plugin's; UNSUPPORTED where it cannot. */
quire_result qi_plugin_copy_on(const qi_plugin *plugin, void *stream, const quire_copy_job *job);

/* ---- stream.c ------------------------------------------------------------------------------- */

/* Whether streams can be made, marked and waited for. */
bool qi_plugin_has_streams(const qi_pd_interface *f);
bool qi_plugin_has_order(const qi_pd_interface *f);
/* The plugin's; NULL: it gave none. */
void *qi_plugin_stream_handle(uint64_t stream);

quire_result qi_plugin_stream_create(void *state, const void *description, uint64_t *stream);
void qi_plugin_stream_destroy(void *state, uint64_t stream);
quire_result qi_plugin_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_plugin_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_plugin_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed);
quire_result qi_plugin_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_plugin_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);

#endif
