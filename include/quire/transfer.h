/*
 * quire/transfer.h - copies and fills: between the host and memories, within a memory, between
 * memories, devices and backends; complete on return or in the order of a stream.
 */
#ifndef QUIRE_TRANSFER_H
#define QUIRE_TRANSFER_H

#include "quire/resource.h"
#include "quire/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One end of a copy: a part of an allocation, or of host memory. */
typedef struct quire_copy_end {
    quire_memory *memory; /* NULL: host memory */
    quire_allocation allocation;
    uint64_t offset; /* bytes, in the allocation or behind the host pointer */
    /* bytes from row to row, at least a row's; 0: rows follow each other without a gap */
    uint64_t row_pitch;
    /* bytes from slice to slice, at least those from a slice's first to its last; 0: as many row
       pitches as a slice has rows */
    uint64_t slice_pitch;
} quire_copy_end;

/*
 * Told after each part of a large copy: bytes done of all, at last all of them, when the answer is
 * not asked for. False ends the copy. It is called by the thread that copies, without a lock; it
 * may call quire.
 */
typedef struct quire_progress {
    bool (*goes_on)(void *user, uint64_t done, uint64_t total);
    void *user;
    uint64_t step; /* bytes between two calls; 0: 16 MiB */
} quire_progress;

typedef struct quire_copy_options {
    quire_copy_end to;
    quire_copy_end from;
    void *host_to;         /* where to.memory is NULL */
    const void *host_from; /* where from.memory is NULL */
    uint64_t size;         /* bytes of a row; 0: nothing is copied */
    uint64_t rows;         /* 0: 1 */
    uint64_t slices;       /* of so many rows; 0: 1 */
    quire_progress progress;
    uint64_t unused[4]; /* must be zero */
} quire_copy_options;

/*
 * How bytes get from one memory to another. With more than one way the best is told: a call that a
 * backend answers with UNSUPPORTED when it comes to it (between two devices that are no peers, on a
 * device without a queue) is done without, where there is another way.
 */
typedef enum quire_copy_path {
    QUIRE_COPY_DIRECT = 0, /* the device, or the host through a mapping, copies once */
    QUIRE_COPY_STAGED,     /* the backend copies through memory of its own that both reach */
    QUIRE_COPY_HOST,       /* read into host memory by one call, written by another */
    QUIRE_COPY_UNSUPPORTED
} quire_copy_path;

/* Which way a copy between two memories takes, NULL being host memory. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy_get_path(quire_memory *to, quire_memory *from,
                                                          quire_copy_path *path);

/*
 * Copies, complete on return. Neither end may be freed meanwhile (BUSY). What the host wrote
 * through a mapping of the source was flushed, and who reads the target through one invalidates it
 * first, as with work of a device; the devices use neither end. The ends overlap when a byte of a
 * row is of both, also through a mapping that is an end as host memory; rows of the one in the
 * gaps of the other do not. Every check is made before the first byte is copied. Errors:
 * INVALID_ARGUMENT (both ends are host memory, or one is both kinds; null; a pitch below its row
 * or slice; an unknown field), OUT_OF_RANGE, OVERLAP, UNSUPPORTED (no way), OUT_OF_HOST_MEMORY (1
 * MiB at most, where bytes go through host memory), BUSY (`goes_on` ended it), and those of
 * handles and backends. When the backend fails or `goes_on` ends it part of the bytes may have
 * been copied.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy(const quire_copy_options *options);

/*
 * Copies in the order of a stream, which is of one of the ends' devices; *done, which may be NULL,
 * is a point behind the copy, until which both ends and host memory stay as they are. Where the
 * backend cannot do this copy on a stream it is done on return, after the stream's work so far
 * ({0} is the point). Errors as quire_copy; FOREIGN_HANDLE (another device's stream),
 * INVALID_ARGUMENT (a held stream, or a progress callback). Where only the point cannot be had the
 * copy is submitted all the same, and *done is {0}: it ends in the stream's order.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy_on(quire_stream *stream,
                                                    const quire_copy_options *options,
                                                    quire_point *done);

/* Sets bytes (size 0: to the end) to one value. Errors as quire_write; of the second as
   quire_copy_on. */
QUIRE_API QUIRE_MUST_USE quire_result quire_fill(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, uint64_t size, uint8_t value);
QUIRE_API QUIRE_MUST_USE quire_result quire_fill_on(quire_stream *stream, quire_memory *memory,
                                                    quire_allocation allocation, uint64_t offset,
                                                    uint64_t size, uint8_t value,
                                                    quire_point *done);

/* ---- texels of images ----------------------------------------------------------------------- */

/* A box of texels of an image. */
typedef struct quire_image_region {
    uint32_t x, y, z;              /* texels, of the first one */
    uint32_t width, height, depth; /* texels; 0: to the image's end */
} quire_image_region;

/* Where its rows lie, for the fields of quire_copy_options that have the same names. */
typedef struct quire_image_rows {
    quire_copy_end end;
    uint64_t size;
    uint64_t rows;
    uint64_t slices;
    uint64_t unused[4];
} quire_image_rows;

/*
 * Tells where the rows of a region lie (NULL: of all texels), so that quire_copy and quire_copy_on
 * reach them, from image to image too. Errors: INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the
 * texels lie in the backend's own order: quire_image_info.row_pitch is 0), and those of handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_rows(quire_memory *memory, quire_image image,
                                                           const quire_image_region *region,
                                                           quire_image_rows *rows);

/*
 * Copies a region from and to host memory, whose rows and slices lie so many bytes apart (0:
 * without a gap); complete on return. A linear image of the Vulkan backend is in the layout
 * GENERAL or PREINITIALIZED. Errors as quire_image_get_rows and quire_copy.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_write(quire_memory *memory, quire_image image,
                                                        const quire_image_region *region,
                                                        const void *data, uint64_t row_pitch,
                                                        uint64_t slice_pitch);
QUIRE_API QUIRE_MUST_USE quire_result quire_image_read(quire_memory *memory, quire_image image,
                                                       const quire_image_region *region, void *data,
                                                       uint64_t row_pitch, uint64_t slice_pitch);

#ifdef __cplusplus
}
#endif

#endif
