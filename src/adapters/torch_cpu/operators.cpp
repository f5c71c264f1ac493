/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// operators.cpp - the functions of torch_cpu.h as operators of PyTorch, which throw on failure.
#include <torch/library.h>

#include <string>

#include "src/adapters/torch_cpu/torch_cpu.h"

namespace {

void check(bool is_done)
{
    TORCH_CHECK(is_done, "quire_torch_cpu: ", quire_torch_cpu_last_error());
}

std::string stats()
{
    std::string text(4096, '\0');
    size_t length = quire_torch_cpu_stats(&text[0], text.size());
    check(length != 0 && length < text.size());
    text.resize(length);
    return text;
}

void snapshot(const std::string &path)
{
    check(quire_torch_cpu_snapshot(path.c_str()));
}

void start_trace(const std::string &path)
{
    check(quire_torch_cpu_start_trace(path.c_str()));
}

void stop_trace()
{
    check(quire_torch_cpu_stop_trace());
}

int64_t trim()
{
    uint64_t released = 0;
    check(quire_torch_cpu_trim(&released));
    return static_cast<int64_t>(released);
}

} // namespace

TORCH_LIBRARY(quire_cpu, m)
{
    m.def("is_active", &quire_torch_cpu_is_active);
    m.def("stats", &stats);
    m.def("snapshot", &snapshot);
    m.def("start_trace", &start_trace);
    m.def("stop_trace", &stop_trace);
    m.def("trim", &trim);
}
