/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * leak.c - see leak.h. Also writes the report of live objects.
 */
#include "tests/support/cuda/leak.h"

#include "tests/support/cuda/array.h"
#include "tests/support/cuda/external.h"
#include "tests/support/cuda/graph.h"
#include "tests/support/cuda/pool.h"
#include "tests/support/cuda/virtual.h"

/* Destroys an object. Returns false if it is destroyed together with another object. */
static bool end(fc_object *object)
{
    switch ((int)object->kind) {
    case FC_ARRAY:
    case FC_MIPMAP:
        return fc_array_end(object);
    case FC_EXTERNAL:
        fc_external_end(object);
        return true;
    case FC_MEMORY:
        fc_memory_end((fc_memory *)object);
        return true;
    case FC_POOL:
        fc.live[FC_POOL] += ((fc_pool *)object)->is_default; /* it is not counted as a leak */
        fc_object_end(object);
        return true;
    case FC_STREAM:
        fc.live[FC_STREAM] += ((const fc_stream *)object)->owner != 0; /* likewise */
        fc_graph_drop(&((fc_stream *)object)->nodes);
        fc_object_end(object);
        return true;
    case FC_GRAPH:
    case FC_EXEC:
        fc_graph_end((fc_graph *)object);
        return true;
    default:
        fc_object_end(object);
        return true;
    }
}

/* Returns the first object of a kind in a context, or in any context; NULL if there is none. */
static fc_object *first(fc_kind kind, uint64_t context)
{
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        if (object->kind != kind)
            continue;
        uint64_t of = kind == FC_STREAM                       ? ((const fc_stream *)object)->context
                      : kind == FC_EVENT                      ? ((const fc_event *)object)->context
                      : kind == FC_EXTERNAL                   ? fc_external_context(object)
                      : kind == FC_ARRAY || kind == FC_MIPMAP ? fc_array_context(object)
                                                              : 0;
        if ((!context || of == context) && !fc_array_is_level(object))
            return object;
    }
    return NULL;
}

static uint32_t end_all(fc_kind kind, uint64_t context)
{
    uint32_t count = 0;
    for (fc_object *object = first(kind, context); object; object = first(kind, context)) {
        count += kind != FC_STREAM || !((const fc_stream *)object)->owner;
        (void)end(object);
    }
    return count;
}

void fc_leaked(void)
{
    static const fc_kind KINDS[] = {FC_ARRAY, FC_MIPMAP, FC_EXTERNAL, FC_STREAM, FC_EVENT,
                                    FC_GRAPH, FC_EXEC,   FC_POOL,     FC_CONTEXT};
    fc_work_end();
    while (fc.span_count)
        fc_span_end(fc.spans[fc.span_count - 1]);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        (void)end_all(KINDS[i], 0);
    /* multicast objects first, because they keep other objects */
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index))
        if (object->kind == FC_MEMORY && ((fc_memory *)object)->multicast) {
            fc_memory_end((fc_memory *)object);
            index = 0;
        }
    (void)end_all(FC_MEMORY, 0);
    fc_reservations_end();
    for (int i = 0; i < fc.device_count; i++)
        fc.devices[i].primary = fc.devices[i].pool = fc.devices[i].current_pool = 0;
}

static uint32_t end_spans(uint64_t context)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < fc.span_count;) {
        if (fc.spans[i]->context != context) {
            i++;
            continue;
        }
        fc_span_end(fc.spans[i]);
        count++;
    }
    return count;
}

void fc_context_leaked(const fc_context *context, fc_call call)
{
    static const fc_kind KINDS[] = {FC_ARRAY, FC_MIPMAP, FC_STREAM, FC_EVENT, FC_EXTERNAL};
    uint64_t of = context->object.handle;
    uint32_t count = end_spans(of);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        count += end_all(KINDS[i], of);
    if (count && !fc.devices[context->device].lost)
        fc_say("fc-leak", call, "the context ends with %u things alive in it", count);
}

void fc_report(FILE *file)
{
    fc_lock();
    for (uint32_t i = 0; i < FC_CALL_COUNT; i++)
        if (fc.calls[i])
            fprintf(file, "calls %s %" PRIu64 "\n", fc_call_name((fc_call)i), fc.calls[i]);
    for (int i = FC_HOST; i < fc.device_count; i++)
        fprintf(file, "peak %d %" PRIu64 "\n", i, fc_usage_at(i)->peak);
    for (uint32_t kind = 0; kind < FC_KINDS; kind++)
        if (fc.live[kind])
            fprintf(file, "live %" PRIu64 " %s\n", fc.live[kind], fc_kind_name((fc_kind)kind));
    for (uint32_t i = 0; i < fc.messages_kept; i++)
        fprintf(file, "message %s\n", fc.messages[i]);
    fc_unlock();
}
