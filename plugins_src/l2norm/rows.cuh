// inner == 1: the values of a row lie side by side, and a warp takes a row.
#pragma once

#include "l2norm/columns.cuh"

namespace trtconv::l2norm
{
inline constexpr int32_t kRowThreads = 128;
inline constexpr int32_t kMostRowThreads = 512;

template <typename T, int V, int ITEMS>
__global__ void __launch_bounds__(kRowThreads)
    heldRows(T const* __restrict__ x, void const* __restrict__ scale, T* __restrict__ y, int64_t outer, Column const p)
{
    int64_t const index = static_cast<int64_t>(blockIdx.x) * (kRowThreads / 32) + threadIdx.x / 32;
    if (index >= outer)
    {
        return; // whole warps leave
    }
    int32_t const lane = threadIdx.x % 32;
    int64_t const base = index * p.channels;
    Pack<T, V> held[ITEMS];
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        int32_t const c = (i * 32 + lane) * V;
        if (c < p.channels)
        {
            held[i] = loadOnce<T, V>(x + base + c);
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            float const value = toFloat(held[i].value[v]);
            sum += value * value;
        }
    }
    float const inverse = reciprocalNorm(warpSum(sum), p.epsilon, p.mode);
    keepPacked(held);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        int32_t const c = (i * 32 + lane) * V;
        if (c < p.channels)
        {
            Pack<T, V> result;
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                float const factor = parameter(scale, p.scaleType, c + v);
                result.value[v] = fromFloat<T>(toFloat(held[i].value[v]) * inverse * factor);
            }
            store<T, V>(y + base + c, result);
        }
    }
}
// Rows of whole 16-byte packs, `team` warps to each. Loads of x and of the scale (in 16-byte words) are on their way before
// the first of them is used.
template <typename T, typename S, int ITEMS>
__global__ void __launch_bounds__(kMostRowThreads)
    packedRows(T const* __restrict__ x, S const* __restrict__ scale, T* __restrict__ y, int64_t outer, int32_t team,
        Column const p)
{
    constexpr int32_t V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    constexpr int32_t W = kVectorBytes / static_cast<int32_t>(sizeof(S)); // parameters of a word
    __shared__ float partial[kMostRowThreads / 32];
    int32_t const warp = static_cast<int32_t>(threadIdx.x) / 32;
    int32_t const first = warp / team * team; // of the row's warps
    auto const warps = static_cast<int32_t>(blockDim.x) / 32;
    int64_t const index = static_cast<int64_t>(blockIdx.x) * (warps / team) + warp / team;
    int32_t const column = (static_cast<int32_t>(threadIdx.x) - first * 32) * V;
    int32_t const step = team * 32 * V;
    int32_t const count = index < outer ? p.channels : 0;
    T const* const from = x + index * p.channels + column;
    Pack<T, V> held[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        if (column + i * step < count)
        {
            held[i] = loadGranule<T, V>(from + i * step);
        }
    }
    Pack<S, W> factor[ITEMS][V / W];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
#pragma unroll
        for (int w = 0; w < V / W; ++w)
        {
            factor[i][w] = {};
            if (column + i * step < count)
            {
                *reinterpret_cast<uint4*>(&factor[i][w])
                    = __ldg(reinterpret_cast<uint4 const*>(scale + column + i * step + w * W));
            }
        }
    }
    float sums[V] = {};
    addSquares(held, sums);
    float sum = 0.0F;
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        sum += sums[v];
    }
    sum = warpSum(sum);
    if (team > 1)
    {
        if (threadIdx.x % 32 == 0)
        {
            partial[warp] = sum;
        }
        __syncthreads();
        sum = 0.0F;
        for (int32_t w = 0; w < team; ++w)
        {
            sum += partial[first + w];
        }
    }
    float const inverse = reciprocalNorm(sum, p.epsilon, p.mode);
    keepPacked(held);
    T* const to = y + index * p.channels + column;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        if (column + i * step < count)
        {
            float values[V];
            unpack(held[i], values);
#pragma unroll
            for (int w = 0; w < V / W; ++w)
            {
                float factors[W];
                unpack(factor[i][w], factors);
#pragma unroll
                for (int v = 0; v < W; ++v)
                {
                    values[w * W + v] *= inverse * factors[v];
                }
            }
            store<T, V>(to + i * step, repack<T>(values));
        }
    }
}
} // namespace trtconv::l2norm
