/*
 * capture.h - streams of the fake CUDA driver that capture a graph, as far as somebody who captures
 * nothing himself can notice: what must not be called, and what breaks the capture. There are no
 * graphs: work that is submitted to such a stream is a message, and a capture ends with NULL.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H
#define QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H

#include "tests/support/cuda/queue.h"

/*
 * Whether the calling thread may make a call that does not go well with captures: not while it has
 * one that is not relaxed, nor while another has a global one, unless its own mode
 * (cuThreadExchangeStreamCaptureMode) says so. If it may not, these captures are broken.
 */
bool fc_capture_permits(void);

/* What submitting to a stream answers while it captures, or, for the default stream, while one that
   waits for it does; 0: go on. */
qi_cu_result fc_capture_check(fc_call call, const fc_context *context, qi_cu_stream stream);

#endif
