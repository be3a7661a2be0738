/* libcuda.so.1 without a GPU: device memory is host memory, contexts are numbers, every thread has a stack of them.
   It counts what lives and ends the process where a call needs a context and none is current. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LIMIT (64u << 20)

typedef unsigned long long ptr;
static int live_buffers, live_streams, live_events, pushes, wrong;
static size_t used;
static int primary, other;
static __thread void *stack[64];
static __thread int depth;

static void need(const char *name) {
    if (!depth) { fprintf(stderr, "%s without a current context\n", name); __sync_fetch_and_add(&wrong, 1); }
}

EXPORT int stub_live(void) { return live_buffers + live_streams + live_events; }
EXPORT int stub_pushes(void) { return pushes; }
EXPORT int stub_wrong(void) { return wrong; }
EXPORT int stub_depth(void) { return depth; }

EXPORT int cuInit(unsigned flags) { return (void)flags, 0; }
EXPORT int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
EXPORT int cuDeviceGetCount(int *count) { *count = 1; return 0; }
EXPORT int cuDeviceGet(int *device, int index) { *device = index; return 0; }
EXPORT int cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, length, "stub"); return 0; }
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = LIMIT; return 0; }
EXPORT int cuDeviceGetUuid(void *uuid, int device) { (void)device; memset(uuid, 7, 16); return 0; }
EXPORT int cuDeviceGetAttribute(int *value, int what, int device) { (void)what, (void)device; *value = 9; return 0; }
EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device) {
    (void)device; *major = 9, *minor = 0; return 0;
}
EXPORT int cuGetErrorName(int code, const char **text) { (void)code; *text = "CUDA_ERROR_STUB"; return 0; }
EXPORT int cuGetErrorString(int code, const char **text) { (void)code; *text = "a stub's error"; return 0; }

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &primary; return 0; }
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, 0; }
/* A context that is destroyed while it is current is popped. */
EXPORT int cuCtxDetach(void *context) { if (depth && stack[depth - 1] == context) depth--; return 0; }
EXPORT int cuCtxCreate_v4(void **context, void *params, unsigned flags, int device) {
    (void)params, (void)flags, (void)device;
    stack[depth++] = *context = &other;
    return 0;
}
EXPORT int cuCtxPushCurrent_v2(void *context) { stack[depth++] = context; __sync_fetch_and_add(&pushes, 1); return 0; }
EXPORT int cuCtxPopCurrent_v2(void **context) {
    if (!depth) return 201;
    *context = stack[--depth];
    return 0;
}
EXPORT int cuCtxGetCurrent(void **context) { *context = depth ? stack[depth - 1] : 0; return 0; }
EXPORT int cuCtxGetDevice(int *device) { need("cuCtxGetDevice"); *device = 0; return 0; }

EXPORT int cuMemAlloc_v2(ptr *pointer, size_t size) {
    need("cuMemAlloc");
    if (__sync_add_and_fetch(&used, size) > LIMIT) { __sync_sub_and_fetch(&used, size); return 2; }
    size_t *block = malloc(size + 64);
    block[0] = size, block[1] = (size_t)stack[depth - 1];
    *pointer = (ptr)block + 64;
    __sync_fetch_and_add(&live_buffers, 1);
    return 0;
}
EXPORT int cuMemFree_v2(ptr pointer) {
    need("cuMemFree");
    size_t *block = (size_t *)(pointer - 64);
    __sync_sub_and_fetch(&used, block[0]);
    free(block);
    __sync_sub_and_fetch(&live_buffers, 1);
    return 0;
}
EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total) { need("cuMemGetInfo"); *left = LIMIT - used; *total = LIMIT; return 0; }
EXPORT int cuPointerGetAttribute(void *value, int what, ptr pointer) {
    (void)what;
    *(void **)value = (void *)((size_t *)(pointer - 64))[1];
    return 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t size, void *stream) {
    (void)stream; need("cuMemcpyHtoDAsync"); memcpy((void *)to, from, size); return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t size, void *stream) {
    (void)stream; need("cuMemcpyDtoHAsync"); memcpy(to, (void *)from, size); return 0;
}
EXPORT int cuMemcpyHtoD_v2(ptr to, const void *from, size_t size) { return cuMemcpyHtoDAsync_v2(to, from, size, 0); }
EXPORT int cuMemcpyDtoH_v2(void *to, ptr from, size_t size) { return cuMemcpyDtoHAsync_v2(to, from, size, 0); }
EXPORT int cuMemcpyDtoDAsync_v2(ptr to, ptr from, size_t size, void *stream) {
    (void)stream; need("cuMemcpyDtoDAsync"); memcpy((void *)to, (void *)from, size); return 0;
}

static int make(const char *name, void **handle, int *live) {
    need(name); *handle = malloc(1); __sync_fetch_and_add(live, 1); return 0;
}
static int destroy(const char *name, void *handle, int *live) {
    need(name); free(handle); __sync_sub_and_fetch(live, 1); return 0;
}
EXPORT int cuStreamCreate(void **stream, unsigned flags) { (void)flags; return make("cuStreamCreate", stream, &live_streams); }
EXPORT int cuStreamDestroy_v2(void *stream) { return destroy("cuStreamDestroy", stream, &live_streams); }
EXPORT int cuStreamSynchronize(void *stream) { (void)stream; need("cuStreamSynchronize"); return 0; }
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream, (void)event, (void)flags; return 0; }
EXPORT int cuEventCreate(void **event, unsigned flags) { (void)flags; return make("cuEventCreate", event, &live_events); }
EXPORT int cuEventDestroy_v2(void *event) { return destroy("cuEventDestroy", event, &live_events); }
EXPORT int cuEventRecord(void *event, void *stream) { (void)event, (void)stream; need("cuEventRecord"); return 0; }
EXPORT int cuEventSynchronize(void *event) { (void)event; return 0; }
EXPORT int cuEventElapsedTime(float *ms, void *start, void *end) { (void)start, (void)end; *ms = 2; return 0; }
EXPORT int cuEventElapsedTime_v2(float *ms, void *start, void *end) { return cuEventElapsedTime(ms, start, end); }

/* Only CUDA graphs use these, which nothing here captures. */
#define ABSENT(name) EXPORT int name(void) { return 801; }
ABSENT(cuStreamBeginCapture_v2) ABSENT(cuStreamEndCapture) ABSENT(cuGraphInstantiateWithFlags)
ABSENT(cuGraphLaunch) ABSENT(cuGraphExecDestroy) ABSENT(cuGraphDestroy)
