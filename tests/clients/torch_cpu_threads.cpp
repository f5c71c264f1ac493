/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// torch_cpu_threads.cpp - threads that make tensors and free those of other threads.
//
// usage: torch_cpu_threads LIBRARY|- THREADS STEPS
//
// Prints the CPU seconds of the process, and a sum over all tensors, which does not depend on the
// allocator. LIBRARY is libquire_torch_cpu.so; - leaves PyTorch's own allocator.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

static constexpr size_t PLACES = 64;
static std::array<std::atomic<at::Tensor *>, PLACES> places;
static std::atomic<uint64_t> sum;

// Sizes from 64 bytes to 1 MiB, as many in each doubling.
static void run(unsigned seed, long steps)
{
    std::mt19937 random(seed);
    c10::InferenceMode inference;
    uint64_t own = 0;
    for (long i = 0; i < steps; i++) {
        int64_t count = int64_t(16) << random() % 15;
        auto *made = new at::Tensor(at::full({count}, float(i % 7)));
        at::Tensor *other = places[random() % PLACES].exchange(made);
        if (!other)
            continue;
        own += uint64_t(other->numel()) + uint64_t(other->data_ptr<float>()[other->numel() - 1]);
        delete other;
    }
    sum += own;
}

static double seconds(const timeval &time)
{
    return double(time.tv_sec) + double(time.tv_usec) * 1e-6;
}

int main(int count, char **arguments)
{
    if (count != 4) {
        std::fprintf(stderr, "usage: torch_cpu_threads LIBRARY|- THREADS STEPS\n");
        return 2;
    }
    if (std::strcmp(arguments[1], "-")) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        void *symbol = library ? dlsym(library, "quire_torch_cpu_is_active") : nullptr;
        if (!symbol || !reinterpret_cast<bool (*)()>(symbol)()) {
            std::fprintf(stderr, "%s is not active: %s\n", arguments[1], library ? "" : dlerror());
            return 1;
        }
    }
    at::set_num_threads(1);
    std::vector<std::thread> threads;
    for (long i = 0; i < std::atol(arguments[2]); i++)
        threads.emplace_back(run, unsigned(i + 1), std::atol(arguments[3]));
    for (std::thread &thread : threads)
        thread.join();
    for (auto &place : places)
        if (at::Tensor *left = place.exchange(nullptr)) {
            sum += uint64_t(left->numel()) + uint64_t(left->data_ptr<float>()[left->numel() - 1]);
            delete left;
        }
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    std::printf("{\"cpu_seconds\": %.3f, \"sum\": %llu}\n",
                seconds(used.ru_utime) + seconds(used.ru_stime),
                static_cast<unsigned long long>(sum.load()));
}
