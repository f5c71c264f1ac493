/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The recording: a table that maps the address of each live block to its id, and the file with one
 * line per event. This file owns both. It allocates nothing from the heap that it records: the
 * table lies in mapped pages, the lines in a fixed buffer. The caller holds the lock.
 */
#define _GNU_SOURCE
#include "malloc_recorder_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The longest line: op and label of 8 bytes, five numbers of 20 digits, and commas. */
#define MAX_LINE 160

static atomic_bool on;

static char pattern[PATH_MAX], path[PATH_MAX];
static pid_t owner;   /* the process that writes the file */
static bool one_file; /* the pattern has no %p */
static bool created;  /* this process has created the file */
static bool unbuffered;
static char buffer[65536];
static size_t buffered;

static size_t smallest = 1;
static uint64_t last_id;
static uint64_t start_ns; /* time of the first event; 0 before it */
static unsigned threads;
THREAD_LOCAL unsigned thread_number; /* from 1 on; 0 means not assigned yet */

/* ---- The file ---- */

static void stop_recording(const char *why)
{
    static const char who[] = "malloc_recorder: stopped: ";

    on = false;
    if (write(STDERR_FILENO, who, sizeof(who) - 1) < 0 ||
        write(STDERR_FILENO, why, strlen(why)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        return; /* no way to report it */
}

static bool write_all(int file)
{
    for (size_t written = 0; written < buffered;) {
        ssize_t count = write(file, buffer + written, buffered - written);

        if (count < 0 && errno != EINTR)
            return false;
        written += count < 0 ? 0 : (size_t)count;
    }
    return true;
}

/* Opens the file for each write, because programs close descriptors that they do not know and reuse
 * their numbers. A child of vfork or clone has this memory without having run the fork handlers; it
 * must not write, because the lines belong to the parent. */
void log_flush(bool for_good)
{
    bool written = false;
    int file;

    if (getpid() != owner)
        return;
    unbuffered = unbuffered || for_good;
    if (buffered == 0)
        return;
    file = open(path, O_WRONLY | O_CLOEXEC | (created ? O_APPEND : O_CREAT | O_TRUNC), 0666);
    if (file >= 0) {
        written = write_all(file);
        close(file);
    }
    created = true;
    buffered = 0;
    if (!written)
        stop_recording("cannot write the file");
}

static size_t print_number(char *to, uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < count; i++)
        to[i] = digits[count - 1 - i];
    return count;
}

static void put_text(const char *text)
{
    size_t length = strlen(text);

    memcpy(buffer + buffered, text, length);
    buffered += length;
}

static void put_number(uint64_t number)
{
    buffered += print_number(buffer + buffered, number);
    put_text(",");
}

static uint64_t elapsed_ns(void)
{
    struct timespec now;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (start_ns == 0)
        start_ns = ns;
    return ns - start_ns;
}

/* Adds a line; size 0 means a free. */
static void put_line(uint64_t id, size_t size, size_t alignment, const char *label)
{
    if (buffered > sizeof(buffer) - MAX_LINE)
        log_flush(false);
    if (!on || buffered > sizeof(buffer) - MAX_LINE)
        return;
    if (thread_number == 0)
        thread_number = ++threads;
    put_text(size > 0 ? "alloc," : "free,");
    put_number(id);
    if (size > 0) {
        put_number(size);
        put_number(alignment);
    } else {
        put_text(",,");
    }
    put_number(elapsed_ns());
    put_number(thread_number - 1);
    put_text(label);
    put_text("\n");
    if (unbuffered)
        log_flush(false);
}

/* ---- The table: open addressing with linear probing ---- */

struct entry {
    uintptr_t address; /* 0 is empty */
    uint64_t id;
};

static struct entry *table;
static size_t table_size; /* a power of two, or 0 */
static size_t table_used;

static size_t home(uintptr_t address)
{
    uint64_t mixed = (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 32) & (table_size - 1);
}

/* Returns the entry of an address, or the empty entry where it belongs. */
static struct entry *find_entry(uintptr_t address)
{
    size_t at = home(address);

    while (table[at].address != 0 && table[at].address != address)
        at = (at + 1) & (table_size - 1);
    return &table[at];
}

static bool grow_table(void)
{
    struct entry *old = table;
    size_t old_size = table_size;
    size_t size = old_size > 0 ? 2 * old_size : 65536;
    void *memory = mmap(NULL, size * sizeof(*table), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        stop_recording("no memory for the table");
        return false;
    }
    table = memory;
    table_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].address != 0)
            *find_entry(old[i].address) = old[i];
    if (old_size > 0)
        munmap(old, old_size * sizeof(*old));
    return true;
}

/* Moves later entries of the run into the gap, so that a search can stop at any gap. */
static void remove_entry(struct entry *entry)
{
    size_t gap = (size_t)(entry - table);
    size_t mask = table_size - 1;

    for (size_t at = (gap + 1) & mask; table[at].address != 0; at = (at + 1) & mask) {
        size_t from_home = (at - home(table[at].address)) & mask;

        if (from_home >= ((at - gap) & mask)) {
            table[gap] = table[at];
            gap = at;
        }
    }
    table[gap].address = 0;
    table_used--;
}

void log_free(const void *memory)
{
    struct entry *entry;

    if (table_size == 0)
        return;
    entry = find_entry((uintptr_t)memory);
    if (entry->address == 0)
        return;
    put_line(entry->id, 0, 0, "");
    remove_entry(entry);
}

void log_alloc(const void *memory, size_t size, size_t alignment, const char *label)
{
    struct entry *entry;

    /* If the address is still in the table, no replacement saw its free, for example because a fork
     * handler of the program freed it while the lock was held. */
    log_free(memory);
    if (size < smallest || (2 * table_used >= table_size && !grow_table()))
        return;
    entry = find_entry((uintptr_t)memory);
    entry->address = (uintptr_t)memory;
    entry->id = ++last_id;
    table_used++;
    put_line(entry->id, size, alignment, label);
}

/* ---- Start and fork ---- */

bool log_is_on(void)
{
    return on;
}

/* The first write creates the file: a child that calls exec at once leaves none. */
static void begin(void)
{
    size_t length = 0;

    owner = getpid();
    for (const char *from = pattern; *from != '\0' && length < sizeof(path) - 21;) {
        if (from[0] == '%' && from[1] == 'p') {
            length += print_number(path + length, (uint64_t)owner);
            from += 2;
        } else {
            path[length++] = *from++;
        }
    }
    path[length] = '\0';
    created = false;
    buffered = 0;
    put_text("op,id,size,alignment,time_ns,stream,label\n");
    on = true;
}

/* Without %p only the first process writes the file. A program that it executes has the same
 * process id and continues with the file; child processes have other ids. Returns whether this
 * process is the writer. */
static bool take_only_file(void)
{
    static const char name[] = "QUIRE_RECORD_OWNER";
    const char *before = getenv(name);
    char mine[21];

    mine[print_number(mine, (uint64_t)getpid())] = '\0';
    return before == NULL ? setenv(name, mine, 1) == 0 : strcmp(before, mine) == 0;
}

void log_start(void)
{
    const char *name = getenv("QUIRE_RECORD");
    const char *least = getenv("QUIRE_RECORD_MIN");
    size_t length = 0;

    if (name == NULL || name[0] == '\0')
        return;
    /* The program may change its directory before the file is written. */
    if (name[0] != '/' && getcwd(pattern, sizeof(pattern) - 1) != NULL) {
        length = strlen(pattern);
        pattern[length++] = '/';
    }
    if (strlen(name) >= sizeof(pattern) - length - 256) {
        stop_recording("the path is too long"); /* 256 bytes stay free for process ids */
        return;
    }
    memcpy(pattern + length, name, strlen(name) + 1);
    if (least != NULL && strtoull(least, NULL, 10) > 0)
        smallest = (size_t)strtoull(least, NULL, 10);
    one_file = strstr(pattern, "%p") == NULL;
    if (!one_file || take_only_file())
        begin();
}

void log_forked(void)
{
    if (!on)
        return;
    /* The lines and blocks recorded so far belong to the parent. */
    if (table_size > 0)
        munmap(table, table_size * sizeof(*table));
    table = NULL;
    table_size = table_used = 0;
    last_id = start_ns = 0;
    threads = thread_number = 0;
    unbuffered = false;
    if (one_file)
        on = false;
    else
        begin();
}
