/*
 * marks.c - the state of each small block: the arrays.
 */
#include "src/adapters/host_allocator/marks.h"

#include <sys/mman.h>

#include "quire/backend.h"

/* Bytes that are 0. The system gives them memory when they are first written. NULL: none left. */
static void *map(uint64_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(bytes, size, MADV_NOHUGEPAGE); /* one mark would make 2 MiB resident */
#endif
    return bytes;
}

quire_result host_marks_create(host_marks *marks)
{
    marks->parts = map(HOST_PART_COUNT * sizeof *marks->parts);
    return marks->parts ? QUIRE_SUCCESS
                        : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                             "no host memory for the marks of small blocks");
}

void host_marks_destroy(host_marks *marks)
{
    if (!marks->parts)
        return;
    for (uint64_t i = 0; i < HOST_PART_COUNT; i++) {
        host_mark *part = atomic_load_explicit(&marks->parts[i], memory_order_relaxed);
        if (part)
            munmap(part, HOST_PART_MARKS);
    }
    munmap(marks->parts, HOST_PART_COUNT * sizeof *marks->parts);
    marks->parts = NULL;
}

/* Makes the part of an address, unless another thread does it first. */
static void make_part(_Atomic(host_mark *) *place)
{
    host_mark *made = map(HOST_PART_MARKS), *other = NULL;
    if (made && !atomic_compare_exchange_strong(place, &other, made))
        munmap(made, HOST_PART_MARKS);
}

host_mark *host_marks_add(host_marks *marks, const host_block *block)
{
    const uint64_t address = (uintptr_t)block;
    host_mark *mark = host_marks_find(marks, block);
    if (!mark && !(address >> HOST_MARKS_SHIFT)) {
        make_part(&marks->parts[address >> HOST_PART_SHIFT]);
        mark = host_marks_find(marks, block);
    }
    if (!mark)
        (void)!quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the mark of a small block");
    return mark;
}
