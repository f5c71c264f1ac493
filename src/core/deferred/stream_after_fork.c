/*
 * stream_after_fork.c - the refusal of calls on streams that were created before a fork, in the
 * child (see memory/fork.h).
 */
#include "src/base/result.h"
#include "src/core/deferred/stream.h"

quire_result qi_stream_refuse_after_fork(const quire_stream *stream)
{
    return stream->device->is_disabled
               ? qi_refuse_disabled()
               : qi_fail_text(QUIRE_ERROR_NOT_PERMITTED,
                              "stream '%s' was made before a fork: nothing runs on it in the child",
                              stream->name);
}
