/*
 * result.c - translates the error codes of the CUDA driver.
 */
#include <stdarg.h>
#include <stdio.h>

#include "backends/cuda/cuda.h"

/* Codes that the list does not name, newer ones included, become BACKEND_FAILURE. */
quire_result qi_cuda_result(qi_cu_result code)
{
    if (qi_cuda_is_lost(code))
        return QUIRE_ERROR_DEVICE_LOST;
    switch (code) {
    case QI_CUDA_ERROR_INVALID_VALUE:
    case QI_CUDA_ERROR_INVALID_HANDLE:
        return QUIRE_ERROR_INVALID_ARGUMENT;
    case QI_CUDA_ERROR_OUT_OF_MEMORY:
        return QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    case QI_CUDA_ERROR_STUB_LIBRARY:
    case QI_CUDA_ERROR_NO_DEVICE:
    case QI_CUDA_ERROR_INVALID_DEVICE:
    case QI_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case QI_CUDA_ERROR_NOT_SUPPORTED:
    case QI_CUDA_ERROR_SYSTEM_NOT_READY:
    case QI_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case QI_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return QUIRE_ERROR_UNSUPPORTED;
    case QI_CUDA_ERROR_NOT_PERMITTED:
    case QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case QI_CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case QI_CUDA_ERROR_CAPTURED_EVENT:
        return QUIRE_ERROR_NOT_PERMITTED;
    default:
        return QUIRE_ERROR_BACKEND_FAILURE;
    }
}

/*
 * After a fault on the device every call in its context returns the same code until the process
 * ends. CUDA_ERROR_DEINITIALIZED means that the driver has shut down, as at the end of a process.
 */
bool qi_cuda_is_lost(qi_cu_result code)
{
    switch (code) {
    case QI_CUDA_ERROR_DEINITIALIZED:
    case QI_CUDA_ERROR_ECC_UNCORRECTABLE:
    case QI_CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case QI_CUDA_ERROR_ILLEGAL_ADDRESS:
    case QI_CUDA_ERROR_LAUNCH_TIMEOUT:
    case QI_CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case QI_CUDA_ERROR_ASSERT:
    case QI_CUDA_ERROR_HARDWARE_STACK_ERROR:
    case QI_CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case QI_CUDA_ERROR_MISALIGNED_ADDRESS:
    case QI_CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case QI_CUDA_ERROR_INVALID_PC:
    case QI_CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* The driver may not know the code, or may lack cuGetErrorName: the name is then "unknown". */
quire_result qi_cuda_fail(const qi_cuda_functions *f, qi_cu_result code, const char *format, ...)
{
    char what[256];
    const char *name = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!f->GetErrorName || f->GetErrorName(code, &name) || !name)
        name = "unknown";
    return quire_backend_fail(qi_cuda_result(code), code, "%s: %s (CUresult %u)", what, name, code);
}
