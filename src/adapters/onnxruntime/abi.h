/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * abi.h - what the adapter uses of the C interface of ONNX Runtime: facts of its ABI, which only
 * grows (onnxruntime_c_api.h). tests/plain/onnxruntime_abi.c compares them with the header if it is
 * installed.
 */
#ifndef QUIRE_SRC_ADAPTERS_ONNXRUNTIME_ABI_H
#define QUIRE_SRC_ADAPTERS_ONNXRUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct ort_memory_info ort_memory_info;
typedef struct ort_status ort_status; /* NULL: success */
typedef struct ort_pairs ort_pairs;   /* OrtKeyValuePairs */

/* The API version of release 1.N is N. */
enum {
    ORT_API_RESERVE = 18, /* the first version with this member */
    ORT_API_STATS = 23,
    ORT_API_SHRINK = 25
};

typedef struct OrtAllocator {
    uint32_t version;
    void *(*alloc)(struct OrtAllocator *self, size_t size);
    void (*free)(struct OrtAllocator *self, void *pointer);
    const ort_memory_info *(*info)(const struct OrtAllocator *self);
    void *(*reserve)(struct OrtAllocator *self, size_t size);
    ort_status *(*get_stats)(const struct OrtAllocator *self, ort_pairs **pairs);
    void *(*alloc_on_stream)(struct OrtAllocator *self, size_t size, void *stream);
    ort_status *(*shrink)(struct OrtAllocator *self);
} ort_allocator;

typedef void (*ort_function)(void);

/* OrtApi is a table of functions, of which each release appends some. */
typedef struct OrtApiBase {
    const ort_function *(*get_api)(uint32_t version); /* NULL: the runtime is older */
    const char *(*get_version_string)(void);          /* such as "1.21.0" */
} ort_api_base;

/* X(name, number in OrtApi, result, parameters) */
#define ORT_FUNCTIONS(X)                                                                           \
    X(create_status, 0, ort_status *, (int code, const char *text))                                \
    X(get_error_message, 2, const char *, (const ort_status *))                                    \
    X(create_cpu_memory_info, 69, ort_status *, (int type, int memory, ort_memory_info **))        \
    X(release_status, 93, void, (ort_status *))                                                    \
    X(release_memory_info, 94, void, (ort_memory_info *))

/* Functions of API version 22 and later. */
#define ORT_PAIR_FUNCTIONS(X)                                                                      \
    X(create_pairs, 295, void, (ort_pairs **))                                                     \
    X(add_pair, 296, void, (ort_pairs *, const char *key, const char *value))

enum {
    ORT_CODE_FAIL = 1,        /* ORT_FAIL of OrtErrorCode */
    ORT_DEVICE_ALLOCATOR = 0, /* OrtDeviceAllocator of OrtAllocatorType */
    ORT_MEMORY_DEFAULT = 0    /* OrtMemTypeDefault of OrtMemType */
};

#endif
