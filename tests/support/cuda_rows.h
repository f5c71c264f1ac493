/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_rows.h - questions to a CUDA driver in rows, each with the answer that is expected: the
 * programs tests/plain/cuda_codes.c and tests/plain/cuda_answers.c.
 *
 *     PROGRAM --library PATH  checks a driver against the expected answers: the fake one
 *
 *     PROGRAM [--items FROM SECONDS] --table PATH
 *                             prints expected and actual answers of a driver in Markdown; each row
 *                             is an item of items.h
 *
 * Rows whose names have the same first word follow each other and are a chapter. With --items each
 * chapter has a process of its own, and so has every row after an error that the context keeps.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_ROWS_H
#define QUIRE_TESTS_SUPPORT_CUDA_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/cuda_direct.h"

typedef enum cuda_row_kind { CUDA_ROW_CODE, CUDA_ROW_NUMBER, CUDA_ROW_TRUTH } cuda_row_kind;

typedef struct cuda_row {
    const char *id, *text;
    cuda_row_kind kind;
    uint64_t expected;
    uint64_t (*ask)(void *scene);
    /* The row is for devices that have this attribute; 0: for all, as early rows are. */
    qi_cu_attribute needs;
    /* The row asks a driver that is loaded and not initialized, in a process of its own. Such rows
       are before all others. */
    bool is_early;
} cuda_row;

typedef struct cuda_rows {
    const char *program;
    const cuda_row *rows;
    size_t count;
    uint64_t (*answer)(const cuda_row *row); /* makes a scene, asks, and releases it */
} cuda_rows;

/* Does what the words say. Returns the exit status. */
int cuda_rows_main(const cuda_rows *all, int argc, char **argv);

#endif
