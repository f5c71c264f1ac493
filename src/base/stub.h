/*
 * stub.h - what the functions of a backend that was not built have in common: outputs are zeroed.
 */
#ifndef QUIRE_SRC_BASE_STUB_H
#define QUIRE_SRC_BASE_STUB_H

/* Sets an output, which may be NULL, to its zero. */
#define CLEAR(output, ...)                                                                         \
    if (output)                                                                                    \
    *(output) = __VA_ARGS__

#define UNUSED(name) (void)(name)

#endif
