/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * graph.h - graphs of the fake CUDA driver, with FC_GRAPHS: what one stream captured, in its order.
 *
 *  - A node keeps the addresses, and its memory is looked up in each launch. A graph works after
 *    its addresses have got other memory. A launch while they have none loses the device.
 *  - Nodes are copies, fills, kernels and host functions. Other work in a stream that captures is a
 *    message. No second stream can join a capture.
 *  - An executable graph is a copy, and the graph may be destroyed before it. Flags are refused.
 *  - A launch begins after the work of its stream and after earlier launches of the same executable
 *    graph (cuda.h 13.0, cuGraphLaunch). Its nodes run one after the other in the context in which
 *    they were captured. A launch into a stream that captures adds its nodes to that graph.
 *  - An executable graph that is destroyed while a launch runs completes it (cuda.h 13.0,
 *    cuGraphExecDestroy).
 *
 * The lock of the driver protects all of it.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_GRAPH_H
#define QUIRE_TESTS_SUPPORT_CUDA_GRAPH_H

#include "tests/support/cuda/queue.h"

/* Of the kind FC_GRAPH or FC_EXEC. */
typedef struct fc_graph {
    fc_object object;
    fc_work *nodes;
    uint64_t end; /* of the last launch of an executable graph */
} fc_graph;

/* Adds a copy of the work to what the stream captures; without FC_GRAPHS it does nothing. */
void fc_graph_add(const fc_context *context, fc_stream *stream, const fc_work *work);

/* The graph that the stream has captured; NULL if the capture is invalid, and without FC_GRAPHS. */
qi_cu_graph fc_graph_take(fc_stream *stream);

/* Frees a list of nodes. */
void fc_graph_drop(fc_work **nodes);

void fc_graph_end(fc_graph *graph);

#endif
