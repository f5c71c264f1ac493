/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * transfer.c - every wrong use of quire/transfer.h: the documented code, a sentence, zeroed
 * outputs, nothing changed.
 */
#include <stdio.h>

#include "tests/misuse/misuse.h"
#include "tests/support/on_stream.h"
#include "tests/support/state.h"

enum { SIZE = 1000 };

static bench b;
static quire_memory *device_only, *visible;
static quire_allocation far, live, other, stale, reserved;
static quire_image image;
static quire_stream *stream, *held;
static unsigned char bytes[SIZE];

static bool build(void)
{
    const quire_allocation_options options = {.size = SIZE};
    bench_begin(&b, true);
    fake_offer_copies(&b.fake);
    fake_offer_streams(&b.fake);
    fake_offer_batches(&b.fake);
    return bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 1}) &&
           bench_allocate(&b, 1, &options) &&
           bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
           bench_allocate(&b, 3, &options) && bench_reserve(&b, &options) &&
           bench_image(&b, 1, &(quire_image_options){.width = 10, .height = 10});
}

static void begin(void)
{
    CHECK(build());
    device_only = b.memories[0];
    visible = b.memories[1];
    far = b.held[0].allocation;
    live = b.held[1].allocation;
    other = b.held[2].allocation;
    stale = b.held[3].allocation;
    reserved = b.held[4].allocation;
    image.allocation = b.held[5].allocation;
    CHECK(bench_free(&b, 3));
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    refusal_begin(&b);
}

static void end(void)
{
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&held));
    bench_end(&b);
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Both forms reject the copy. */
static void refuse(quire_result code, const quire_copy_options *options)
{
    quire_point done;
    REFUSE(code, quire_copy(options, NULL));
    REFUSE_OUT(code, done, copy_on_stream(stream, options, &done));
    CHECK_EQ(fake_stream_waiting(quire_stream_native(stream)), 0);
}

/* A valid copy, to be changed. */
static quire_copy_options good(void)
{
    return (quire_copy_options){.to = {.memory = visible, .allocation = live},
                                .from = {.memory = device_only, .allocation = far},
                                .size = 10};
}

static void ends(void)
{
    quire_copy_options o = good();
    refuse(INVALID, NULL);
    o.to = o.from = (quire_copy_end){0};
    o.host_to = bytes;
    o.host_from = bytes + 100;
    refuse(INVALID, &o);
    o = good();
    o.host_to = bytes;
    refuse(INVALID, &o);
    o = good();
    o.host_from = bytes;
    refuse(INVALID, &o);
    o = good();
    o.to.memory = NULL;
    refuse(INVALID, &o); /* the allocation belongs to no memory */
    o.to.allocation.id = 0;
    refuse(INVALID, &o); /* no host memory */
    o = good();
    o.from = (quire_copy_end){0};
    refuse(INVALID, &o);
}

static void handles(void)
{
    const struct {
        quire_allocation allocation;
        quire_result code;
    } wrong[] = {{{0}, INVALID},
                 {stale, STALE},
                 {far, FOREIGN},
                 {reserved, WRONG_STATE},
                 {{UINT64_MAX}, FOREIGN}};
    quire_point done;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quire_copy_options o = good();
        o.to.allocation = wrong[i].allocation;
        refuse(wrong[i].code, &o);
        o = good();
        o.from = (quire_copy_end){.memory = visible, .allocation = wrong[i].allocation};
        refuse(wrong[i].code, &o);
        o.size = 0; /* checked nevertheless */
        refuse(wrong[i].code, &o);
        REFUSE(wrong[i].code,
               quire_fill(visible, wrong[i].allocation, &(quire_fill_options){.value = 1}, NULL));
        REFUSE_OUT(wrong[i].code, done,
                   quire_fill(visible, wrong[i].allocation,
                              &(quire_fill_options){.value = 1, .stream = stream}, &done));
    }
}

static void ranges(void)
{
    const struct {
        uint64_t offset, size, rows, slices, row_pitch, slice_pitch;
    } wrong[] = {{1, SIZE, 1, 1, 0, 0},
                 {SIZE, 1, 1, 1, 0, 0},
                 {SIZE + 1, 0, 0, 0, 0, 0},
                 {UINT64_MAX, 1, 1, 1, 0, 0},
                 {0, UINT64_MAX, 1, 1, 0, 0},
                 {1, UINT64_MAX, 1, 1, 0, 0},
                 {0, 10, 101, 1, 0, 0},
                 {0, 10, 10, 11, 0, 0},
                 {0, 10, 2, 1, 991, 0},
                 {0, 10, 1, 2, 0, 991},
                 {0, 1, UINT64_MAX, UINT64_MAX, 0, 0},
                 {0, 2, UINT64_MAX, 1, 0, 0},
                 {0, 1, 2, UINT64_MAX, UINT64_MAX / 2, 0},
                 {0, 1, 3, 1, UINT64_MAX / 2 + 1, 0},
                 {0, 1, 1, 3, 0, UINT64_MAX / 2 + 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quire_copy_options o = {.host_from = bytes,
                                .size = wrong[i].size,
                                .rows = wrong[i].rows,
                                .slices = wrong[i].slices};
        o.to = (quire_copy_end){visible, live, wrong[i].offset, wrong[i].row_pitch,
                                wrong[i].slice_pitch};
        refuse(OUTSIDE, &o);
        o.from = o.to;
        o.to =
            (quire_copy_end){.row_pitch = wrong[i].row_pitch, .slice_pitch = wrong[i].slice_pitch};
        o.host_from = NULL;
        o.host_to = bytes;
        refuse(OUTSIDE, &o);
    }
    quire_copy_options o = good();
    o.from = (quire_copy_end){.offset = UINT64_MAX - 5};
    o.host_from = bytes;
    refuse(OUTSIDE, &o); /* above the last address */
}

static void forms(void)
{
    quire_copy_options o = good();
    o.to.row_pitch = 9;
    refuse(INVALID, &o);
    o = good();
    o.from.row_pitch = 9;
    refuse(INVALID, &o);
    o = good();
    o.rows = 3;
    o.to.slice_pitch = 29;
    refuse(INVALID, &o);
    o = good();
    o.progress.step = 5;
    refuse(INVALID, &o);
    o = good();
    o.progress.user = &o;
    refuse(INVALID, &o);
    for (int i = 0; i < 4; i++) {
        o = good();
        o.unused[i] = 1;
        refuse(INVALID, &o);
    }
}

static void overlaps(void)
{
    quire_copy_options o = good();
    o.from = o.to;
    refuse(QUIRE_ERROR_OVERLAP, &o);
    o.to.offset = 9;
    refuse(QUIRE_ERROR_OVERLAP, &o);
    o.rows = 5;
    o.to.offset = 15;
    o.to.row_pitch = o.from.row_pitch = 20; /* interleaved, and the rows overlap */
    refuse(QUIRE_ERROR_OVERLAP, &o);
    void *pointer;
    CHECK_OK(quire_map(visible, live, &pointer));
    refusal_begin(&b);
    o = good();
    o.from = (quire_copy_end){.offset = 9};
    o.host_from = pointer;
    refuse(QUIRE_ERROR_OVERLAP, &o);
    CHECK_OK(quire_unmap(visible, live));
    refusal_begin(&b);
}

static bool stops(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return false;
}

static void progress(void)
{
    quire_copy_options o = good();
    quire_point done;
    o.progress = (quire_progress){stops, NULL, 4};
    REFUSE(BUSY, quire_copy(&o, NULL));
    REFUSE_OUT(INVALID, done, copy_on_stream(stream, &o, &done));
}

static void paths(void)
{
    quire_copy_path path;
    REFUSE(INVALID, quire_copy_get_path(visible, visible, NULL));
    REFUSE_OUT(INVALID, path, quire_copy_get_path(NULL, NULL, &path));
}

static void streams(void)
{
    quire_copy_options o = good();
    quire_point done;
    REFUSE_OUT(INVALID, done, copy_on_stream(held, &o, &done));
    REFUSE_OUT(INVALID, done, quire_fill(visible, live, NULL, &done));
    REFUSE_OUT(INVALID, done,
               quire_fill(visible, live, &(quire_fill_options){.unused = {0, 0, 0, 1}}, &done));
    REFUSE_OUT(INVALID, done,
               quire_fill(visible, live, &(quire_fill_options){.value = 1, .stream = held}, &done));
    REFUSE_OUT(INVALID, done,
               quire_fill(NULL, live, &(quire_fill_options){.value = 1, .stream = stream}, &done));
}

/* ---- fills ---------------------------------------------------------------------------------- */

static void fills(void)
{
    const uint64_t wrong[][2] = {
        {SIZE, 0}, {0, SIZE + 1}, {1, SIZE}, {UINT64_MAX, 2}, {2, UINT64_MAX}};
    quire_point done;
    REFUSE(INVALID, quire_fill(NULL, live, &(quire_fill_options){.value = 1}, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSE(OUTSIDE, quire_fill(visible, live,
                                   &(quire_fill_options){
                                       .offset = wrong[i][0], .size = wrong[i][1], .value = 1},
                                   NULL));
        REFUSE_OUT(OUTSIDE, done,
                   quire_fill(visible, live,
                              &(quire_fill_options){.offset = wrong[i][0],
                                                    .size = wrong[i][1],
                                                    .value = 1,
                                                    .stream = stream},
                              &done));
    }
}

/* ---- batches -------------------------------------------------------------------------------- */

/* A good item and a bad one, in both directions and on a stream. */
static void refuse_item(quire_result code, quire_allocation allocation, uint64_t offset,
                        uint64_t size, unsigned char *data)
{
    const quire_write_item writes[] = {{live, 0, bytes, 10}, {allocation, offset, data, size}};
    const quire_read_item reads[] = {{live, 0, bytes, 10}, {allocation, offset, data, size}};
    quire_point done;
    REFUSE(code, quire_write_batch(visible, writes, 2, NULL, NULL));
    REFUSE_OUT(code, done, quire_write_batch(visible, writes, 2, stream, &done));
    REFUSE(code, quire_read_batch(visible, reads, 2));
    CHECK_EQ(fake_stream_waiting(quire_stream_native(stream)), 0);
}

static void batches(void)
{
    const quire_write_item write = {live, 0, bytes, 10};
    const quire_read_item read = {live, 0, bytes, 10};
    quire_point done;
    REFUSE(INVALID, quire_write_batch(NULL, &write, 1, NULL, NULL));
    REFUSE_OUT(INVALID, done, quire_write_batch(NULL, &write, 1, stream, &done));
    REFUSE_OUT(INVALID, done, quire_write_batch(visible, NULL, 1, stream, &done));
    REFUSE_OUT(INVALID, done, quire_write_batch(visible, &write, 1, held, &done));
    REFUSE(INVALID, quire_read_batch(NULL, &read, 1));
    REFUSE(INVALID, quire_read_batch(visible, NULL, 1));
    refuse_item(INVALID, (quire_allocation){0}, 0, 10, bytes);
    refuse_item(INVALID, live, 0, 10, NULL);
    refuse_item(STALE, stale, 0, 0, bytes);
    refuse_item(FOREIGN, far, 0, 10, bytes);
    refuse_item(WRONG_STATE, reserved, 0, 10, bytes);
    refuse_item(OUTSIDE, live, 0, SIZE + 1, bytes);
    refuse_item(OUTSIDE, other, SIZE, 1, bytes);
    refuse_item(OUTSIDE, other, SIZE + 1, 0, bytes);
    refuse_item(OUTSIDE, live, UINT64_MAX, 2, bytes);
    refuse_item(OUTSIDE, live, 2, UINT64_MAX, bytes);
}

/* ---- images --------------------------------------------------------------------------------- */

static void refuse_image(quire_result code, quire_image wrong, const quire_image_region *region)
{
    quire_image_rows rows;
    REFUSE_OUT(code, rows, quire_image_get_rows(visible, wrong, region, &rows));
    REFUSE(code, quire_image_write(visible, wrong, region, bytes, 0, 0));
    REFUSE(code, quire_image_read(visible, wrong, region, bytes, 0, 0));
}

static void images(void)
{
    quire_image_rows rows;
    REFUSE_OUT(INVALID, rows, quire_image_get_rows(NULL, image, NULL, &rows));
    REFUSE(INVALID, quire_image_get_rows(visible, image, NULL, NULL));
    REFUSE(INVALID, quire_image_write(NULL, image, NULL, bytes, 0, 0));
    REFUSE(INVALID, quire_image_write(visible, image, NULL, NULL, 0, 0));
    REFUSE(INVALID, quire_image_read(NULL, image, NULL, bytes, 0, 0));
    REFUSE(INVALID, quire_image_read(visible, image, NULL, NULL, 0, 0));
    REFUSE(INVALID, quire_image_write(visible, image, NULL, bytes, 9, 0));
    REFUSE(INVALID, quire_image_read(visible, image, NULL, bytes, 10, 99));
    refuse_image(INVALID, (quire_image){{0}}, NULL);
    refuse_image(INVALID, (quire_image){live}, NULL);
    refuse_image(STALE, (quire_image){stale}, NULL);
    refuse_image(FOREIGN, (quire_image){far}, NULL);
    refuse_image(OUTSIDE, image, &(quire_image_region){.x = 10});
    refuse_image(OUTSIDE, image, &(quire_image_region){.y = 1, .height = 10});
    refuse_image(OUTSIDE, image, &(quire_image_region){.z = 1});
    refuse_image(OUTSIDE, image, &(quire_image_region){.width = UINT32_MAX});
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"ends of copies", ends},
    {"handles", handles},
    {"ranges", ranges},
    {"rows, slices and unknown fields", forms},
    {"ends that share bytes", overlaps},
    {"a callback that ends the copy", progress},
    {"paths", paths},
    {"streams", streams},
    {"fills", fills},
    {"batches", batches},
    {"texels of images", images},
    {NULL, NULL},
};

static const char *const headers[] = {"transfer.h", NULL};

const misuse_area misuse_transfer = {"transfer", begin, end, cases, headers};
