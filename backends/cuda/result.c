/*
 * result.c - translates the error codes of the CUDA driver.
 */
#include <stdarg.h>
#include <stdio.h>

#include "backends/cuda/cuda.h"

/* What a code becomes. The advice says what to do, for codes whose name does not. */
typedef struct meaning {
    qi_cu_result code;
    quire_result result;
    const char *advice; /* NULL: none */
} meaning;

#define NO_CUDA "CUDA no longer works in this process: end it and start it again"
#define NO_DEVICE "check nvidia-smi, CUDA_VISIBLE_DEVICES, and that the container has the GPU"
#define NO_MPS "check the log of the MPS control daemon"

/*
 * Grouped by result. After the codes of a lost device every call in the context returns the same
 * code until the process ends, except DEINITIALIZED, with which the driver has shut down, as at the
 * end of a process, and CONTEXT_IS_DESTROYED.
 */
static const meaning MEANINGS[] = {
    {QI_CUDA_ERROR_DEINITIALIZED, QUIRE_ERROR_DEVICE_LOST, NULL},
    {QI_CUDA_ERROR_CONTEXT_IS_DESTROYED, QUIRE_ERROR_DEVICE_LOST, NULL},
    {QI_CUDA_ERROR_ECC_UNCORRECTABLE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_NVLINK_UNCORRECTABLE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_CONTAINED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ILLEGAL_ADDRESS, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_LAUNCH_TIMEOUT, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ASSERT, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_HARDWARE_STACK_ERROR, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_ILLEGAL_INSTRUCTION, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_MISALIGNED_ADDRESS, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_INVALID_ADDRESS_SPACE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_INVALID_PC, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_LAUNCH_FAILED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_TENSOR_MEMORY_LEAK, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_MPS_CLIENT_TERMINATED, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},
    {QI_CUDA_ERROR_EXTERNAL_DEVICE, QUIRE_ERROR_DEVICE_LOST, NO_CUDA},

    {QI_CUDA_ERROR_INVALID_VALUE, QUIRE_ERROR_INVALID_ARGUMENT, NULL},
    {QI_CUDA_ERROR_INVALID_HANDLE, QUIRE_ERROR_INVALID_ARGUMENT, NULL},
    {QI_CUDA_ERROR_OUT_OF_MEMORY, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, NULL},

    {QI_CUDA_ERROR_STUB_LIBRARY, QUIRE_ERROR_UNSUPPORTED,
     "CUDA driver not found: the library is the Toolkit's stub"},
    {QI_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, QUIRE_ERROR_UNSUPPORTED, "install a newer driver"},
    {QI_CUDA_ERROR_NO_DEVICE, QUIRE_ERROR_UNSUPPORTED, NO_DEVICE},
    {QI_CUDA_ERROR_INVALID_DEVICE, QUIRE_ERROR_UNSUPPORTED, NO_DEVICE},
    {QI_CUDA_ERROR_DEVICE_NOT_LICENSED, QUIRE_ERROR_UNSUPPORTED,
     "the virtual GPU has no licence: check the service nvidia-gridd"},
    {QI_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, QUIRE_ERROR_UNSUPPORTED, NULL},
    {QI_CUDA_ERROR_NOT_SUPPORTED, QUIRE_ERROR_UNSUPPORTED, NULL},
    {QI_CUDA_ERROR_SYSTEM_NOT_READY, QUIRE_ERROR_UNSUPPORTED,
     "start the daemons that the machine needs, such as nvidia-fabricmanager for NVSwitch"},
    {QI_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, QUIRE_ERROR_UNSUPPORTED,
     "libcuda.so.1 and the kernel module have different versions: restart the machine after an "
     "update of the driver"},
    {QI_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, QUIRE_ERROR_UNSUPPORTED,
     "remove the libraries of cuda-compat from the search path: they do not support this GPU"},

    {QI_CUDA_ERROR_NOT_INITIALIZED, QUIRE_ERROR_NOT_PERMITTED,
     "a child of a fork cannot use CUDA if its parent had used it: start it with exec"},
    {QI_CUDA_ERROR_DEVICE_UNAVAILABLE, QUIRE_ERROR_NOT_PERMITTED,
     "the compute mode forbids the device, or reserves it for another process: nvidia-smi -q -d "
     "COMPUTE shows it"},
    {QI_CUDA_ERROR_NOT_PERMITTED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_ISOLATION, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, QUIRE_ERROR_NOT_PERMITTED, NULL},
    {QI_CUDA_ERROR_CAPTURED_EVENT, QUIRE_ERROR_NOT_PERMITTED, NULL},

    {QI_CUDA_ERROR_NOT_READY, QUIRE_ERROR_BACKEND_FAILURE,
     "other threads kept the driver busy for about a second: try again"},

    {QI_CUDA_ERROR_MPS_CONNECTION_FAILED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_RPC_FAILURE, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_SERVER_NOT_READY, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, NO_MPS},
    {QI_CUDA_ERROR_UNKNOWN, QUIRE_ERROR_BACKEND_FAILURE,
     "the driver gives no reason: nvidia-smi and the log of the kernel (dmesg) may"},
};

/* Codes that the table lacks, newer ones included, are BACKEND_FAILURE. */
static const meaning *find(qi_cu_result code)
{
    static const meaning other = {.result = QUIRE_ERROR_BACKEND_FAILURE};
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (MEANINGS[i].code == code)
            return &MEANINGS[i];
    return &other;
}

quire_result qi_cuda_result(qi_cu_result code)
{
    return find(code)->result;
}

bool qi_cuda_is_lost(qi_cu_result code)
{
    return find(code)->result == QUIRE_ERROR_DEVICE_LOST;
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
    const meaning *found = find(code);
    return quire_backend_fail(found->result, code, "%s: %s (CUresult %u)%s%s", what, name, code,
                              found->advice ? ": " : "", found->advice ? found->advice : "");
}
