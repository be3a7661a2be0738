// One block takes all channels of a run of neighbouring positions (a tile) and keeps them in registers between the sum and
// the scaling, so that x is read from device memory once. Lanes lie along `inner` (coalesced), rows of lanes along
// channels. For what windows.cuh does not take: packs of any width.
#pragma once

#include "common/pack.cuh"

namespace trtconv::l2norm
{
inline constexpr int32_t kThreads = 512;
inline constexpr int32_t kWarps = kThreads / 32;

__device__ __forceinline__ float reciprocalNorm(float squares, float epsilon, int32_t mode)
{
    float const root = sqrtf(mode == 1 ? squares + epsilon : squares);
    float const norm = mode == 0 ? root + epsilon : (mode == 1 ? root : fmaxf(root, epsilon));
    return 1.0F / norm;
}

struct Column
{
    int32_t channels;
    int64_t inner;
    int64_t tiles;
    int32_t lanesLog2;
    float epsilon;
    int32_t mode;
    ElementType scaleType;
};

// From the threads' sums of squares of their own values the reciprocal norms of their positions. One thread a position
// adds up the warps' sums, so that square roots and divisions are done once.
template <int V>
__device__ __forceinline__ void reciprocalNorms(float (&sum)[V], int32_t lanes, float epsilon, int32_t mode)
{
    __shared__ __align__(16) float partial[kWarps][32 * V];
    __shared__ __align__(16) float norms[32 * V];
    int32_t const warp = threadIdx.x / 32;
    int32_t const lane = threadIdx.x % 32;
    int32_t const column = (lane & (lanes - 1)) * V;
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        for (int32_t step = lanes; step < 32; step *= 2)
        {
            sum[v] += __shfl_xor_sync(0xffffffffU, sum[v], step);
        }
        if (lane < lanes)
        {
            partial[warp][column + v] = sum[v];
        }
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < lanes * V; i += kThreads)
    {
        float total = 0.0F;
#pragma unroll
        for (int w = 0; w < kWarps; ++w)
        {
            total += partial[w][i];
        }
        norms[i] = reciprocalNorm(total, epsilon, mode);
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        sum[v] = norms[column + v];
    }
}

template <typename T, int V, int ITEMS>
__device__ __forceinline__ void addSquares(Pack<T, V> const (&held)[ITEMS], float (&sum)[V])
{
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        float values[V];
        unpack(held[i], values);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            sum[v] = fmaf(values[v], values[v], sum[v]);
        }
    }
}

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> scaled(Pack<T, V> const& pack, float const (&inverse)[V], float factor)
{
    float values[V];
    unpack(pack, values);
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        values[v] *= inverse[v] * factor;
    }
    return repack<T>(values);
}

// A granule of 16 bytes that is read once. Leaving it to L2 when to let it go was faster than asking it to.
template <typename T, int V>
__device__ __forceinline__ Pack<T, V> loadGranule(T const* from)
{
    static_assert(sizeof(T) * V == kVectorBytes, "a granule");
    Pack<T, V> pack;
    *reinterpret_cast<uint4*>(&pack) = __ldg(reinterpret_cast<uint4 const*>(from));
    return pack;
}

// Two blocks to a multiprocessor, so that one loads while the other stores.
template <typename T, int V, int ITEMS>
__global__ void __launch_bounds__(kThreads, 2)
    heldColumns(T const* __restrict__ x, void const* __restrict__ scale, T* __restrict__ y, Column const p)
{
    int32_t const lanes = 1 << p.lanesLog2;
    int32_t const rows = kThreads >> p.lanesLog2;
    int32_t const row = threadIdx.x >> p.lanesLog2;
    int64_t const outer = blockIdx.x / p.tiles;
    int64_t const position = ((blockIdx.x % p.tiles) * lanes + (threadIdx.x & (lanes - 1))) * V;
    bool const inside = position < p.inner;
    int64_t const base = outer * p.channels * p.inner + row * p.inner + position;
    int64_t const step = rows * p.inner;

    Pack<T, V> held[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        if (inside && row + i * rows < p.channels)
        {
            held[i] = loadOnce<T, V>(x + base + i * step);
        }
    }
    float sum[V] = {};
    addSquares(held, sum);
    reciprocalNorms<V>(sum, lanes, p.epsilon, p.mode);
    keepPacked(held);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        if (inside && row + i * rows < p.channels)
        {
            float const factor = parameter(scale, p.scaleType, row + i * rows);
            store<T, V>(y + base + i * step, scaled(held[i], sum, factor));
        }
    }
}

// Columns that are too long for registers: x is read again, mostly from L2.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    reloadedColumns(T const* __restrict__ x, void const* __restrict__ scale, T* __restrict__ y, Column const p)
{
    int32_t const lanes = 1 << p.lanesLog2;
    int32_t const rows = kThreads >> p.lanesLog2;
    int32_t const row = threadIdx.x >> p.lanesLog2;
    int64_t const outer = blockIdx.x / p.tiles;
    int64_t const position = (blockIdx.x % p.tiles) * lanes + (threadIdx.x & (lanes - 1));
    bool const inside = position < p.inner;
    int64_t const base = outer * p.channels * p.inner + position;

    float sum[1] = {0.0F};
    if (inside)
    {
#pragma unroll 8
        for (int32_t c = row; c < p.channels; c += rows)
        {
            float const value = toFloat(x[base + c * p.inner]);
            sum[0] += value * value;
        }
    }
    reciprocalNorms<1>(sum, lanes, p.epsilon, p.mode);
    if (inside)
    {
#pragma unroll 8
        for (int32_t c = row; c < p.channels; c += rows)
        {
            float const value = toFloat(x[base + c * p.inner]);
            y[base + c * p.inner] = fromFloat<T>(value * sum[0] * parameter(scale, p.scaleType, c));
        }
    }
}
} // namespace trtconv::l2norm
