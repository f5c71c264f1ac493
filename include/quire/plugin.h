/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/plugin.h - the plugin backend: memory of a device that a compiled PaddlePaddle CustomDevice
 * runtime drives. A plugin is a shared object with the entry point InitPlugin, which fills in a
 * C_DeviceInterface. quire reads only the part of that struct that has not changed since the
 * interface was published.
 *
 * If a plugin leaves out an optional function, quire works without it or returns UNSUPPORTED, and
 * never silently does nothing: docs/plugin.md has the list. In a build without this backend every
 * function here returns UNSUPPORTED, so that programs link either way.
 *
 * Thread-safety: any thread may call any function on live objects. quire makes the device current
 * (set_device) on the calling thread before each call of the plugin that names a device. It stays
 * current unless the options say otherwise. A plugin must be able to serve several threads, as
 * Paddle requires too.
 *
 * Errors: quire_last_native_code has the plugin's own code (C_Status). INVALID_ARGUMENT is also the
 * error for a device or stream of another backend. A plugin that ends the process when it fails, as
 * some do, ends this one too.
 */
#ifndef QUIRE_PLUGIN_H
#define QUIRE_PLUGIN_H

#include "quire/backend.h"
#include "quire/preset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_plugin_options {
    const char *path; /* of the shared object, as for dlopen: with a slash, or searched for */
    uint32_t device;  /* position of the device in the plugin's list, from 0 */
    /*
     * After each call, make the device current again that was current on the thread before it
     * (get_device). For programs that use the plugin themselves. Some plugins end the process if
     * get_device is called on a thread without a device. UNSUPPORTED if the plugin has no
     * get_device.
     */
    bool restores_device;
    /*
     * Known alignment of the addresses of the plugin's memory, a power of two. A page at another
     * address is refused. 0: 1, nothing is assumed. quire then aligns allocations within their
     * pages, and enlarges a page for one allocation by the bytes that may take.
     */
    uint64_t alignment;
    quire_device_options device_options;
    uint64_t unused[4]; /* must be zero */
} quire_plugin_options;

/*
 * Opens a device of a plugin. The first device loads and initialises the plugin, the last one
 * finalises and unloads it. Several devices of a plugin may be open, and one device several times.
 *
 * Memory kinds, in this order: device-local; pinned host memory (host-visible, coherent, cached);
 * unified memory (device-local, host-visible, coherent). The last two exist if the plugin can
 * allocate and free such memory.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no such file, no InitPlugin, or the plugin refuses or
 * lacks a required function, which the sentence names), OUT_OF_RANGE (no such device),
 * OUT_OF_HOST_MEMORY, and errors of the plugin.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_open(const quire_plugin_options *options,
                                                        quire_device **device);

/* The value of quire_plugin_info.host_kind and unified_kind if there is no such kind. */
#define QUIRE_PLUGIN_NO_KIND UINT32_MAX

typedef struct quire_plugin_info {
    const char *device_type;     /* "custom_cpu"; the texts are valid as long as the device */
    const char *sub_device_type; /* "" if there is none */
    uint32_t version_major, version_minor, version_patch; /* of the interface it was built with */
    uint32_t device;                                      /* position in the plugin's list */
    uint32_t device_count;                                /* devices in the list */
    int32_t id;         /* the plugin's number of the device since init_device */
    uint32_t host_kind; /* index of the kind of pinned memory, or QUIRE_PLUGIN_NO_KIND */
    uint32_t unified_kind;
    /* The functions that the plugin has: bit (offset - 8) / 8 for the function at that offset of
       C_DeviceInterface. quire_plugin_function_name returns the names. */
    uint64_t functions;
    /* Current results of the size callbacks; `chunk` is 0. quire_plugin_get_policy says what
       replaces a missing callback. max_chunk is 0 if nothing reports it. */
    quire_paddle_sizes sizes;
    uint64_t least_alignment; /* bytes; common alignment of all page addresses so far; 0: none */
    uint64_t unused[4];
} quire_plugin_info;

/* Writes what the plugin reports. Errors: INVALID_ARGUMENT, and errors of the plugin. */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_info(const quire_device *device,
                                                            quire_plugin_info *info);

/*
 * Returns the name of the function of a bit in quire_plugin_info.functions; NULL if there is none.
 * Thread-safe.
 */
QUIRE_API const char *quire_plugin_function_name(uint32_t bit);

/*
 * Writes the page policy that a strategy of Paddle derives from the size callbacks, which the call
 * queries: see quire_page_policy_paddle. Substitutes:
 *  - min_chunk is 1 if its callback is missing, fails, or returns as much as the device has;
 *  - max_chunk is max_alloc if its callback is missing, and the free bytes of the device if
 *    max_alloc is not known either; it is 0 if its callback fails;
 *  - init_alloc and re_alloc are max_chunk if their callbacks are missing or fail;
 *  - extra_padding is 0 if its callback is missing; its failure is an error.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (naive_best_fit, and the plugin reports none of max_chunk,
 * max_alloc and the free bytes), and errors of the plugin.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_policy(const quire_device *device,
                                                              quire_paddle_strategy strategy,
                                                              quire_page_policy *policy);

/*
 * Wraps a stream of the plugin (C_Stream). The native stream stays the caller's and must outlive
 * the quire stream. `name` is copied; NULL: "stream". Points are events of the plugin. If the
 * plugin has no events, a point has passed once the whole stream was found idle after it, or was
 * waited for. Errors: INVALID_ARGUMENT, UNSUPPORTED (the plugin cannot wait for streams),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_stream_wrap(quire_device *device,
                                                               void *plugin_stream,
                                                               const char *name,
                                                               quire_stream **stream);

/*
 * Writes the plugin's stream (C_Stream) of a quire stream, to submit work to; NULL if the plugin
 * hands out none. Errors: INVALID_ARGUMENT (also for a capture stream).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_stream(const quire_stream *stream,
                                                              void **plugin_stream);

#ifdef __cplusplus
}
#endif

#endif
