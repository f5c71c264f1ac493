/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_saxpy.c - y = a * x + y on a CUDA device, with memory in the order of a stream.
 *
 * The program submits allocations, copies, a kernel and frees to one stream and waits once, at the
 * end. Neither the allocations nor the frees wait for the device: what is freed on a stream can be
 * allocated on it again at once, because later work of the stream runs after the earlier work.
 *
 *     cc cuda_saxpy.c $(pkg-config --cflags --libs quire) && ./a.out
 *
 * Neither quire nor this program needs the CUDA Toolkit. The program looks up the driver's
 * functions for kernels at run time; with the Toolkit include <cuda.h> and link with -lcuda.
 *
 * On a driver that cannot run the kernel, as the emulated one of quire's tests, the program omits
 * the kernel, says so, and checks the copies only. The exit status is 77 if the machine has no
 * device.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

#include <quire/cuda.h>
#include <quire/quire.h>

enum { COUNT = 1 << 20, GROUP = 256, NO_DEVICE = 77 };
static const uint64_t BYTES = COUNT * sizeof(float);
static const float A = 2.0f;

/*
 * The kernel of saxpy.cu, beside this file, as PTX, which the driver compiles for its device.
 * clang 14 made it (-O2, sm_50, PTX 7.0); names are shortened. `nvcc -ptx saxpy.cu` writes the same
 * instructions.
 */
static const char PTX[] = ".version 7.0\n"
                          ".target sm_50\n"
                          ".address_size 64\n"
                          ".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y,\n"
                          "                      .param .u32 count)\n"
                          "{\n"
                          "    .reg .pred %p<2>;\n"
                          "    .reg .b32 %r<6>;\n"
                          "    .reg .f32 %f<5>;\n"
                          "    .reg .b64 %rd<8>;\n"
                          "    ld.param.u32 %r2, [count];\n"
                          "    mov.u32 %r3, %ctaid.x;\n"
                          "    mov.u32 %r4, %ntid.x;\n"
                          "    mov.u32 %r5, %tid.x;\n"
                          "    mad.lo.s32 %r1, %r3, %r4, %r5;\n"
                          "    setp.ge.u32 %p1, %r1, %r2;\n"
                          "    @%p1 bra END;\n"
                          "    ld.param.f32 %f1, [a];\n"
                          "    ld.param.u64 %rd3, [y];\n"
                          "    cvta.to.global.u64 %rd1, %rd3;\n"
                          "    ld.param.u64 %rd4, [x];\n"
                          "    cvta.to.global.u64 %rd2, %rd4;\n"
                          "    mul.wide.u32 %rd5, %r1, 4;\n"
                          "    add.s64 %rd6, %rd2, %rd5;\n"
                          "    ld.global.f32 %f2, [%rd6];\n"
                          "    add.s64 %rd7, %rd1, %rd5;\n"
                          "    ld.global.f32 %f3, [%rd7];\n"
                          "    fma.rn.f32 %f4, %f2, %f1, %f3;\n"
                          "    st.global.f32 [%rd7], %f4;\n"
                          "END:\n"
                          "    ret;\n"
                          "}\n";

/* The driver's functions for kernels, with void * for CUcontext, CUmodule, CUfunction, CUstream. */
typedef struct driver {
    void *library; /* NULL: no kernels */
    int (*set_context)(void *context);
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                  unsigned y, unsigned z, unsigned shared_bytes, void *stream, void **arguments,
                  void **extra);
} driver;

typedef struct program {
    quire_device *device;
    quire_memory *memory;
    quire_stream *stream;
    void *native; /* the CUstream of `stream` */
    driver cuda;
    void *module, *kernel;
} program;

/* Both leave the calling function, which returns bool, if the call fails. */
#define QUIRE(call)                                                                                \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "%s\n", quire_last_error());                                           \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define CUDA(call)                                                                                 \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_) {                                                                               \
            fprintf(stderr, #call " returns %d\n", code_);                                         \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- the driver's functions ----------------------------------------------------------------- */

/* Writes the address of a function of the driver. Returns false if the driver has none. */
static bool look_up(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

/* Loads the kernel, or leaves p->kernel NULL if the driver runs none. */
static bool load_kernel(program *p)
{
    driver *cuda = &p->cuda;
    cuda->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda->library || !look_up(cuda->library, "cuCtxSetCurrent", &cuda->set_context) ||
        !look_up(cuda->library, "cuModuleLoadData", &cuda->load) ||
        !look_up(cuda->library, "cuModuleUnload", &cuda->unload) ||
        !look_up(cuda->library, "cuModuleGetFunction", &cuda->find) ||
        !look_up(cuda->library, "cuLaunchKernel", &cuda->launch))
        return true;
    quire_cuda_info info;
    QUIRE(quire_cuda_get_info(p->device, &info));
    CUDA(cuda->set_context(info.context)); /* quire's calls do not change the current context */
    CUDA(cuda->load(&p->module, PTX));
    CUDA(cuda->find(&p->kernel, p->module, "saxpy"));
    return true;
}

static bool launch(program *p, uint64_t x, uint64_t y)
{
    float a = A;
    uint32_t count = COUNT;
    void *arguments[] = {&a, &x, &y, &count};
    if (!p->kernel)
        return true;
    CUDA(p->cuda.launch(p->kernel, (COUNT + GROUP - 1) / GROUP, 1, 1, GROUP, 1, 1, 0, p->native,
                        arguments, NULL));
    return true;
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool open_stream(program *p)
{
    /* Without flags or intent: memory of the device. */
    QUIRE(quire_memory_create(p->device, &(quire_memory_options){.name = "compute"}, &p->memory));
    /* A CUstream of the program's own would be wrapped: quire_cuda_stream_wrap. */
    QUIRE(quire_stream_create(p->device, &(quire_stream_options){.name = "saxpy"}, &p->stream));
    QUIRE(quire_cuda_stream_get(p->stream, &p->native));
    return true;
}

/* Allocates a range for work on the stream, and prints where it is. */
static bool allocate(program *p, const char *name, quire_allocation *allocation,
                     quire_allocation_info *info)
{
    quire_allocation_options options = {
        .size = BYTES, .alignment = 256, .name = name, .stream = p->stream, .info = info};
    QUIRE(quire_allocate(p->memory, &options, allocation));
    printf("%s: page %" PRIu32 ", offset %" PRIu64 ", size %" PRIu64 ", address 0x%" PRIx64 "\n",
           name, info->page, info->offset, info->size, info->address);
    return true;
}

static bool upload(program *p, quire_allocation to, const float *from)
{
    quire_copy_options options = {
        .to = {.memory = p->memory, .allocation = to},
        .host_from = from,
        .size = BYTES,
        .stream = p->stream,
    };
    QUIRE(quire_copy(&options, NULL));
    return true;
}

/* Submits everything. *done receives a point after the last copy, which writes `y` of the host. */
static bool submit(program *p, const float *x, float *y, quire_point *done)
{
    quire_allocation device_x, device_y, scratch;
    quire_allocation_info x_info, y_info, scratch_info;
    if (!allocate(p, "x", &device_x, &x_info) || !allocate(p, "y", &device_y, &y_info) ||
        !upload(p, device_x, x) || !upload(p, device_y, y) ||
        !launch(p, x_info.address, y_info.address))
        return false;
    /* x is not needed after the kernel. The free does not wait for it, and the next request on the
       stream takes the range of x: its work runs after the kernel. */
    QUIRE(quire_free_on_stream(p->memory, device_x, p->stream));
    if (!allocate(p, "scratch", &scratch, &scratch_info))
        return false;
    printf("scratch %s the range of x\n",
           scratch_info.address == x_info.address ? "reuses" : "does not reuse");
    quire_copy_options options = {
        .host_to = y,
        .from = {.memory = p->memory, .allocation = device_y},
        .size = BYTES,
        .stream = p->stream,
    };
    QUIRE(quire_copy(&options, done));
    QUIRE(quire_free_on_stream(p->memory, device_y, p->stream));
    QUIRE(quire_free_on_stream(p->memory, scratch, p->stream));
    return true;
}

/* These floats are exact integers. Without the kernel y must come back as it was sent. */
static bool check_result(const program *p, const float *y)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        float expected = p->kernel ? A * (float)i + 1.0f : 1.0f;
        if (y[i] != expected) {
            fprintf(stderr, "y[%" PRIu32 "] is %g, not %g\n", i, y[i], expected);
            return false;
        }
    }
    if (p->kernel)
        printf("y = %g * x + y is right for %d floats\n", A, COUNT);
    else
        printf("this driver runs no kernels: %d floats were copied there and back\n", COUNT);
    return true;
}

static bool print_statistics(program *p)
{
    quire_memory_stats stats;
    QUIRE(quire_collect(p->memory, NULL)); /* completes the frees whose point has passed */
    QUIRE(quire_memory_get_stats(p->memory, &stats));
    printf("live %" PRIu64 " bytes, peak %" PRIu64 " bytes, reserved %" PRIu64
           " bytes, pages %" PRIu64 ", backend calls %" PRIu64 "\n",
           stats.live_bytes, stats.peak_live_bytes, stats.reserved_bytes, stats.page_count,
           stats.backend_calls);
    return true;
}

/* Destroys everything, also after a failure. */
static bool finish(program *p)
{
    /* Waits for the frees of the stream, and frees what a failure left. */
    if (p->memory)
        quire_memory_destroy_all(&p->memory);
    if (p->module)
        CUDA(p->cuda.unload(p->module));
    if (p->stream)
        QUIRE(quire_stream_destroy(&p->stream));
    QUIRE(quire_device_destroy(&p->device));
    if (p->cuda.library)
        dlclose(p->cuda.library);
    return true;
}

int main(void)
{
    static float x[COUNT], y[COUNT];
    program p = {0};
    quire_point done = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    quire_result opened = quire_cuda_open(NULL, &p.device);
    if (opened) {
        fprintf(stderr, "%s\n", quire_last_error());
        return opened == QUIRE_ERROR_UNSUPPORTED ? NO_DEVICE : 1;
    }
    bool good = load_kernel(&p) && open_stream(&p) && submit(&p, x, y, &done) &&
                !quire_point_await(&done, QUIRE_FOREVER) && check_result(&p, y) &&
                print_statistics(&p);
    good &= finish(&p);
    return good ? 0 : 1;
}
