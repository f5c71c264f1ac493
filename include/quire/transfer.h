/*
 * quire/transfer.h - copies and fills: between the host and memories, within a memory, and between
 * memories, devices and backends. They are complete on return, or run in the order of a stream.
 *
 * Thread-safety: any thread may call any function on live memories and streams. An allocation that
 * a running call uses cannot be freed (BUSY).
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
    quire_memory *memory;        /* NULL: host memory */
    quire_allocation allocation; /* {0} for host memory */
    uint64_t offset;             /* bytes from the start of the allocation, or from the pointer */
    /* Bytes from row to row, at least the size of a row; 0: no gap between rows. */
    uint64_t row_pitch;
    /* Bytes from slice to slice, at least the extent of a slice from its first byte to its last; 0:
       row pitch times rows. */
    uint64_t slice_pitch;
} quire_copy_end;

/*
 * Progress of a large copy. quire calls `goes_on` after each part with the bytes done and the
 * total. The last call, with done equal to total, ignores the return value. Otherwise returning
 * false stops the copy. The thread that copies makes the call, without holding a lock; it may call
 * quire.
 */
typedef struct quire_progress {
    bool (*goes_on)(void *user, uint64_t done, uint64_t total); /* NULL: no calls */
    void *user;
    uint64_t step; /* bytes between two calls; 0: 16 MiB */
} quire_progress;

typedef struct quire_copy_options {
    quire_copy_end to;
    quire_copy_end from;
    void *host_to;         /* target if to.memory is NULL; otherwise NULL */
    const void *host_from; /* source if from.memory is NULL; otherwise NULL */
    uint64_t size;         /* bytes of a row; 0: nothing is copied */
    uint64_t rows;         /* rows of a slice; 0: 1 */
    uint64_t slices;       /* 0: 1 */
    quire_progress progress;
    uint64_t unused[4]; /* must be zero */
} quire_copy_options;

/*
 * How bytes get from one memory to another. If several ways exist, quire uses the best. If a
 * backend answers UNSUPPORTED at the time of the copy (two devices that are not peers, a device
 * without a queue), quire uses the next way, if one exists.
 */
typedef enum quire_copy_path {
    QUIRE_COPY_DIRECT = 0, /* one copy, by the device or by the host through a mapping */
    QUIRE_COPY_STAGED,     /* the backend copies through its own memory, which both ends reach */
    QUIRE_COPY_HOST,       /* one call reads into host memory, another writes from it */
    QUIRE_COPY_UNSUPPORTED
} quire_copy_path;

/*
 * Writes the best path of a copy between two memories. NULL means host memory. Errors:
 * INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy_get_path(quire_memory *to, quire_memory *from,
                                                          quire_copy_path *path);

/*
 * Copies rows of bytes. The copy is complete on return. The caller ensures these conditions:
 *  - the devices use neither end during the call;
 *  - what the host wrote through a mapping of the source is flushed, and a host that reads the
 *    target through a mapping invalidates it first, as for work of a device.
 *
 * The ends overlap if a row of one and a row of the other share a byte, also through a mapping that
 * is given as host memory. Rows of one end may lie in gaps between rows of the other. All checks
 * are made before the first byte is copied. If the backend fails or `goes_on` stops the copy, part
 * of the bytes may have been copied.
 * Errors: INVALID_ARGUMENT (both ends are host memory; one end is host memory and an allocation; a
 * null pointer; a pitch below its row or slice; an unknown field), OUT_OF_RANGE, OVERLAP,
 * UNSUPPORTED (no path), OUT_OF_HOST_MEMORY (bytes that go through host memory need at most 1 MiB),
 * BUSY (`goes_on` stopped it), those of handles, and errors of the backends.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy(const quire_copy_options *options);

/*
 * Copies in the order of a stream, which must be of the device of one of the ends. Writes a point
 * after the copy to *done, which may be NULL. The allocations of both ends, and host memory that is
 * an end, must stay valid and unchanged until that point. If the backend cannot run this copy on a
 * stream, the call waits for the stream's work so far and copies on return; *done is {0} then.
 * Errors as quire_copy; FOREIGN_HANDLE (the stream is of another device), INVALID_ARGUMENT (a held
 * stream, or a progress callback). If only the creation of the point fails, the call returns that
 * error with *done {0}, although the copy is submitted and completes in the order of the stream.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy_on(quire_stream *stream,
                                                    const quire_copy_options *options,
                                                    quire_point *done);

/*
 * Sets `size` bytes from `offset` on (size 0: to the end) to one value: complete on return, or in
 * the order of a stream with *done as in quire_copy_on. Errors as quire_write, of quire_fill_on
 * also as quire_copy_on.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_fill(quire_memory *memory, quire_allocation allocation,
                                                 uint64_t offset, uint64_t size, uint8_t value);
QUIRE_API QUIRE_MUST_USE quire_result quire_fill_on(quire_stream *stream, quire_memory *memory,
                                                    quire_allocation allocation, uint64_t offset,
                                                    uint64_t size, uint8_t value,
                                                    quire_point *done);

/* ---- texels of images ----------------------------------------------------------------------- */

/* A box of texels of an image. */
typedef struct quire_image_region {
    uint32_t x, y, z;              /* first texel */
    uint32_t width, height, depth; /* texels; 0: to the end of the image */
} quire_image_region;

/* The rows of a region, for the fields of quire_copy_options with the same names. */
typedef struct quire_image_rows {
    quire_copy_end end; /* `to` or `from` of the copy */
    uint64_t size;
    uint64_t rows;
    uint64_t slices;
    uint64_t unused[4];
} quire_image_rows;

/*
 * Writes where the rows of a region lie (NULL: all texels), for quire_copy and quire_copy_on, which
 * also copy from image to image. Errors: INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the texels
 * are in the backend's own order: quire_image_info.row_pitch is 0), and those of handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_rows(quire_memory *memory, quire_image image,
                                                           const quire_image_region *region,
                                                           quire_image_rows *rows);

/*
 * Copies the texels of a region (NULL: all) from host memory to the image (write) or back (read).
 * The pitches are those of the host memory, in bytes; 0: no gap. The copy is complete on return. A
 * linear image of the Vulkan backend must be in layout GENERAL or PREINITIALIZED. Errors as
 * quire_image_get_rows and quire_copy.
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
