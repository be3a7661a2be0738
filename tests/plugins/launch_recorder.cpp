// The library's launchers over a CUDA runtime that only writes down what is launched: which kernel with which grid, block
// and shared memory the launcher chooses for a problem, on a machine without a GPU. Linked with -cudart=none.
#include "adaptive_pool/kernel.h"
#include "instance_norm/kernel.h"
#include "l2norm/kernel.h"
#include "reflection_pad/kernel.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>

namespace
{
struct Configuration
{
    dim3 grid;
    dim3 block;
    size_t shared;
    cudaStream_t stream;
};

std::string& recorded()
{
    static std::string text;
    return text;
}

std::map<void const*, std::string>& names()
{
    static std::map<void const*, std::string> known;
    return known;
}

Configuration& pushed()
{
    static Configuration configuration;
    return configuration;
}

cudaError_t record(void const* kernel, dim3 grid, dim3 block, size_t shared)
{
    recorded() += names()[kernel] + ' ' + std::to_string(grid.x) + ' ' + std::to_string(block.x) + ' '
        + std::to_string(shared) + '\n';
    return cudaSuccess;
}
} // namespace

// An H200, for which a launcher finds room for 1024 threads on a multiprocessor.
extern "C"
{
void** __cudaRegisterFatBinary(void*)
{
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, char const* host, char*, char const* name, int, uint3*, uint3*, dim3*, dim3*, int*)
{
    names()[host] = name;
}
void __cudaRegisterVar(void**, char*, char*, char const*, int, size_t, int, int) {}
char __cudaInitModule(void**)
{
    return 1;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream)
{
    pushed() = {grid, block, shared, stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream)
{
    *grid = pushed().grid;
    *block = pushed().block;
    *shared = pushed().shared;
    *static_cast<cudaStream_t*>(stream) = pushed().stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* host)
{
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(
    cudaKernel_t kernel, dim3 grid, dim3 block, void**, size_t shared, cudaStream_t)
{
    return record(kernel, grid, block, shared);
}
cudaError_t cudaLaunchKernel(void const* kernel, dim3 grid, dim3 block, void**, size_t shared, cudaStream_t)
{
    return record(kernel, grid, block, shared);
}
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* c, void const* kernel, void**)
{
    return record(kernel, c->gridDim, c->blockDim, c->dynamicSmemBytes);
}
cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device)
{
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    switch (attribute)
    {
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
    case cudaDevAttrL2CacheSize: *value = 60 << 20; break;
    default: *value = 0; break;
    }
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void const*)
{
    *attributes = {};
    attributes->ptxVersion = 90;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(void const*, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, void const*, int threads, size_t, unsigned)
{
    *blocks = 1024 / threads;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void const*, int threads, size_t)
{
    *blocks = 1024 / threads;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, void const*, cudaLaunchConfig_t const*)
{
    *clusters = 1;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(
    char const*, void**, unsigned, unsigned long long, cudaDriverEntryPointQueryResult*)
{
    return cudaErrorNotSupported;
}

using namespace trtconv;

// `name grid block shared` of each launch, a line to each.
char const* recorded_launches(int status)
{
    static std::string answer;
    answer = status == 0 ? recorded() : "error " + std::to_string(status);
    recorded().clear();
    return answer.c_str();
}

// The launch of a block to a tile: rows of whole granules, else of any packs, where `inner` is 1; windows of granules; else
// columns. With the lanes that were chosen elsewhere (0: here).
char const* record_l2norm(int type, int64_t outer, int64_t channels, int64_t inner, int lanes, int windows)
{
    using l2norm::Route;
    l2norm::Problem p;
    p.type = static_cast<ElementType>(type);
    p.outer = outer;
    p.channels = channels;
    p.inner = inner;
    p.lanes = lanes;
    p.cluster = 1;
    p.route = inner == 1 ? Route::kPackedRows : windows != 0 ? Route::kWindows : Route::kColumns;
    cudaError_t status = l2norm::launch(p, nullptr, nullptr, nullptr, nullptr);
    for (Route const route : {Route::kRows, Route::kColumns})
    {
        if (status == cudaErrorInvalidConfiguration && inner == 1)
        {
            p.route = route;
            status = l2norm::launch(p, nullptr, nullptr, nullptr, nullptr);
        }
    }
    return recorded_launches(status);
}

char const* record_instance_norm(int type, int64_t planes, int64_t channels, int64_t area, int route)
{
    instance_norm::Problem p;
    p.type = static_cast<ElementType>(type);
    p.planes = planes;
    p.channels = channels;
    p.area = area;
    p.route = static_cast<instance_norm::Route>(route);
    return recorded_launches(instance_norm::launch(p, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
}

char const* record_reflection_pad(int type, int64_t planes, int64_t height, int64_t width, int const* pads)
{
    reflection_pad::Problem p;
    p.type = static_cast<ElementType>(type);
    p.planes = planes;
    p.height = height;
    p.width = width;
    p.top = pads[0];
    p.left = pads[1];
    p.bottom = pads[2];
    p.right = pads[3];
    return recorded_launches(reflection_pad::launch(p, nullptr, nullptr, nullptr));
}

char const* record_adaptive_pool(int type, int64_t planes, int64_t height, int64_t width, int outHeight, int outWidth)
{
    adaptive_pool::Problem p;
    p.type = static_cast<ElementType>(type);
    p.planes = planes;
    p.height = height;
    p.width = width;
    p.outHeight = outHeight;
    p.outWidth = outWidth;
    return recorded_launches(adaptive_pool::launch(p, nullptr, nullptr, nullptr));
}
}
