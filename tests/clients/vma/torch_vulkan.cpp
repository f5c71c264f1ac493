/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// torch_vulkan.cpp - beside PyTorch's own Vulkan sources in one library, which replaces the Vulkan
// kernels of Debian's libtorch: the copies between devices, and what the allocator holds.
#include <ATen/native/vulkan/api/api.h>
#include <ATen/native/vulkan/ops/Copy.h>
#include <ATen/vulkan/Context.h>
#include <torch/library.h>

namespace
{

at::Tensor &copy(at::Tensor &self, const at::Tensor &from, bool)
{
    return at::native::vulkan::ops::copy_(self, from);
}

TORCH_LIBRARY_IMPL(aten, Vulkan, library)
{
    library.impl("copy_", copy);
}

} // namespace

// libtorch does not export its own, which leads copies to kernels of libtorch.
at::vulkan::VulkanImplRegistrar::VulkanImplRegistrar(at::vulkan::VulkanImplInterface *)
{
}

extern "C" uint64_t client_blocks()
{
    at::native::vulkan::api::Adapter *adapter = at::native::vulkan::api::context()->adapter_ptr();
    return adapter->vma().get_memory_statistics().total.statistics.blockCount;
}
