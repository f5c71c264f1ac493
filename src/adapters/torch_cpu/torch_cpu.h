/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_cpu.h - libquire_torch_cpu: quire as the memory of PyTorch's CPU tensors
 * (docs/adapters/pytorch_cpu.md).
 *
 * The library registers its allocator with c10::SetCPUAllocator when it is loaded. Tensors that
 * exist by then keep their memory. Environment variables with the prefix QUIRE_TORCH_CPU set the
 * options. If the allocator cannot be created, the library writes the reason to stderr and PyTorch
 * keeps its own. The functions are also operators of PyTorch, torch.ops.quire_cpu.*.
 *
 * Thread-safety: any thread may call any function at any time. In the child of a fork too.
 */
#ifndef QUIRE_TORCH_CPU_H
#define QUIRE_TORCH_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUIRE_TORCH_CPU_API __attribute__((visibility("default")))

/* Whether PyTorch allocates CPU tensors with quire. */
QUIRE_TORCH_CPU_API bool quire_torch_cpu_is_active(void);

/*
 * Writes the statistics as JSON into a buffer of `size` bytes, shortened to fit and terminated with
 * 0, and returns the length of the whole text. 0 means failure. `text` may be NULL if size is 0.
 */
QUIRE_TORCH_CPU_API size_t quire_torch_cpu_stats(char *text, size_t size);

/* Writes a snapshot of the pages and ranges to a file, for `quire map` and `quire report`. Returns
   false on failure. */
QUIRE_TORCH_CPU_API bool quire_torch_cpu_snapshot(const char *path);

/* Record every allocation and free to a file, for `quire replay` and `quire tune`. Return false on
   failure: also if a trace is being recorded (start), or none is (stop). */
QUIRE_TORCH_CPU_API bool quire_torch_cpu_start_trace(const char *path);
QUIRE_TORCH_CPU_API bool quire_torch_cpu_stop_trace(void);

/* Returns the memory of empty caches and pages to the system, and writes the bytes to *released,
   which may be NULL. Returns false on failure. */
QUIRE_TORCH_CPU_API bool quire_torch_cpu_trim(uint64_t *released);

/* The reason of the calling thread's last failure. Valid until its next call. */
QUIRE_TORCH_CPU_API const char *quire_torch_cpu_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
