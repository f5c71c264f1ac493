/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * upload_ring.c - per-frame data in two linear spaces: a ring for a staging buffer, and scratch
 * memory that is cleared at the end of each frame.
 *
 * The spaces return offsets. The program owns the buffers that the offsets refer to and may use any
 * API. It frees uploads after the GPU has finished the frame that used them, here two frames later.
 * Scratch memory needs no frees: one clear releases all allocations of a frame.
 *
 *     cc upload_ring.c $(pkg-config --cflags --libs quire) && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>

#include <quire/space.h>

enum { FRAMES = 1000, IN_FLIGHT = 2, MAX_UPLOADS = 16 };

/* The uploads of one frame, freed after the GPU has finished the frame. */
typedef struct frame {
    quire_range uploads[MAX_UPLOADS];
    uint64_t count;
} frame;

static quire_space *make(uint64_t size)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_LINEAR, .size = size};
    if (quire_space_create(&options, &space))
        printf("no space: %s\n", quire_last_error());
    return space;
}

/* Allocates the uploads of a frame. Returns false if the ring is full. */
static bool upload(quire_space *ring, frame *f, uint64_t number)
{
    f->count = 0;
    for (uint64_t i = 0; i <= number % MAX_UPLOADS; i++) {
        quire_placement at;
        uint64_t size = 256 + number * 7919 % 4096;
        if (quire_space_allocate(ring, size, 256, number, &at))
            return false; /* a renderer would wait for the oldest frame here and retry */
        f->uploads[f->count++] = at.range; /* a renderer copies the data to buffer + at.offset */
    }
    return true;
}

/* Data of this frame. Data that outlives the frame belongs at the upper end of another space. */
static bool draw(quire_space *scratch, uint64_t number)
{
    quire_placement at;
    for (uint64_t i = 0; i < 100 + number % 50; i++)
        if (quire_space_allocate(scratch, 64 + i, 16, 0, &at))
            return false;
    return true;
}

int main(void)
{
    static frame frames[IN_FLIGHT];
    quire_space *ring = make(256 << 10), *scratch = make(64 << 10);
    bool good = ring && scratch;
    uint64_t uploads = 0;
    for (uint64_t i = 0; i < FRAMES && good; i++) {
        frame *f = &frames[i % IN_FLIGHT]; /* a renderer waits for its fence first */
        good = !quire_space_free_batch(ring, f->uploads, f->count) && upload(ring, f, i) &&
               draw(scratch, i) && !quire_space_clear(scratch);
        uploads += f->count;
    }
    quire_space_stats stats = {0};
    if (!good || quire_space_get_stats(ring, &stats))
        printf("stopped: %s\n", quire_last_error());
    else
        printf("%" PRIu64 " uploads in %d frames went through 256 KiB; the records take %" PRIu64
               " bytes\n",
               uploads, FRAMES, stats.metadata_bytes);
    quire_space_destroy(&ring);
    quire_space_destroy(&scratch);
    return good ? 0 : 1;
}
