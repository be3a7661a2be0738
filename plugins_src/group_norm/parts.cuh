// An image in parts that any number of blocks take: each part's moments go to device memory, from where the blocks of a second
// kernel merge those of their image. x is read twice, which pays where clusters leave multiprocessors idle, or where the
// neighbours of every pack are read besides.
#pragma once

#include "common/retention.cuh"
#include "group_norm/images.cuh"

namespace trtconv::group_norm
{
inline constexpr int32_t kPartThreads = 256;
inline constexpr int32_t kOutThreads = 128;
// Parts of an image that a lane of each warp merges.
inline constexpr int32_t kPartsOfLane = 4;
inline constexpr int32_t kMostPartsOfImage = kPartsOfLane * kWarp;

// One access, of an image's part.
struct alignas(16) PartMoments
{
    Moments moments;
    float unused;
};

// p.parts blocks to an image, p.share packs to a block.
template <typename T, int V, int N>
__global__ void __launch_bounds__(kPartThreads)
    momentsOfParts(T const* __restrict__ x, PartMoments* __restrict__ found, Images const p)
{
    __shared__ Moments warps[kWarp];
    // The second kernel may read x meanwhile: its blocks wait for all of this one before they look at what it found.
    letLaterBegin();
    auto const rank = static_cast<int32_t>(blockIdx.x % p.parts);
    T const* const image = x + int64_t{blockIdx.x / p.parts} * p.packs * V;
    int32_t const begin = min(rank * p.share, p.packs);
    Held<T, V, N> const held(image + int64_t{begin} * V, min(p.share, p.packs - begin));
    Moments const all = mergedBlock(threadMoments<T, V, N>(held, toFloat(image[0])), warps);
    if (threadIdx.x == 0)
    {
        found[blockIdx.x] = {all, 0.0F};
    }
}

// Of the image, for each lane of the warp.
__device__ __forceinline__ Moments mergedParts(PartMoments const* found, int32_t parts)
{
    auto const lane = static_cast<int32_t>(threadIdx.x) % kWarp;
    Moments each[kPartsOfLane];
#pragma unroll
    for (int i = 0; i < kPartsOfLane; ++i)
    {
        int32_t const at = i * kWarp + lane;
        float4 const part = at < parts ? __ldcg(reinterpret_cast<float4 const*>(found) + at) : float4{};
        each[i] = {part.x, part.y, part.z};
    }
    return mergedLanes(each);
}

// What a pack's outputs are made of, as far as it does not depend on the image's moments.
template <typename T, int V, bool MIXED>
struct Reading
{
    float values[V];
    // Differences from the image's first value; or how far the neighbours lie above, on average.
    float away[V];
    float factors[V];
    float terms[V];

    __device__ __forceinline__ void take(T const* __restrict__ image, T const* __restrict__ scale, T const* __restrict__ shift,
        Images const& p, int32_t at, float first)
    {
        int32_t const packsOfRow = p.channels / V;
        int32_t const position = at / packsOfRow;
        int32_t const channel = (at - position * packsOfRow) * V;
        unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(image + int64_t{at} * V), values);
        unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(scale + channel), factors);
        if constexpr (MIXED)
        {
            aboveCentre<T, V>(image, p, position, channel, values, away);
        }
        else
        {
            unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(shift + channel), terms);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                away[v] = values[v] - first;
            }
        }
    }

    __device__ __forceinline__ void give(T* to, Moments const& all, float inverse)
    {
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            values[v] = MIXED ? fmaf(away[v] * inverse, factors[v], values[v])
                              : fmaf((away[v] - all.mean) * inverse, factors[v], terms[v]);
        }
        store<T, V>(to, repack<T, V>(values));
    }
};

// `blocks` blocks to an image.
template <typename T, int V, bool MIXED>
__global__ void __launch_bounds__(kOutThreads) normalizeParts(T const* __restrict__ x, T const* __restrict__ scale,
    T const* __restrict__ shift, PartMoments const* found, T* __restrict__ y, Images const p, int32_t blocks)
{
    auto const number = static_cast<int32_t>(blockIdx.x / blocks);
    T const* const image = x + int64_t{number} * p.packs * V;
    T* const out = y + (image - x);
    auto at = static_cast<int32_t>((blockIdx.x % blocks) * kOutThreads + threadIdx.x);
    float const first = toFloat(image[0]);
    Reading<T, V, MIXED> reading;
    if (at < p.packs)
    {
        reading.take(image, scale, shift, p, at, first);
    }
    waitForEarlier();
    Moments const all = mergedParts(found + int64_t{number} * p.parts, p.parts);
    float const inverse = 1.0F / sqrtf(all.squares / all.count + p.epsilon);
    while (at < p.packs)
    {
        reading.give(out + int64_t{at} * V, all, inverse);
        at += blocks * kOutThreads;
        if (at < p.packs)
        {
            reading.take(image, scale, shift, p, at, first);
        }
    }
}
} // namespace trtconv::group_norm
