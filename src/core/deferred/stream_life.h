/*
 * stream_life.h - creating and destroying streams. No function requires a lock.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_STREAM_LIFE_H
#define QUIRE_SRC_CORE_DEFERRED_STREAM_LIFE_H

#include "src/core/deferred/stream.h"

/*
 * Creates a stream of the backend (`description` NULL) or wraps one that the application owns, or
 * creates a capture stream. `name` may be NULL. Fails with NOT_PERMITTED, UNSUPPORTED,
 * INVALID_ARGUMENT (name too long), OUT_OF_HOST_MEMORY, and as the backend does.
 */
QUIRE_MUST_USE quire_result qi_stream_create(quire_device *device, const void *description,
                                             const char *name, bool capture, quire_stream **out);

/*
 * Releases the deferred frees whose points pass within a second, then destroys the stream. Fails
 * with BUSY, and changes nothing, if deferred frees or recorded uses remain. Otherwise *destroyed
 * becomes NULL.
 */
QUIRE_MUST_USE quire_result qi_stream_destroy(quire_stream **destroyed);

#endif
