/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken.h - a subject that is broken on purpose: another subject with one behaviour spoiled by a
 * switch. The suite must fail with each of them and pass with the first ones, which spoil nothing
 * (suite.c).
 */
#ifndef QUIRE_TESTS_CONTRACT_BROKEN_H
#define QUIRE_TESTS_CONTRACT_BROKEN_H

#include "tests/contract/contract.h"

/* X(name, subject that is spoiled, description) */
#define BROKEN_THINGS(X)                                                                           \
    X(NOTHING, host, "nothing on the host backend")                                                \
    X(NOTHING_STRICT, strict, "nothing behind a cache")                                            \
    X(NOTHING_FAKE, fake, "nothing on the fake backend")                                           \
    X(HEAP_SIZE, host, "each device reports another heap size")                                    \
    X(FEWER_KINDS, host, "the second device has one kind less")                                    \
    X(EXPORTABLE, host, "each device reports export differently")                                  \
    X(ATOM, host, "an atom that is not a power of two")                                            \
    X(NULL_MAP, host, "a mapping is NULL")                                                         \
    X(SHORT_PAGE, host, "pages are smaller than requested")                                        \
    X(ODD_ADDRESS, host, "pages at odd addresses")                                                 \
    X(LOW_ALIGNMENT, host, "pages are less aligned than requested")                                \
    X(SAME_PAGE, host, "two pages share their memory")                                             \
    X(SAME_HIDDEN_PAGE, host, "two pages without an address share their memory")                   \
    X(KEPT_PAGE, small, "pages are not destroyed")                                                 \
    X(KEPT_LARGE_PAGE, small, "the heap keeps a part of each page")                                \
    X(NO_EXPORT, host, "export is reported and refused")                                           \
    X(LARGER_HEAP, host, "a page beyond the heap is created")                                      \
    X(WRONG_CODE, small, "a full heap answers BACKEND_FAILURE")                                    \
    X(NO_REASON, small, "a full heap gives no reason")                                             \
    X(SHIFTED_MAP, host, "a mapping begins 64 bytes after its start")                              \
    X(OTHER_MAP, host, "a mapping is of other memory")                                             \
    X(LOST_FLUSH, strict, "a flush does nothing")                                                  \
    X(LOST_INVALIDATE, strict, "an invalidate does nothing")                                       \
    X(SHORT_FLUSH, strict, "a flush leaves the last atom out")                                     \
    X(LATE_INVALIDATE, strict, "an invalidate leaves the first atom out")                          \
    X(WIDE_FLUSH, strict, "a flush writes one atom too many")                                      \
    X(FLUSH_REFUSED, strict, "a flush of the page's end is refused")                               \
    X(COPY_TO_LATE, host, "copies to a page land a byte late")                                     \
    X(COPY_TO_SHORT, host, "copies to a page leave the last byte out")                             \
    X(COPY_TO_LONG, host, "copies to a page write a byte too many")                                \
    X(COPY_FROM_EARLY, host, "copies from a page begin a byte early")                              \
    X(COPY_FROM_SHORT, host, "copies from a page leave the last byte out")                         \
    X(COPY_FROM_LONG, host, "copies from a page read a byte too many")                             \
    X(NO_LARGE_COPY, host, "copies above 4 KiB do nothing")                                        \
    X(COPY_UNSUPPORTED, host, "copies are announced and UNSUPPORTED")                              \
    X(PAGES_SHORT, host, "copies between pages leave the last byte of each row out")               \
    X(PAGES_LONG, host, "copies between pages overwrite a byte of the gap")                        \
    X(PAGES_PITCH, host, "copies between pages use the target's pitch for the source")             \
    X(PAGES_ONE_SLICE, host, "copies between pages leave all slices but the first out")            \
    X(PAGES_LOST, host, "copies between pages do nothing")                                         \
    X(FILL_ZERO, host, "fills write zeros for every value")                                        \
    X(FILL_LONG, host, "fills write a byte too many")                                              \
    X(FILL_SHORT, host, "fills leave the first byte out")                                          \
    X(BACK_LOST, host, "a page that gets memory loses its first byte")                             \
    X(BACK_MOVED, host, "a page that gets memory has its bytes a byte later")                      \
    X(BACK_NOTHING, host, "no span gets memory")                                                   \
    X(BACK_ONE, host, "of several spans the first gets memory")                                    \
    X(UNBACK_NOTHING, host, "no span loses its memory")                                            \
    X(UNBACK_LOST, host, "a page of which a span loses its memory loses its first byte")           \
    X(BACK_CODE, small, "a full heap answers BACKEND_FAILURE when a page gets memory")             \
    X(STREAM_KEPT, host, "streams are not destroyed")                                              \
    X(MARK_FALLS, host, "a mark is lower than the last one")                                       \
    X(MARK_ZERO, host, "a mark is 0")                                                              \
    X(MARK_EARLY, host, "a mark omits the last piece of work")                                     \
    X(PASSED_EARLY, host, "values that were not marked have passed")                               \
    X(PASSED_NEVER, host, "no value ever passes")                                                  \
    X(AWAIT_LIES, host, "a wait for a point returns at once")                                      \
    X(AWAIT_GIVES_UP, host, "a wait without a timeout ends at once")                               \
    X(AWAIT_AHEAD, host, "a wait reports that an unmarked value has passed")                       \
    X(ORDER_LOST, host, "streams are not ordered")                                                 \
    X(ORDER_REFUSED, host, "order is announced and refused")                                       \
    X(STREAM_COPY_LOST, host, "copies on a stream do nothing")                                     \
    X(STREAM_HOST_SHORT, host, "copies of host memory on a stream leave the last byte out")        \
    X(STREAM_ONE_ROW, host, "copies on a stream leave all rows but the first out")                 \
    X(STREAM_FILL_NOW, host, "fills on a stream run at once")                                      \
    X(STREAM_FILL_SHORT, host, "fills on a stream leave the last byte out")                        \
    X(SMALL_IMAGE, host, "images need less than their texels")                                     \
    X(GROWING_IMAGE, host, "images need more at each query")                                       \
    X(ODD_ROWS, host, "rows of images are a byte longer")                                          \
    X(NARROW_ROWS, host, "rows of images are half as long")                                        \
    X(WRAPPED_IMAGE, host, "sizes of images are counted in 32 bits")                               \
    X(IMAGE_CODE, host, "images of 8 bytes a channel are INVALID_ARGUMENT")                        \
    X(OBJECT_NEEDS, fake, "an image object needs more than reported")                              \
    X(OBJECT_KINDS, fake, "an image object allows other kinds than reported")                      \
    X(OBJECT_UNREPORTED, fake, "an image is UNSUPPORTED when queried and not when created")        \
    X(SMALL_BUFFER, fake, "a buffer object needs less than its bytes")                             \
    X(LOW_BUFFER, fake, "buffer objects are less aligned than the limits")                         \
    X(SAME_OBJECT, fake, "two objects have one handle")                                            \
    X(KEPT_OBJECT, fake, "objects are not destroyed")                                              \
    X(NO_BIND, fake, "no object can be bound")                                                     \
    X(NO_USAGE, host, "the reported budget does not count pages")                                  \
    X(NO_BUDGET, host, "the budget is never reported")                                             \
    X(KEPT_STATE, host, "the state is not ended")                                                  \
    X(PAGE_RACE, host, "one thread gets the page that another requested")                          \
    X(COPY_RACE, host, "copies of several threads go through one buffer")

typedef enum broken_thing {
#define BROKEN_ENUM(name, subject, sentence) BROKEN_##name,
    BROKEN_THINGS(BROKEN_ENUM)
#undef BROKEN_ENUM
        BROKEN_COUNT,
    BROKEN_FIRST = BROKEN_HEAP_SIZE /* the entries before it spoil nothing */
} broken_thing;

/* A subject with one spoiled behaviour, and the description of that behaviour. */
const contract_subject *broken_subject(broken_thing thing);
const char *broken_sentence(broken_thing thing);

#endif
