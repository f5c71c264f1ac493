/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_rows.c - see cuda_rows.h.
 */
#include "tests/support/cuda_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/items.h"
#include "tests/support/plain.h"

static const cuda_rows *set;
static const char *path;

/* ---- one row -------------------------------------------------------------------------------- */

/* A driver in use cannot be asked as one that is not initialized, and a fork of its process cannot
   use it. So a child loads it, while this process has not. */
static void visit_early(void (*visit)(size_t), size_t i)
{
    unsigned left = alarm(0);
    alarm(left);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm(left ? left + 1 : 0); /* not inherited; the parent is to end first */
        cuda_direct_load(path);
        visit(i);
        fflush(stdout);
        child_end(true);
    }
    if (!child_was_well(child))
        check_failed(__FILE__, __LINE__, "the process of the row failed");
}

static void visit_row(void (*visit)(size_t), size_t i)
{
    plain_begin(set->rows[i].text);
    if (set->rows[i].is_early)
        visit_early(visit, i);
    else
        visit(i);
}

/* Loads the driver unless the row is early. */
static bool is_for_device(const cuda_row *row)
{
    int value = 0;
    if (row->is_early)
        return true;
    cuda_direct_open(path);
    if (row->needs)
        (void)cu.DeviceGetAttribute(&value, row->needs, 0); /* which an old driver may not know */
    return !row->needs || value;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* A row that may damage the context is a chapter alone. */
static bool begins_chapter(size_t i)
{
    const char *id = set->rows[i].id;
    size_t word = strcspn(id, "_") + 1;
    return !i || !strncmp(id, "copy_", word) || strncmp(id, set->rows[i - 1].id, word) != 0;
}

static void print_head(size_t i)
{
    (void)i;
    int version;
    char device[128];
    cuda_direct_open(path);
    MUST(cu.DriverGetVersion(&version));
    MUST(cu.DeviceGetName(device, sizeof device, 0));
    printf("CUDA %d.%d, %s\n\n", version / 1000, version % 1000 / 10, device);
    printf("| call | expected | actual |\n|---|---|---|\n");
}

static void write_answer(char *text, size_t room, cuda_row_kind kind, uint64_t answer)
{
    if (kind == CUDA_ROW_TRUTH)
        snprintf(text, room, "%s", answer ? "yes" : "no");
    else if (kind == CUDA_ROW_NUMBER)
        snprintf(text, room, "%" PRIu64, answer);
    else
        snprintf(text, room, "%" PRIu64 " %s", answer, cuda_direct_name((qi_cu_result)answer));
}

static void print_row(size_t i)
{
    char expected[64], actual[64];
    const cuda_row *row = &set->rows[i];
    uint64_t answer = set->answer(row);
    const char *mark = answer == row->expected ? "" : "**";
    write_answer(expected, sizeof expected, row->kind, row->expected);
    write_answer(actual, sizeof actual, row->kind, answer);
    printf("| %s | %s | %s%s%s |\n", row->text, expected, mark, actual, mark);
    fflush(stdout);
}

/* Returns false if the context keeps an error. */
static bool is_usable(const cuda_row *row)
{
    return row->is_early || !cu.CtxSynchronize();
}

static void print_table(void)
{
    size_t printed = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (!is_for_device(&set->rows[i]))
            continue;
        if (items_ran() && begins_chapter(i))
            items_renew();
        if (items_begin(set->rows[i].text)) {
            if (!i)
                visit_row(print_head, i);
            visit_row(print_row, i);
            if (!is_usable(&set->rows[i]) && items_ran() && i + 1 < set->count)
                items_renew();
        }
        printed++;
    }
    if (!printed)
        printf("# SKIP the device lacks what every row needs\n");
}

/* ---- the check ------------------------------------------------------------------------------ */

static size_t checked;

static void check_row(size_t i)
{
    CHECK_EQ(set->answer(&set->rows[i]), set->rows[i].expected);
}

static void every_row_is_answered_as_expected(void)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!is_for_device(&set->rows[i]))
            continue;
        visit_row(check_row, i);
        checked++;
    }
}

int cuda_rows_main(const cuda_rows *all, int argc, char **argv)
{
    argc = items_take(argc, argv);
    bool prints = argc == 3 && !strcmp(argv[1], "--table");
    if (argc != 3 || (!prints && strcmp(argv[1], "--library"))) {
        fprintf(stderr, "usage: %s --library|--table PATH\n", all->program);
        return 2;
    }
    set = all;
    path = argv[2];
    if (prints) {
        print_table();
        return 0;
    }
    plain_case("every row is answered as expected", every_row_is_answered_as_expected);
    printf("# %zu rows\n", checked);
    return plain_end();
}
