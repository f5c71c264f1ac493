/* fake_cuda_share.c - the fake CUDA driver: memory shared with another process, and memory of other
   drivers. */
#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const qi_cu_handle_type FD = QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
static const qi_cu_handle_type FABRIC = QI_CU_MEM_HANDLE_TYPE_FABRIC;

static void *as_pointer(int fd)
{
    return (void *)(intptr_t)fd;
}

static qi_cu_handle make_shared(qi_cu_handle_type types)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    prop.requestedHandleTypes = types;
    CHECK_CU(cu.MemCreate(&handle, FC_PIECE, &prop, 0));
    return handle;
}

static qi_cu_ptr map(qi_cu_handle handle)
{
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_ptr pointer = fc_reserve(FC_PIECE);
    CHECK_CU(cu.MemMap(pointer, FC_PIECE, 0, handle, 0));
    CHECK_CU(cu.MemSetAccess(pointer, FC_PIECE, &desc, 1));
    return pointer;
}

UNIT(fake_cuda_share, a_descriptor_brings_the_same_memory_back)
{
    int fd;
    qi_cu_handle again;
    (void)fc_fixture_open(NULL);
    qi_cu_handle handle = make_shared(FD);
    qi_cu_ptr first = map(handle);
    fc_write(first, 31);
    CHECK_CU(cu.MemExportToShareableHandle(&fd, handle, FD, 0));
    CHECK_CU(cu.MemImportFromShareableHandle(&again, as_pointer(fd), FD));
    CHECK(!close(fd)); /* the descriptor stays the program's */
    qi_cu_ptr second = map(again);
    CHECK_EQ(fc_read(second), 31);
    CHECK_EQ(fc_usage_of(0).bytes, FC_PIECE); /* its bytes count once */
    fc_unmapped(first, FC_PIECE, handle);
    CHECK_EQ(fc_read(second), 31);
    fc_unmapped(second, FC_PIECE, again);
    fc_fixture_close();
}

static void send_fd(int socket, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    CHECK_EQ(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
    int fd;
    char control[CMSG_SPACE(sizeof fd)], byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQ(recvmsg(socket, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/* Forked before the driver is initialised, as the driver requires. Reads, answers, and exits. */
static int importer(int socket)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop;
    (void)fc_fixture_open(NULL);
    int fd = receive_fd(socket);
    CHECK_CU(cu.MemImportFromShareableHandle(&handle, as_pointer(fd), FD));
    CHECK(!close(fd));
    CHECK_CU(cu.MemGetAllocationPropertiesFromHandle(&prop, handle));
    CHECK_EQ(prop.location.type, QI_CU_MEM_LOCATION_TYPE_DEVICE);
    CHECK_EQ(fc_usage_of(0).bytes, 0); /* written by the exporter */
    qi_cu_ptr pointer = map(handle);
    CHECK_EQ(fc_read(pointer), 41);
    fc_write(pointer + FC_PIECE - 8, 42);
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
    return 0;
}

UNIT(fake_cuda_share, another_process_has_it_too)
{
    int sockets[2], fd;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    pid_t child = fork();
    if (!child)
        child_end(!importer(sockets[1]));
    (void)fc_fixture_open(NULL);
    qi_cu_handle handle = make_shared(FD);
    qi_cu_ptr pointer = map(handle);
    fc_write(pointer, 41);
    CHECK_CU(cu.MemExportToShareableHandle(&fd, handle, FD, 0));
    send_fd(sockets[0], fd);
    CHECK(child_was_well(child));
    CHECK_EQ(fc_read(pointer + FC_PIECE - 8), 42);
    CHECK(!close(fd) && !close(sockets[0]) && !close(sockets[1]));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_share, what_was_not_asked_for_is_not_exported)
{
    int fd;
    qi_cu_fabric_handle fabric;
    (void)fc_fixture_open(NULL);
    qi_cu_handle plain = fc_make(FC_PIECE), shared = make_shared(FD);
    CHECK_CODE(cu.MemExportToShareableHandle(&fd, plain, FD, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemExportToShareableHandle(NULL, shared, FD, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemExportToShareableHandle(&fd, shared, FD, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemExportToShareableHandle(&fabric, shared, FABRIC, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemExportToShareableHandle(&fd, shared, 0, 0), INVALID_VALUE);
    CHECK_CU(cu.MemRelease(plain));
    CHECK_CU(cu.MemRelease(shared));
    fc_fixture_close();
}

UNIT(fake_cuda_share, what_is_no_memory_is_not_imported)
{
    qi_cu_handle handle;
    int pipes[2], file = memfd_create("test", 0);
    (void)fc_fixture_open(NULL);
    CHECK(!pipe(pipes) && file >= 0 && !ftruncate(file, 1 << 20));
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, as_pointer(pipes[0]), FD), INVALID_VALUE);
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, as_pointer(file), FD), INVALID_VALUE);
    CHECK_CODE(cu.MemImportFromShareableHandle(NULL, as_pointer(file), FD), INVALID_VALUE);
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, as_pointer(file), 3), INVALID_VALUE);
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, NULL, FABRIC), INVALID_VALUE);
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, NULL, QI_CU_MEM_HANDLE_TYPE_WIN32),
               NOT_SUPPORTED);
    CHECK(!close(file) && !close(pipes[0]) && !close(pipes[1]));
    CHECK_CODE(cu.MemImportFromShareableHandle(&handle, as_pointer(file), FD), INVALID_VALUE);
    fc_fixture_close();
}

UNIT(fake_cuda_share, the_fabric_carries_where_it_is_permitted)
{
    qi_cu_fabric_handle fabric;
    qi_cu_handle again;
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("gh200")}});
    qi_cu_handle handle = make_shared(FABRIC | FD);
    CHECK_CU(cu.MemExportToShareableHandle(&fabric, handle, FABRIC, 0));
    CHECK_CU(cu.MemImportFromShareableHandle(&again, &fabric, FABRIC));
    qi_cu_ptr first = map(handle), second = map(again);
    fc_write(first, 51);
    CHECK_EQ(fc_read(second), 51);
    memset(&fabric, 1, sizeof fabric);
    CHECK_CODE(cu.MemImportFromShareableHandle(&again, &fabric, FABRIC), INVALID_VALUE);
    fc_unmapped(first, FC_PIECE, handle);
    fc_unmapped(second, FC_PIECE, again);
    fc_fixture_close();
}

UNIT(fake_cuda_share, a_range_of_addresses_has_a_descriptor)
{
    int fd = -1;
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    qi_cu_range_type type = QI_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    CHECK_CU(cu.MemGetHandleForAddressRange(&fd, pointer, FC_PIECE, type, 0));
    CHECK(fcntl(fd, F_GETFD) >= 0 && !close(fd));
    CHECK_CODE(cu.MemGetHandleForAddressRange(&fd, pointer, 2 * FC_PIECE, type, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemGetHandleForAddressRange(&fd, pointer + 8, 4096, type, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemGetHandleForAddressRange(NULL, pointer, FC_PIECE, type, 0), INVALID_VALUE);
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

/* ---- of other drivers --------------------------------------------------------------------- */

UNIT(fake_cuda_share, memory_of_another_driver_is_mapped)
{
    enum { SIZE = 1 << 16 };
    qi_cu_external external;
    qi_cu_ptr buffer;
    int file = memfd_create("test", 0), copy = dup(file);
    CHECK(!ftruncate(file, SIZE));
    uint64_t *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
    CHECK(bytes != MAP_FAILED);
    (void)fc_fixture_open(NULL);
    qi_cu_external_desc desc = {
        .type = QI_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle = {.fd = file}, .size = SIZE};
    qi_cu_external_buffer whole = {.offset = 8192, .size = 4096};
    CHECK_CODE(cu.ImportExternalMemory(NULL, &desc), INVALID_VALUE);
    CHECK_CU(cu.ImportExternalMemory(&external, &desc)); /* the driver owns the descriptor now */
    CHECK_CU(cu.ExternalMemoryGetMappedBuffer(&buffer, external, &whole));
    fc_write(buffer, 61);
    CHECK_EQ(bytes[1024], 61);
    bytes[1025] = 62;
    CHECK_EQ(fc_read(buffer + 8), 62);
    whole.offset = SIZE;
    CHECK_CODE(cu.ExternalMemoryGetMappedBuffer(&buffer, external, &whole), INVALID_VALUE);
    CHECK_CU(cu.MemFree(buffer));
    CHECK_CU(cu.DestroyExternalMemory(external));
    CHECK(fcntl(file, F_GETFD) < 0);
    desc.handle.fd = file;
    CHECK_CODE(cu.ImportExternalMemory(&external, &desc), INVALID_HANDLE);
    desc.handle.fd = copy;
    desc.size = SIZE + 1;
    CHECK_CODE(cu.ImportExternalMemory(&external, &desc), INVALID_VALUE);
    fc_fixture_close();
    CHECK(!munmap(bytes, SIZE) && !close(copy));
}
