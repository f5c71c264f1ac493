/*
 * quire/plugin.h - the plugin backend: memory of a device that a compiled PaddlePaddle CustomDevice
 * runtime drives. Such a plugin is a shared object with the entry point InitPlugin, which fills in
 * a C_DeviceInterface; quire reads the part of it that has not changed since the interface was
 * published.
 *
 * Functions that a plugin may leave out are done without, or what needs them is UNSUPPORTED, never
 * a silent no-op: docs/plugin.md has the list. In a build without the backend every function here
 * answers UNSUPPORTED, so that programs link either way.
 *
 * Any thread may call: the device is made current (set_device) on the calling thread before each
 * call of the plugin that names a device, and stays so, unless the options say otherwise. A plugin
 * must be able to serve several threads, as Paddle's own use of it requires. The answers of the
 * plugin (C_Status) are kept: see quire_last_native_code. A plugin that ends the process where it
 * fails, as some do, ends this one, too.
 */
#ifndef QUIRE_PLUGIN_H
#define QUIRE_PLUGIN_H

#include "quire/backend.h"
#include "quire/preset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_plugin_options {
    const char *path; /* of the shared object, as dlopen takes it: with a slash, or searched for */
    uint32_t device;  /* which of the plugin's devices: its place in the plugin's list, from 0 */
    /*
     * Sets the device that was current on the thread (get_device) again after each call: for
     * programs that use the plugin themselves. Some plugins end the process when they are asked on
     * a thread that has none. UNSUPPORTED where the plugin has no get_device.
     */
    bool restores_device;
    /*
     * What the addresses of the plugin's memory are known to be multiples of, a power of two; a
     * page at another one is refused. 0: 1, nothing is counted on: allocations are aligned within
     * their pages, and a page for one allocation is larger by what that may take.
     */
    uint64_t alignment;
    quire_device_options device_options;
    uint64_t unused[4]; /* must be zero */
} quire_plugin_options;

/*
 * Opens a device of a plugin, which is loaded and initialised with the first and finalised and
 * unloaded with the last. Several devices of a plugin, and one device several times, may be open.
 * Memory kinds, in this order: device-local; pinned host memory (host-visible, coherent, cached)
 * and unified memory (device-local, host-visible, coherent), each where the plugin can allocate and
 * free it.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no such file, no InitPlugin, a plugin that refuses or that
 * lacks something required: the sentence has its name), OUT_OF_RANGE (no such device),
 * OUT_OF_HOST_MEMORY, and what the plugin answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_open(const quire_plugin_options *options,
                                                        quire_device **device);

/* No memory kind of that sort. */
#define QUIRE_PLUGIN_NO_KIND UINT32_MAX

typedef struct quire_plugin_info {
    const char *device_type;     /* "custom_cpu"; the texts live as long as the device */
    const char *sub_device_type; /* "" where there is none */
    uint32_t version_major, version_minor, version_patch; /* of the interface it was built with */
    uint32_t device;                                      /* place in the plugin's list */
    uint32_t device_count;                                /* devices in it */
    int32_t id;         /* as the plugin numbers the device since init_device */
    uint32_t host_kind; /* memory kinds, or QUIRE_PLUGIN_NO_KIND */
    uint32_t unified_kind;
    /* the functions that are there: bit (offset - 8) / 8 for the one at that offset of a
       C_DeviceInterface; quire_plugin_function_name has the names */
    uint64_t functions;
    /* the size callbacks' answers now; `chunk` is 0. What a missing callback stands for is said
       with quire_plugin_get_policy; max_chunk is 0 where nothing tells it. */
    quire_paddle_sizes sizes;
    uint64_t least_alignment; /* that the address of every page so far had; 0: there was none */
    uint64_t unused[4];
} quire_plugin_info;

/* Errors: INVALID_ARGUMENT (also for a device of another backend), and what the plugin answers. */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_info(quire_device *device,
                                                            quire_plugin_info *info);

/* The name of the function of a bit in quire_plugin_info.functions; NULL: there is none.
   Thread-safety: safe. */
QUIRE_API const char *quire_plugin_function_name(uint32_t bit);

/*
 * The page policy that Paddle's strategy makes of the size callbacks' answers, asked now: see
 * quire_page_policy_paddle. A callback that is missing, or fails, stands for: min_chunk 1;
 * max_chunk max_alloc, and that the bytes of the device that are free now; init_alloc and re_alloc
 * max_chunk; extra_padding 0 (there, a failure is an error).
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (naive_best_fit of a plugin that tells none of max_chunk,
 * max_alloc and the device's free bytes), and what the plugin answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_policy(quire_device *device,
                                                              quire_paddle_strategy strategy,
                                                              quire_page_policy *policy);

/*
 * Takes a stream of the plugin's that exists (C_Stream) and outlives the quire stream; `name` is
 * copied, NULL: "stream". The points of a plugin's streams are events; where the plugin has none a
 * point has passed when the whole stream was found idle, or was waited for, after it.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the plugin's streams cannot be waited for),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_stream_wrap(quire_device *device,
                                                               void *plugin_stream,
                                                               const char *name,
                                                               quire_stream **stream);

/*
 * The plugin's stream (C_Stream) behind one of quire's, to submit work to; NULL where the plugin
 * hands out none. Errors: INVALID_ARGUMENT (also for a held stream, and for one of another
 * backend).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_plugin_get_stream(quire_stream *stream,
                                                              void **plugin_stream);

#ifdef __cplusplus
}
#endif

#endif
