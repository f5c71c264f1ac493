/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * more.h - functions of the CUDA driver that tests call and the backend does not, in rows like
 * those of backends/cuda/abi_functions.h.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MORE_H
#define QUIRE_TESTS_SUPPORT_CUDA_MORE_H

#include "backends/cuda/abi.h"

typedef struct qi_cu_graph_object *qi_cu_graph;
typedef struct qi_cu_exec_object *qi_cu_exec;           /* an executable graph */
typedef struct qi_cu_resources_object *qi_cu_resources; /* of a device, for a green context */

#define FAKE_CUDA_FUNCTIONS_10_1(X)                                                                \
    X(CtxCreate, _v2, 3020, OPTIONAL,                                                              \
      (qi_cu_context * context, unsigned int flags, qi_cu_device device))                          \
    X(CtxDestroy, _v2, 4000, OPTIONAL, (qi_cu_context context))                                    \
    X(CtxSetCurrent, , 4000, OPTIONAL, (qi_cu_context context))                                    \
    X(DeviceSetMemPool, , 11020, OPTIONAL, (qi_cu_device device, qi_cu_pool pool))                 \
    X(StreamBeginCapture, _v2, 10010, OPTIONAL, (qi_cu_stream stream, qi_cu_capture_mode mode))    \
    X(StreamEndCapture, , 10000, OPTIONAL, (qi_cu_stream stream, qi_cu_graph * graph))             \
    X(GraphDestroy, , 10000, OPTIONAL, (qi_cu_graph graph))                                        \
    X(GraphExecDestroy, , 10000, OPTIONAL, (qi_cu_exec exec))                                      \
    X(GraphLaunch, , 10000, OPTIONAL, (qi_cu_exec exec, qi_cu_stream stream))

#define FAKE_CUDA_FUNCTIONS_12_5(X)                                                                \
    X(GraphInstantiateWithFlags, , 11040, OPTIONAL,                                                \
      (qi_cu_exec * exec, qi_cu_graph graph, unsigned long long flags))                            \
    X(GreenCtxCreate, , 12040, OPTIONAL,                                                           \
      (qi_cu_green * green, qi_cu_resources resources, qi_cu_device device, unsigned int flags))   \
    X(GreenCtxDestroy, , 12040, OPTIONAL, (qi_cu_green green))                                     \
    X(CtxFromGreenCtx, , 12040, OPTIONAL, (qi_cu_context * context, qi_cu_green green))            \
    X(GreenCtxStreamCreate, , 12050, OPTIONAL,                                                     \
      (qi_cu_stream * stream, qi_cu_green green, unsigned int flags, int priority))

#define FAKE_CUDA_MORE_FUNCTIONS(X)                                                                \
    FAKE_CUDA_FUNCTIONS_10_1(X)                                                                    \
    FAKE_CUDA_FUNCTIONS_12_5(X)

#define FAKE_CUDA_MORE_TYPE(name, suffix, version, presence, parameters)                           \
    typedef qi_cu_result(*qi_cu_fn_##name) parameters;
FAKE_CUDA_MORE_FUNCTIONS(FAKE_CUDA_MORE_TYPE)
#undef FAKE_CUDA_MORE_TYPE

#endif
