/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * capture.h - streams of the fake CUDA driver that capture a graph, as far as code that captures
 * nothing itself can notice: which calls are refused, and which of them invalidate the capture.
 * Work that is submitted to such a stream is a message and never runs, and a capture ends with
 * NULL; with FC_GRAPHS it ends with a graph of the work (graph.h).
 *
 * The rules, and where they are from:
 *
 *  - Unsafe calls are governed by the modes of captures and of the calling thread. A thread may not
 *    make one while it has a capture that is not relaxed itself. Nor may it, in the global mode,
 *    while another thread has a global capture. In the relaxed mode it may make all. A refused call
 *    is STREAM_CAPTURE_UNSUPPORTED and invalidates the captures that forbid it (cuda.h 13.0,
 *    cuThreadExchangeStreamCaptureMode; CUDA programming guide, "Invalidation").
 *  - Waiting for a stream that captures, or asking whether its work is done, is
 *    STREAM_CAPTURE_UNSUPPORTED, whatever the modes, and invalidates its capture. The same holds
 *    for a context with such a stream, from any thread (guide, "Prohibited and Unhandled
 *    Operations"; seen on GPUs with all modes, and only for captures of the same device:
 *    NVIDIA/TensorRT #2888, measurements in ROCm/rocm-systems #4508).
 *  - While a blocking stream captures, every use of the legacy default stream of its context is
 *    STREAM_CAPTURE_IMPLICIT and invalidates the capture, synchronous copies and fills included
 *    (the same section). cuStreamIsCapturing of the legacy stream returns the error too, but
 *    invalidates nothing (cuda.h).
 *  - No capture begins in the legacy default stream. A thread's own default stream is a blocking
 *    stream and may capture (cuda.h, cuStreamBeginCapture).
 *
 * Which calls are unsafe is not listed anywhere. Seen on an H100 with CUDA 13.0
 * (tests/gpu/captures.c): allocating and freeing device and page-locked memory, trimming a pool,
 * queries and waits, and cuMemAllocAsync and cuMemFreeAsync in another stream; but not synchronous
 * copies and fills. Arrays count as allocations here. FC_UNSAFE_CALLS adds those that other drivers
 * may refuse (creating streams: NVIDIA/warp #1410), and those of which nothing is known.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H
#define QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H

#include "tests/support/cuda/queue.h"

/* Returns false, and invalidates captures, if the call is unsafe and the calling thread may not
   make it now. */
bool fc_capture_permits(fc_call call);

/* The same for a call that is unsafe. */
bool fc_capture_permits_unsafe(void);

/* Returns true if the stream captures. */
bool fc_is_capturing(fc_call call, const fc_context *context, qi_cu_stream stream);

/* The result of submitting to a stream; 0 permits it. *is_captured: the work is part of a graph. */
qi_cu_result fc_capture_check(fc_call call, const fc_context *context, qi_cu_stream stream,
                              bool *is_captured);

/* The result of waiting for the work of a stream or context, or of asking for it. */
qi_cu_result fc_capture_check_wait(fc_call call, const fc_context *context, qi_cu_stream stream);
qi_cu_result fc_capture_check_context(const fc_context *context);

#endif
