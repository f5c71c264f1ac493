/*
 * capture.h - streams of the fake CUDA driver that capture a graph, as far as code that captures
 * nothing itself can notice: which calls are forbidden, and which invalidate the capture. There are
 * no graphs: work that is submitted to such a stream is a message, and a capture ends with NULL.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H
#define QUIRE_TESTS_SUPPORT_CUDA_CAPTURE_H

#include "tests/support/cuda/queue.h"

/*
 * Returns true if the calling thread may make a call that is unsafe during captures. It may not
 * while it has a capture that is not relaxed, nor while another thread has a global one, unless its
 * own mode (cuThreadExchangeStreamCaptureMode) permits it. A forbidden call invalidates these
 * captures.
 */
bool fc_capture_permits(void);

/* The result of submitting to a stream while it captures, or, for the default stream, while a
   stream that waits for it captures; 0 permits the call. */
qi_cu_result fc_capture_check(fc_call call, const fc_context *context, qi_cu_stream stream);

#endif
