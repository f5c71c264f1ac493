/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corner_share.c - see corners.h.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/corners.h"
#include "tests/support/plain.h"

#define MIB (UINT64_C(1) << 20)

enum { WORD = 2 * QUIRE_CUDA_IPC_SIZE + 1, SECONDS = 20 };

static const quire_cuda_settings PLAIN = {.kinds = UINT32_C(1) << QUIRE_CUDA_PLAIN};
static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;

static void check_bytes(corner *c, quire_allocation a, uint64_t offset, unsigned char value)
{
    unsigned char bytes[CORNER_BYTES] = {0};
    CHECK_OK(quire_read(c->memory, a, offset, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], value);
}

static void write_bytes(corner *c, quire_allocation a, uint64_t offset, unsigned char value)
{
    unsigned char bytes[CORNER_BYTES];
    memset(bytes, value, sizeof bytes);
    CHECK_OK(quire_write(c->memory, a, offset, bytes, sizeof bytes));
}

/* A process that is started by another one does not outlive its limit. */
static void begin_other(const char *name)
{
    alarm(SECONDS);
    plain_begin(name);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void read_hex(const char *text, unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const char digits[] = {text[2 * i], text[2 * i + 1], 0};
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void write_hex(const unsigned char *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

int corner_import(char **words)
{
    corner c;
    quire_allocation imported;
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    uint64_t offset = strtoull(words[3], NULL, 10);
    quire_cuda_import what = {.type = QUIRE_CUDA_IMPORT_FD, .size = strtoull(words[2], NULL, 10)};
    begin_other("the other process");
    if (!strcmp(words[0], "ipc")) {
        read_hex(words[1], ipc, sizeof ipc);
        what.type = QUIRE_CUDA_IMPORT_IPC;
        what.ipc = ipc;
    } else {
        what.descriptor = atoi(words[1]);
    }
    corner_open(&c, NULL, NULL);
    CHECK_OK(quire_cuda_import_range(c.memory, &what, &imported));
    check_bytes(&c, imported, offset, 1);
    write_bytes(&c, imported, offset, 2);
    corner_close(&c);
    return 0;
}

/* Gives the page of an allocation to another process, which reads 1 and writes 2. */
static void give(corner *c, quire_allocation a, const char *type, char *handle)
{
    quire_cuda_range range;
    char size[32], offset[32];
    char *words[] = {corner_text("corners"),
                     corner_text("--import"),
                     corner_text(type),
                     handle,
                     size,
                     offset,
                     NULL};
    CHECK_OK(quire_cuda_get_range(c->memory, a, &range));
    snprintf(size, sizeof size, "%" PRIu64, range.padded_size);
    snprintf(offset, sizeof offset, "%" PRIu64, range.page_offset);
    write_bytes(c, a, 0, 1);
    CHECK_EQ(corner_run(words), 0);
    check_bytes(c, a, 0, 2);
}

/* A descriptor that a new process inherits, as a word. */
static void descriptor_word(int descriptor, char *word, size_t size)
{
    CHECK_EQ(fcntl(descriptor, F_SETFD, 0), 0);
    snprintf(word, size, "%d", descriptor);
}

void another_process_shares_a_page(void)
{
    corner c;
    char word[WORD];
    int descriptor;
    corner_open(&c, NULL, &(quire_memory_options){.kind.intent = EXPORTABLE});
    (void)corner_allocate(&c, 300); /* so that the offset is not 0 */
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    CHECK_OK(quire_cuda_export_fd(c.memory, a, &descriptor));
    descriptor_word(descriptor, word, sizeof word);
    give(&c, a, "fd", word);
    close(descriptor);
    corner_close(&c);
}

bool has_legacy_handles(void)
{
    corner c;
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    corner_open(&c, &PLAIN, NULL);
    quire_result result = quire_cuda_export_ipc(c.memory, corner_allocate(&c, CORNER_BYTES), ipc);
    corner_close(&c);
    return result != QUIRE_ERROR_UNSUPPORTED;
}

void another_process_opens_a_legacy_handle(void)
{
    corner c;
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    char word[WORD];
    quire_allocation own;
    corner_open(&c, &PLAIN, NULL);
    (void)corner_allocate(&c, 300);
    quire_allocation a = corner_allocate(&c, CORNER_BYTES);
    CHECK_OK(quire_cuda_export_ipc(c.memory, a, ipc));
    write_hex(ipc, sizeof ipc, word);
    give(&c, a, "ipc", word);
    give(&c, a, "ipc", word); /* again, after the first process closed it */
    const quire_cuda_import what = {.type = QUIRE_CUDA_IMPORT_IPC,
                                    .ipc = ipc,
                                    .size = 2 * MIB}; /* in the process that made it */
    CHECK(quire_cuda_import_range(c.memory, &what, &own));
    corner_close(&c);
}

/* ---- multicast ------------------------------------------------------------------------------ */

/* Opens a device, an object of its own and a memory whose pages have the object's size. A lone
   device may report multicast and refuse the object, for lack of a fabric: then NULL. */
static quire_cuda_multicast *open_multicast(corner *c, quire_cuda_multicast_info *info)
{
    quire_cuda_multicast *multicast;
    corner_open(c, NULL, NULL);
    const quire_cuda_multicast_options options = {.size = 4 * MIB,
                                                  .devices = &c->info.ordinal,
                                                  .device_count = 1,
                                                  .handle_types = QUIRE_CUDA_FD};
    quire_result result = quire_cuda_multicast_create(c->device, &options, &multicast);
    CHECK(c->info.has_multicast || result == QUIRE_ERROR_UNSUPPORTED);
    if (result) {
        printf("# no multicast: %s\n", quire_last_error());
        (void)corner_allocate(c, CORNER_BYTES); /* the device goes on */
        return NULL;
    }
    CHECK_OK(quire_cuda_multicast_get_info(multicast, info));
    CHECK_OK(quire_memory_destroy(&c->memory));
    CHECK_OK(quire_memory_create(c->device, &(quire_memory_options){.pages.page_size = info->size},
                                 &c->memory));
    return multicast;
}

/* The address of a page need not be a multiple of the granularity, which can be 512 MiB. */
static void bind_address(quire_cuda_multicast *multicast, const quire_cuda_multicast_info *info,
                         int32_t ordinal, uint64_t address)
{
    quire_result wanted =
        address % info->granularity ? QUIRE_ERROR_INVALID_ARGUMENT : QUIRE_SUCCESS;
    CHECK_EQ(quire_cuda_multicast_bind_address(multicast, 0, address, info->granularity), wanted);
    CHECK_FAILS(quire_cuda_multicast_bind_address(multicast, 0, address + 1, info->granularity),
                QUIRE_ERROR_INVALID_ARGUMENT);
    if (!wanted)
        CHECK_OK(quire_cuda_multicast_unbind(multicast, ordinal, 0, info->granularity));
}

void multicast_binds_pages_and_addresses(void)
{
    corner c;
    quire_cuda_multicast_info info;
    quire_cuda_range range;
    uint64_t address;
    quire_cuda_multicast *multicast = open_multicast(&c, &info);
    if (multicast) {
        int32_t ordinal = c.info.ordinal;
        quire_allocation a = corner_allocate(&c, CORNER_BYTES);
        CHECK_OK(quire_cuda_get_range(c.memory, a, &range));
        bind_address(multicast, &info, ordinal, range.page_address);
        CHECK_OK(quire_cuda_multicast_bind(multicast, 0, c.memory, a));
        CHECK_OK(quire_cuda_multicast_map(multicast, ordinal, &address));
        CHECK(address);
        CHECK_OK(quire_cuda_multicast_unmap(multicast, ordinal));
        CHECK_OK(quire_cuda_multicast_unbind(multicast, ordinal, 0, range.padded_size));
        CHECK_OK(quire_cuda_multicast_destroy(&multicast));
        write_bytes(&c, a, 0, 3);
        check_bytes(&c, a, 0, 3);
    }
    corner_close(&c);
}

/* The device belongs to the first process; a device joins a team once. */
int corner_team(char **words)
{
    corner c;
    quire_cuda_multicast *multicast;
    quire_cuda_multicast_info info;
    int descriptor;
    const quire_cuda_multicast_import_options what = {.type = QUIRE_CUDA_IMPORT_FD,
                                                      .descriptor = atoi(words[0]),
                                                      .size = strtoull(words[1], NULL, 10),
                                                      .team_size = 1};
    begin_other("the other process of a team");
    corner_open(&c, NULL, NULL);
    CHECK_OK(quire_cuda_multicast_import(c.device, &what, &multicast));
    CHECK_OK(quire_cuda_multicast_get_info(multicast, &info));
    CHECK(info.is_imported && info.size == what.size && info.team_size == 1);
    CHECK_FAILS(quire_cuda_multicast_export_fd(multicast, &descriptor), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_cuda_multicast_destroy(&multicast));
    corner_close(&c);
    return 0;
}

void another_process_imports_a_multicast_object(void)
{
    corner c;
    quire_cuda_multicast_info info;
    char word[WORD], size[32];
    int descriptor;
    char *words[] = {corner_text("corners"), corner_text("--team"), word, size, NULL};
    quire_cuda_multicast *multicast = open_multicast(&c, &info);
    if (multicast) {
        CHECK_OK(quire_cuda_multicast_export_fd(multicast, &descriptor));
        descriptor_word(descriptor, word, sizeof word);
        snprintf(size, sizeof size, "%" PRIu64, info.size);
        CHECK_EQ(corner_run(words), 0);
        close(descriptor);
        CHECK_OK(quire_cuda_multicast_bind(multicast, 0, c.memory, corner_allocate(&c, 300)));
        CHECK_OK(quire_cuda_multicast_destroy(&multicast));
    }
    corner_close(&c);
}
