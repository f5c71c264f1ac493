/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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
    /* Bytes of a row. 0: all bytes from the offsets to the end of the shorter allocation, without
       rows, slices and pitches. Do not call quire_copy for 0 bytes that a computation gave. */
    uint64_t size;
    uint64_t rows;   /* rows of a slice; 0: 1 */
    uint64_t slices; /* 0: 1 */
    /*
     * Copy in the order of this stream, which must be of the device of one of the ends. NULL: the
     * copy is complete on return.
     */
    quire_stream *stream;
    quire_progress progress;
    uint64_t unused[4]; /* must be zero */
} quire_copy_options;

typedef struct quire_fill_options {
    uint64_t offset; /* bytes from the start of the allocation */
    uint64_t size;   /* bytes; 0: to the end */
    uint8_t value;   /* of every byte */
    /* Fill in the order of this stream, of the memory's device. NULL: complete on return. */
    quire_stream *stream;
    uint64_t unused[4]; /* must be zero */
} quire_fill_options;

/*
 * Copies rows of bytes. Without a stream the copy is complete on return, and *done is {0}. The
 * caller ensures these conditions:
 *  - the devices use neither end during the copy, except work that the stream orders before it;
 *  - what the host wrote through a mapping of the source is flushed, and a host that reads the
 *    target through a mapping invalidates it first, as for work of a device.
 *
 * With a stream the call writes a point after the copy to *done. The bytes of both ends must stay
 * unchanged until that point, and host memory that is an end must stay valid. An allocation at an
 * end may be freed at once: the call records the use (as quire_record_use), and the free waits for
 * the copy. If the backend cannot run this copy on a stream, the call waits for the stream's work
 * so far and copies on return; *done is {0} then. `done` may be NULL.
 *
 * Costs on Vulkan, of memory that is not host-visible and of every copy on a stream: from page to
 * page one submission on a stream, otherwise one for up to 256 rows and a wait for the last one.
 * Without a stream a copy from or to host memory costs what quire_write or quire_read of its bytes
 * costs. On a stream, bytes of the host go through staging memory that the stream creates for its
 * first such copy (quire_vulkan_settings.staging_size bytes): the call reads them, submits once for
 * each half that they fill, and waits only while earlier copies of the stream occupy that memory. A
 * copy to host memory on a Vulkan stream waits and is complete on return.
 *
 * The ends overlap if a row of one and a row of the other share a byte, also through a mapping that
 * is given as host memory. Rows of one end may lie in gaps between rows of the other. All checks
 * are made before the first byte is copied. If the backend fails or `goes_on` stops the copy, part
 * of the bytes may have been copied.
 * Errors: INVALID_ARGUMENT (both ends are host memory; one end is host memory and an allocation; a
 * null pointer; a pitch below its row or slice; rows without a size; an unknown field; with a
 * stream: a capture stream, or a progress callback), OUT_OF_RANGE, OVERLAP, UNSUPPORTED (no path),
 * OUT_OF_HOST_MEMORY (bytes that go through host memory need at most 1 MiB), BUSY (`goes_on`
 * stopped it), FOREIGN_HANDLE (the stream is of another device), those of handles, and errors of
 * the backends. If only the creation of the point fails, the call returns that error with *done
 * {0}, although the copy is submitted and completes in the order of the stream.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_copy(const quire_copy_options *options,
                                                 quire_point *done);

/*
 * Sets bytes of an allocation to one value. `options` of {0} fills all of it with zeros. `done` and
 * the order as in quire_copy. Without a stream a fill is complete on return: a memset on
 * host-visible memory, otherwise on Vulkan a submission and a wait, and up to two more for bytes
 * before the first and after the last whole word of 4 bytes. On a Vulkan stream a fill of whole
 * words is one submission; other fills wait and are complete on return.
 * Errors as quire_write; with a stream also INVALID_ARGUMENT (a capture stream) and FOREIGN_HANDLE
 * (the stream is of another device). A failed point as in quire_copy.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_fill(quire_memory *memory, quire_allocation allocation,
                                                 const quire_fill_options *options,
                                                 quire_point *done);

/* ---- many at once ---------------------------------------------------------------------------- */

/* Bytes of host memory to write to an allocation. */
typedef struct quire_write_item {
    quire_allocation allocation;
    uint64_t offset;  /* bytes from the start of the allocation */
    const void *data; /* NULL only with size 0 */
    uint64_t size;    /* bytes; 0: writes nothing, the handle and the offset are checked */
} quire_write_item;

/* Bytes of an allocation to read into host memory. */
typedef struct quire_read_item {
    quire_allocation allocation;
    uint64_t offset;
    void *data;
    uint64_t size;
} quire_read_item;

/*
 * Do the work of many quire_write or quire_read calls on allocations of one memory. All items are
 * checked before the first byte is copied. A count of 0 succeeds.
 *
 * The items are copied in the order of the list. Where the targets of two items share bytes, those
 * of the later item remain. The data of a write must not lie in the allocations of the batch.
 *
 * Without a stream a batch is complete on return. On host-visible memory it costs a memcpy for each
 * item, and one flush or invalidation for up to 64 ranges if the kind is not coherent. On other
 * memory a Vulkan device makes one submission for each half of the staging ring that the items
 * fill (quire_vulkan_settings.staging_size), or for 4096 items, and the call waits for the last one
 * only; other backends copy item by item.
 *
 * With a stream a write batch runs in its order, and *done receives a point after it, as in
 * quire_copy. The data must stay valid and unchanged until that point; the allocations may be freed
 * at once. If the backend cannot write on a stream, the call waits for the stream's work so far and
 * writes on return; *done is {0} then. `done` may be NULL.
 *
 * If the backend fails, some items may have been copied.
 * Errors: those of handles, INVALID_ARGUMENT (items is NULL with a count above 0; data is NULL; a
 * capture stream), OUT_OF_RANGE, BUSY (an allocation is in use too often; items one after the other
 * that name the same allocation count once), FOREIGN_HANDLE (the stream is of another device),
 * UNSUPPORTED (the backend has no copy), and errors of the backend. A failed point as in
 * quire_copy.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_write_batch(quire_memory *memory,
                                                        const quire_write_item *items,
                                                        uint64_t count, quire_stream *stream,
                                                        quire_point *done);
QUIRE_API QUIRE_MUST_USE quire_result quire_read_batch(quire_memory *memory,
                                                       const quire_read_item *items,
                                                       uint64_t count);

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
 * Writes where the rows of a region lie (NULL: all texels), for quire_copy, which also copies from
 * image to image. Errors: INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the texels
 * are in the backend's own order: quire_image_info.row_pitch is 0), and those of handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_image_get_rows(const quire_memory *memory,
                                                           quire_image image,
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

/* ---- copy paths ----------------------------------------------------------------------------- */

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
QUIRE_API QUIRE_MUST_USE quire_result quire_copy_get_path(const quire_memory *to,
                                                          const quire_memory *from,
                                                          quire_copy_path *path);

#ifdef __cplusplus
}
#endif

#endif
