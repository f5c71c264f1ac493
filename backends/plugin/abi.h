/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * abi.h - the part of PaddlePaddle's CustomDevice interface that quire uses: the functions that
 * every published version has at the same offset. Static assertions check each offset.
 *
 * C_DeviceInterface grew at its end in several incompatible ways. No offset beyond 464
 * (device_realloc_size) means the same in all versions, so nothing beyond it is declared, read or
 * called. 64-bit systems only.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_ABI_H
#define QUIRE_BACKENDS_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* C_Status */
typedef int32_t qi_pd_status;
enum { QI_PD_SUCCESS = 0, QI_PD_WARNING, QI_PD_FAILED, QI_PD_ERROR, QI_PD_INTERNAL_ERROR };

/* C_Device points to it. init_device may change the number. */
typedef struct qi_pd_device {
    int32_t id;
} qi_pd_device;

/* The functions: name, offset in bytes, parameters. `qi_pd_device *` is C_Device. Streams and
   events are opaque pointers of the plugin. */
#define QI_PD_FUNCTIONS(X)                                                                         \
    X(initialize, 8, (void))                                                                       \
    X(finalize, 16, (void))                                                                        \
    X(init_device, 24, (qi_pd_device *))                                                           \
    X(set_device, 32, (qi_pd_device *))                                                            \
    X(get_device, 40, (qi_pd_device *))                                                            \
    X(deinit_device, 48, (qi_pd_device *))                                                         \
    X(create_stream, 56, (qi_pd_device *, void **))                                                \
    X(destroy_stream, 64, (qi_pd_device *, void *))                                                \
    X(query_stream, 72, (qi_pd_device *, void *))                                                  \
    X(stream_add_callback, 80, (qi_pd_device *, void *, void (*)(void), void *))                   \
    X(create_event, 88, (qi_pd_device *, void **))                                                 \
    X(record_event, 96, (qi_pd_device *, void *stream, void *event))                               \
    X(destroy_event, 104, (qi_pd_device *, void *))                                                \
    X(query_event, 112, (qi_pd_device *, void *))                                                  \
    X(synchronize_device, 120, (qi_pd_device *))                                                   \
    X(synchronize_stream, 128, (qi_pd_device *, void *))                                           \
    X(synchronize_event, 136, (qi_pd_device *, void *))                                            \
    X(stream_wait_event, 144, (qi_pd_device *, void *stream, void *event))                         \
    X(device_memory_allocate, 216, (qi_pd_device *, void **, size_t))                              \
    X(device_memory_deallocate, 224, (qi_pd_device *, void *, size_t))                             \
    X(device_memory_set, 232, (qi_pd_device *, void *, unsigned char, size_t))                     \
    X(host_memory_allocate, 240, (qi_pd_device *, void **, size_t))                                \
    X(host_memory_deallocate, 248, (qi_pd_device *, void *, size_t))                               \
    X(unified_memory_allocate, 256, (qi_pd_device *, void **, size_t))                             \
    X(unified_memory_deallocate, 264, (qi_pd_device *, void *, size_t))                            \
    X(memory_copy_h2d, 272, (qi_pd_device *, void *to, const void *from, size_t))                  \
    X(memory_copy_d2h, 280, (qi_pd_device *, void *to, const void *from, size_t))                  \
    X(memory_copy_d2d, 288, (qi_pd_device *, void *to, const void *from, size_t))                  \
    X(memory_copy_p2p, 296,                                                                        \
      (qi_pd_device * to, qi_pd_device * from, void *, const void *, size_t))                      \
    X(async_memory_copy_h2d, 304, (qi_pd_device *, void *stream, void *, const void *, size_t))    \
    X(async_memory_copy_d2h, 312, (qi_pd_device *, void *stream, void *, const void *, size_t))    \
    X(async_memory_copy_d2d, 320, (qi_pd_device *, void *stream, void *, const void *, size_t))    \
    X(async_memory_copy_p2p, 328,                                                                  \
      (qi_pd_device * to, qi_pd_device * from, void *stream, void *, const void *, size_t))        \
    X(get_device_count, 400, (size_t *))                                                           \
    X(get_device_list, 408, (size_t *))                                                            \
    X(device_memory_stats, 416, (qi_pd_device *, size_t * total, size_t * free))                   \
    X(device_min_chunk_size, 424, (qi_pd_device *, size_t *))                                      \
    X(device_max_chunk_size, 432, (qi_pd_device *, size_t *))                                      \
    X(device_max_alloc_size, 440, (qi_pd_device *, size_t *))                                      \
    X(device_extra_padding_size, 448, (qi_pd_device *, size_t *))                                  \
    X(device_init_alloc_size, 456, (qi_pd_device *, size_t *))                                     \
    X(device_realloc_size, 464, (qi_pd_device *, size_t *))

#define X(name, offset, parameters) typedef qi_pd_status(*qi_pd_fn_##name) parameters;
QI_PD_FUNCTIONS(X)
#undef X

/* The common part of C_DeviceInterface. A function that a plugin lacks is NULL. */
typedef struct qi_pd_interface {
    size_t size;
    qi_pd_fn_initialize initialize;
    qi_pd_fn_finalize finalize;
    qi_pd_fn_init_device init_device;
    qi_pd_fn_set_device set_device;
    qi_pd_fn_get_device get_device;
    qi_pd_fn_deinit_device deinit_device;
    qi_pd_fn_create_stream create_stream;
    qi_pd_fn_destroy_stream destroy_stream;
    qi_pd_fn_query_stream query_stream;
    qi_pd_fn_stream_add_callback stream_add_callback;
    qi_pd_fn_create_event create_event;
    qi_pd_fn_record_event record_event;
    qi_pd_fn_destroy_event destroy_event;
    qi_pd_fn_query_event query_event;
    qi_pd_fn_synchronize_device synchronize_device;
    qi_pd_fn_synchronize_stream synchronize_stream;
    qi_pd_fn_synchronize_event synchronize_event;
    qi_pd_fn_stream_wait_event stream_wait_event;
    void *reserved_of_devices[8];
    qi_pd_fn_device_memory_allocate device_memory_allocate;
    qi_pd_fn_device_memory_deallocate device_memory_deallocate;
    qi_pd_fn_device_memory_set device_memory_set;
    qi_pd_fn_host_memory_allocate host_memory_allocate;
    qi_pd_fn_host_memory_deallocate host_memory_deallocate;
    qi_pd_fn_unified_memory_allocate unified_memory_allocate;
    qi_pd_fn_unified_memory_deallocate unified_memory_deallocate;
    qi_pd_fn_memory_copy_h2d memory_copy_h2d;
    qi_pd_fn_memory_copy_d2h memory_copy_d2h;
    qi_pd_fn_memory_copy_d2d memory_copy_d2d;
    qi_pd_fn_memory_copy_p2p memory_copy_p2p;
    qi_pd_fn_async_memory_copy_h2d async_memory_copy_h2d;
    qi_pd_fn_async_memory_copy_d2h async_memory_copy_d2h;
    qi_pd_fn_async_memory_copy_d2d async_memory_copy_d2d;
    qi_pd_fn_async_memory_copy_p2p async_memory_copy_p2p;
    void *reserved_of_memory[8];
    qi_pd_fn_get_device_count get_device_count;
    qi_pd_fn_get_device_list get_device_list;
    qi_pd_fn_device_memory_stats device_memory_stats;
    qi_pd_fn_device_min_chunk_size device_min_chunk_size;
    qi_pd_fn_device_max_chunk_size device_max_chunk_size;
    qi_pd_fn_device_max_alloc_size device_max_alloc_size;
    qi_pd_fn_device_extra_padding_size device_extra_padding_size;
    qi_pd_fn_device_init_alloc_size device_init_alloc_size;
    qi_pd_fn_device_realloc_size device_realloc_size;
} qi_pd_interface;

#define X(name, offset, parameters)                                                                \
    _Static_assert(offsetof(qi_pd_interface, name) == (offset), #name " has moved");
QI_PD_FUNCTIONS(X)
#undef X
_Static_assert(sizeof(qi_pd_interface) == 472, "nothing beyond offset 464 is common");

/* CustomRuntimeParams. Newer versions have one more pointer before `reserved`: 96 bytes. */
typedef struct qi_pd_params {
    size_t size;
    qi_pd_interface *interface;
    size_t major, minor, patch;
    char *device_type;
    char *sub_device_type;
    char reserved[32];
} qi_pd_params;

_Static_assert(offsetof(qi_pd_params, device_type) == 40, "device_type has moved");
_Static_assert(sizeof(qi_pd_params) == 88, "plugins accept the sizes 88 and 96");

/*
 * A plugin clears both blocks, `size` included, by the sizes that it was compiled with: up to 1032
 * bytes today. The blocks that quire passes are larger than that.
 */
typedef union qi_pd_interface_block {
    qi_pd_interface interface;
    unsigned char room[4096];
} qi_pd_interface_block;

typedef union qi_pd_params_block {
    qi_pd_params params;
    unsigned char room[1024];
} qi_pd_params_block;

/* The values of params.size in the published versions. */
#define QI_PD_PARAMS_SIZES                                                                         \
    {                                                                                              \
        88, 96                                                                                     \
    }

typedef void (*qi_pd_init_plugin)(qi_pd_params *);

#endif
