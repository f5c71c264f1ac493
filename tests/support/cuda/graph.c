/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * graph.c - see graph.h.
 */
#include "tests/support/cuda/graph.h"

#include <stdlib.h>

#include "tests/support/cuda/capture.h"

/* ---- nodes ---------------------------------------------------------------------------------- */

/* Allocations and frees would need graphs that own memory. */
static bool can_be_node(fc_call call)
{
    switch ((int)call) {
    case FC_CALL_MemAllocAsync:
    case FC_CALL_MemAllocFromPoolAsync:
    case FC_CALL_MemFreeAsync:
    case FC_CALL_MemMapArrayAsync:
        return false;
    default:
        return true;
    }
}

static void append(fc_work **nodes, const fc_work *work)
{
    fc_work *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = *work;
    made->next = NULL;
    while (*nodes)
        nodes = &(*nodes)->next;
    *nodes = made;
}

void fc_graph_add(const fc_context *context, fc_stream *stream, const fc_work *work)
{
    if (!(fc.options.flags & FC_GRAPHS))
        return;
    if (!can_be_node(work->call)) {
        fc_say("fc-capture", work->call, "graphs of this driver have no such nodes");
        return;
    }
    fc_work node = *work;
    node.staged = NULL;
    if (!node.context) { /* else it comes from a graph */
        node.context = context->object.handle;
        node.device = context->device;
    }
    append(&stream->nodes, &node);
}

void fc_graph_drop(fc_work **nodes)
{
    while (*nodes) {
        fc_work *next = (*nodes)->next;
        free(*nodes);
        *nodes = next;
    }
}

/* ---- graphs --------------------------------------------------------------------------------- */

qi_cu_graph fc_graph_take(fc_stream *stream)
{
    if (stream->is_broken || !(fc.options.flags & FC_GRAPHS)) {
        fc_graph_drop(&stream->nodes);
        return NULL;
    }
    fc_graph *graph = fc_object_new(FC_GRAPH, sizeof *graph);
    graph->nodes = stream->nodes;
    stream->nodes = NULL;
    return FC_HANDLE(qi_cu_graph, &graph->object);
}

void fc_graph_end(fc_graph *graph)
{
    fc_graph_drop(&graph->nodes);
    fc_object_end(&graph->object);
}

static qi_cu_result destroy(fc_call call, fc_kind kind, uint64_t handle)
{
    qi_cu_result result = fc_enter(call);
    fc_graph *graph = result ? NULL : fc_object_find(call, kind, handle);
    FC_REFUSE_IF(!graph, INVALID_VALUE);
    if (!result)
        fc_graph_end(graph);
    return fc_leave(result);
}

qi_cu_result fc_GraphDestroy(qi_cu_graph graph)
{
    return destroy(FC_CALL_GraphDestroy, FC_GRAPH, FC_NUMBER(graph));
}

qi_cu_result fc_GraphExecDestroy(qi_cu_exec exec)
{
    return destroy(FC_CALL_GraphExecDestroy, FC_EXEC, FC_NUMBER(exec));
}

qi_cu_result fc_GraphInstantiateWithFlags(qi_cu_exec *out, qi_cu_graph handle,
                                          unsigned long long flags)
{
    const fc_call call = FC_CALL_GraphInstantiateWithFlags;
    qi_cu_result result = fc_enter(call);
    const fc_graph *graph = result ? NULL : fc_object_find(call, FC_GRAPH, FC_NUMBER(handle));
    FC_REFUSE_IF(!out || !graph || flags, INVALID_VALUE);
    if (!result) {
        fc_graph *exec = fc_object_new(FC_EXEC, sizeof *exec);
        for (const fc_work *node = graph->nodes; node; node = node->next)
            append(&exec->nodes, node);
        *out = FC_HANDLE(qi_cu_exec, &exec->object);
    }
    return fc_leave(result);
}

/* ---- launches ------------------------------------------------------------------------------- */

static qi_cu_result launch(fc_graph *exec, fc_context *context, qi_cu_stream stream, uint64_t *line)
{
    qi_cu_result result = 0;
    const bool is_captured = fc_is_capturing(FC_CALL_GraphLaunch, context, stream);
    if (!is_captured && *line < exec->end)
        *line = exec->end;
    for (const fc_work *node = exec->nodes; node && !result; node = node->next)
        result = fc_queue(context, stream, node);
    if (!result && !is_captured)
        exec->end = *line;
    return result;
}

qi_cu_result fc_GraphLaunch(qi_cu_exec handle, qi_cu_stream stream)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_GraphLaunch, &result);
    fc_graph *exec =
        result ? NULL : fc_object_find(FC_CALL_GraphLaunch, FC_EXEC, FC_NUMBER(handle));
    uint64_t *line = exec ? fc_line_of(FC_CALL_GraphLaunch, context, stream) : NULL;
    FC_REFUSE_IF(!line, INVALID_VALUE);
    if (!result)
        result = launch(exec, context, stream, line);
    return fc_leave(result);
}
