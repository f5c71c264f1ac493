/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// allocator.cpp - the allocator that PyTorch calls, and the functions of torch_cpu.h.
#include <c10/core/CPUAllocator.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "quire/backend.h"
#include "src/adapters/host_allocator/host_allocator.h"
#include "src/adapters/torch_cpu/torch_cpu.h"

namespace {

// Tensors may be freed while the process ends, so that it is never destroyed.
host_allocator *host;

// Called with the address of the bytes.
void release(void *bytes)
{
    if (!bytes)
        return;
    c10::profiledCPUMemoryReporter().Delete(bytes);
    if (host_allocator_free(host, bytes))
        std::fprintf(stderr, "quire_torch_cpu: a tensor was not freed: %s\n", quire_last_error());
}

class Allocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(size_t size) override
    {
        void *bytes = host_allocator_allocate(host, size, HOST_ALLOCATOR_ALIGNMENT);
        if (size && !bytes) {
            c10::profiledCPUMemoryReporter().OutOfMemory(size);
            TORCH_CHECK_WITH(OutOfMemoryError, false, "quire_torch_cpu: cannot allocate ", size,
                             " bytes: ", quire_last_error());
        }
        c10::profiledCPUMemoryReporter().New(bytes, size);
        return {bytes, bytes, &release, c10::Device(c10::DeviceType::CPU)};
    }

    c10::DeleterFnPtr raw_deleter() const override { return &release; }

    void copy_data(void *to, const void *from, std::size_t count) const override
    {
        default_copy_data(to, from, count);
    }
};

bool create()
{
    host_allocator_options options = {};
    options.name = "torch cpu";
    return !host_allocator_read_environment("QUIRE_TORCH_CPU", &options) &&
           !host_allocator_create(&options, &host);
}

// Runs when the library is loaded.
__attribute__((constructor)) void enter()
{
    static Allocator allocator;
    if (!create()) {
        std::fprintf(stderr, "quire_torch_cpu: not active: %s\n", quire_last_error());
        return;
    }
    c10::SetCPUAllocator(&allocator); // without effect if another allocator has a higher priority
    if (c10::GetCPUAllocator() == &allocator)
        return;
    std::fprintf(stderr, "quire_torch_cpu: not active: PyTorch has an allocator of higher priority\n");
    host_allocator_destroy(&host);
}

struct Text {
    char *bytes;
    size_t capacity, length;
};

bool append(void *user, const char *text, size_t size)
{
    Text *all = static_cast<Text *>(user);
    if (all->length < all->capacity) {
        size_t room = all->capacity - all->length;
        std::memcpy(all->bytes + all->length, text, size < room ? size : room);
    }
    all->length += size;
    return true;
}

bool write_to_file(void *user, const char *text, size_t size)
{
    return std::fwrite(text, 1, size, static_cast<std::FILE *>(user)) == size;
}

} // namespace

bool quire_torch_cpu_is_active(void)
{
    return host != nullptr;
}

size_t quire_torch_cpu_stats(char *text, size_t size)
{
    Text all = {text, size, 0};
    if (host_allocator_write_stats(host, append, &all))
        return 0;
    if (size)
        text[all.length < size ? all.length : size - 1] = 0;
    return all.length;
}

bool quire_torch_cpu_snapshot(const char *path)
{
    std::FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file) {
        quire_backend_fail(QUIRE_ERROR_BAD_FILE, errno, "%s cannot be written",
                           path ? path : "(null)");
        return false;
    }
    bool is_written = !host_allocator_write_snapshot(host, write_to_file, file);
    if (std::fclose(file) && is_written) {
        quire_backend_fail(QUIRE_ERROR_BAD_FILE, errno, "%s cannot be written", path);
        return false;
    }
    return is_written;
}

bool quire_torch_cpu_start_trace(const char *path)
{
    return !host_allocator_start_trace(host, path);
}

bool quire_torch_cpu_stop_trace(void)
{
    return !host_allocator_stop_trace(host);
}

bool quire_torch_cpu_trim(uint64_t *released)
{
    return !host_allocator_trim(host, released);
}

const char *quire_torch_cpu_last_error(void)
{
    return quire_last_error();
}
