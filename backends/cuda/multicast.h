/*
 * multicast.h - multicast objects: memory of several devices behind one address. An object belongs
 * to no memory: the bound pages stay in theirs.
 */
#ifndef QUIRE_BACKENDS_CUDA_MULTICAST_H
#define QUIRE_BACKENDS_CUDA_MULTICAST_H

#include "backends/cuda/page.h"

/* A device that this process added, and the object's addresses for it. */
typedef struct qi_cuda_multicast_device {
    int ordinal;
    qi_cu_ptr reserved; /* 0: none */
    bool is_mapped;
    bool is_ready;     /* mapped and accessible */
    bool is_in_change; /* a thread maps it, and pauses without the mutex */
} qi_cuda_multicast_device;

/* Memory of a device that this process bound. */
typedef struct qi_cuda_binding {
    struct qi_cuda_binding *next;
    int device;
    uint64_t offset, size; /* bytes, in the object */
} qi_cuda_binding;

struct quire_cuda_multicast {
    qi_cuda *cuda;
    qi_cu_handle handle;
    uint64_t size; /* bytes, rounded up */
    uint64_t granularity, recommended;
    quire_cuda_handle_types types; /* by which it can be exported */
    qi_cu_result fabric_code; /* why it has no fabric handle; 0: it has one, or none was asked */
    bool is_imported;
    uint32_t team_size;
    uint32_t device_count;
    qi_cuda_multicast_device *devices;
    /* Protects `bindings` and the addresses of devices, also during calls of the driver: threads
       that change the same object wait for each other. Everything else is constant. */
    pthread_mutex_t mutex;
    qi_cuda_binding *bindings;
};

/* ---- multicast.c ------------------------------------------------------------------------ */

/* What the caller says about an object, in either kind of options. */
typedef struct qi_cuda_multicast_team {
    uint64_t size;
    const int32_t *devices;
    uint32_t device_count, team_size;
} qi_cuda_multicast_team;

/* Gives the record its handle, from the caller's options. In the context. */
typedef quire_result (*qi_cuda_multicast_maker)(quire_cuda_multicast *multicast,
                                                const void *options);

/*
 * Creates a record, lets `make` give it a handle, and adds the devices. On failure nothing is left.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the device has no multicast), OUT_OF_HOST_MEMORY, errors
 * of `make` and of the driver.
 */
QUIRE_MUST_USE quire_result qi_cuda_multicast_make(quire_device *device,
                                                   const qi_cuda_multicast_team *team,
                                                   qi_cuda_multicast_maker make,
                                                   const void *options,
                                                   quire_cuda_multicast **multicast);

/* Queries both granularities for an object with these handle types. In the context. */
QUIRE_MUST_USE qi_cu_result qi_cuda_multicast_query(quire_cuda_multicast *multicast,
                                                    quire_cuda_handle_types types);

/* ---- multicast_bind.c, multicast_map.c: in the context, with the mutex ------------------- */

/* Removes all bindings, or the addresses of a device. False: the driver refused; the rest can be
   retried. */
bool qi_cuda_multicast_unbind_all(quire_cuda_multicast *multicast);
bool qi_cuda_multicast_unmap(quire_cuda_multicast *multicast, qi_cuda_multicast_device *device);

#endif
