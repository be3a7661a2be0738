#include "linear/kernel.h"

#include "common/device.h"
#include "common/gelu.cuh"
#include "common/pack.cuh"
#include "linear/products.h"

namespace trtconv::linear
{
namespace
{
constexpr int32_t kThreads = 256;

// In place, a pack to a thread. What a product wrote is still in the L2 cache.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads) geluOf(T* y, int64_t packs)
{
    int64_t const at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at < packs)
    {
        auto* const pack = reinterpret_cast<Pack<T, V>*>(y) + at;
        float values[V];
        unpack<T, V>(*pack, values);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            values[v] = gelu<T>(values[v]);
        }
        *pack = repack<T, V>(values);
    }
}

template <typename T, int V>
cudaError_t launchGelu(void* y, int64_t count, cudaStream_t stream)
{
    int64_t const blocks = ceilDiv(count / V, kThreads);
    if (blocks > kMaxGrid)
    {
        return cudaErrorInvalidConfiguration;
    }
    geluOf<T, V><<<static_cast<uint32_t>(blocks), kThreads, 0, stream>>>(static_cast<T*>(y), count / V);
    return cudaGetLastError();
}
} // namespace

bool hasLibrary() noexcept
{
    return Products::instance().ready();
}

cudaError_t launch(Problem const& p, void const* x, void const* weight, void const* bias, void const* addend, void* y,
    void* workspace, cudaStream_t stream)
{
    if (p.rows < 0 || p.depth < 1 || p.columns < 1)
    {
        return cudaErrorInvalidValue;
    }
    if (p.rows == 0)
    {
        return cudaSuccess;
    }
    bool const tangent = p.activation == Activation::kGeluTangent;
    Tensors const tensors{x, weight, bias, addend, y};
    cudaError_t const status = Products::instance().run(p, tangent, tensors, workspace, stream);
    if (status != cudaSuccess || p.activation != Activation::kGelu)
    {
        return status;
    }
    return dispatchElement(p.type, [&](auto element) {
        using T = decltype(element);
        constexpr int pack = kVectorBytes / sizeof(T);
        int64_t const count = p.rows * p.columns;
        return count % pack == 0 && reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0 ? launchGelu<T, pack>(y, count, stream)
                                                                                      : launchGelu<T, 1>(y, count, stream);
    });
}
} // namespace trtconv::linear
