/*
 * stub.h - for the public functions of a backend that was not built: they zero their outputs.
 */
#ifndef QUIRE_SRC_BASE_STUB_H
#define QUIRE_SRC_BASE_STUB_H

/* Zeroes an output, which may be null. */
#define CLEAR(output, ...)                                                                         \
    if (output)                                                                                    \
    *(output) = __VA_ARGS__

#define UNUSED(name) (void)(name)

#endif
