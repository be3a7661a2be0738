// Blocks of a cluster take an image together, each a range of its packs, which stay in registers while the moments of all are
// put together. Moments are of differences from the image's first value, each thread's about its own mean, so that a large
// mean costs no digits.
#pragma once

#include "common/cluster.cuh"
#include "common/pack.cuh"

namespace trtconv::group_norm
{
inline constexpr int32_t kMostThreads = 1024;
inline constexpr int32_t kWarp = 32;
// The most blocks of a cluster that every GPU with clusters has.
inline constexpr int32_t kMostParts = 8;
inline constexpr int32_t kMoments = 3;

struct Images
{
    int32_t height;
    int32_t width;
    int32_t channels;
    // Packs of an image, and how many of them a block takes.
    int32_t packs;
    int32_t share;
    // Blocks to an image; more than one are a cluster.
    int32_t parts;
    float epsilon;
};

struct Moments
{
    float count;
    float mean;
    float squares;
};

// What an average needs of several moments, and then their squares about it, which lose nothing to a large mean.
struct Sums
{
    float count{0.0F};
    float sum{0.0F};

    __device__ __forceinline__ void add(Moments const& part)
    {
        count += part.count;
        sum = fmaf(part.count, part.mean, sum);
    }

    __device__ __forceinline__ float mean() const
    {
        return count > 0.0F ? sum / count : 0.0F;
    }
};

__device__ __forceinline__ float squaresAbout(Moments const& part, float mean)
{
    float const away = part.mean - mean;
    return fmaf(part.count * away, away, part.squares);
}

// Of the warp's lanes with COUNT moments each, for each of them.
template <int COUNT>
__device__ __forceinline__ Moments mergedLanes(Moments const (&mine)[COUNT])
{
    Sums sums;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
    {
        sums.add(mine[i]);
    }
    sums = {warpSum(sums.count), warpSum(sums.sum)};
    float const mean = sums.mean();
    float squares = 0.0F;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
    {
        squares += squaresAbout(mine[i], mean);
    }
    return {sums.count, mean, warpSum(squares)};
}

// Of the block's threads, for each of them.
__device__ __forceinline__ Moments mergedBlock(Moments const& mine, Moments* warps)
{
    auto const me = static_cast<int32_t>(threadIdx.x);
    auto const count = static_cast<int32_t>(blockDim.x) / kWarp;
    Moments const lanes = mergedLanes<1>({mine});
    if (me % kWarp == 0)
    {
        warps[me / kWarp] = lanes;
    }
    __syncthreads();
    return mergedLanes<1>({me % kWarp < count ? warps[me % kWarp] : Moments{0.0F, 0.0F, 0.0F}});
}

// What a thread takes of its block's packs: up to N stay in registers; of N = 0 each is read anew whenever it is looked at.
template <typename T, int V, int N>
struct Held
{
    Pack<T, V> packs[N > 0 ? N : 1];
    T const* x;
    int32_t count;

    // `from` is the block's first pack, of `count`.
    __device__ __forceinline__ Held(T const* from, int32_t size)
        : x(from)
        , count(size)
    {
        if constexpr (N > 0)
        {
#pragma unroll
            for (int i = 0; i < N; ++i)
            {
                int32_t const at = i * static_cast<int32_t>(blockDim.x) + static_cast<int32_t>(threadIdx.x);
                packs[i] = at < count ? read(at) : Pack<T, V>{};
            }
        }
    }

    __device__ __forceinline__ Pack<T, V> read(int32_t at) const
    {
        return *reinterpret_cast<Pack<T, V> const*>(x + int64_t{at} * V);
    }

    // visit(number in the block, pack) for each of the thread's packs.
    template <typename Visit>
    __device__ __forceinline__ void each(Visit const& visit) const
    {
        if constexpr (N > 0)
        {
#pragma unroll
            for (int i = 0; i < N; ++i)
            {
                int32_t const at = i * static_cast<int32_t>(blockDim.x) + static_cast<int32_t>(threadIdx.x);
                if (at < count)
                {
                    visit(at, packs[i]);
                }
            }
        }
        else
        {
            for (auto at = static_cast<int32_t>(threadIdx.x); at < count; at += static_cast<int32_t>(blockDim.x))
            {
                visit(at, read(at));
            }
        }
    }
};

template <typename T, int V, int N>
__device__ __forceinline__ Moments threadMoments(Held<T, V, N> const& held, float first)
{
    float count = 0.0F;
    float sum = 0.0F;
    held.each([&](int32_t, Pack<T, V> const& pack) {
        float values[V];
        unpack<T, V>(pack, values);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            sum += values[v] - first;
        }
        count += static_cast<float>(V);
    });
    float const mean = count > 0.0F ? sum / count : 0.0F;
    float squares = 0.0F;
    held.each([&](int32_t, Pack<T, V> const& pack) {
        float values[V];
        unpack<T, V>(pack, values);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            float const difference = values[v] - first - mean;
            squares = fmaf(difference, difference, squares);
        }
    });
    return {count, mean, squares};
}

// How much the neighbours of a pack lie above it, on average: those of 3 x 3 positions that are inside.
template <typename T, int V>
__device__ __forceinline__ void aboveCentre(
    T const* __restrict__ image, Images const& p, int32_t position, int32_t channel, float const (&centre)[V], float (&above)[V])
{
    int32_t const row = position / p.width;
    int32_t const column = position - row * p.width;
    float inside = 0.0F;
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        above[v] = 0.0F;
    }
#pragma unroll
    for (int32_t i = -1; i <= 1; ++i)
    {
#pragma unroll
        for (int32_t j = -1; j <= 1; ++j)
        {
            if (row + i >= 0 && row + i < p.height && column + j >= 0 && column + j < p.width)
            {
                float values[V];
                int64_t const at = int64_t{position + i * p.width + j} * p.channels + channel;
                unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(image + at), values);
#pragma unroll
                for (int v = 0; v < V; ++v)
                {
                    above[v] += values[v] - centre[v];
                }
                inside += 1.0F;
            }
        }
    }
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        above[v] /= inside;
    }
}

template <typename T, int V, int N, bool MIXED>
__device__ __forceinline__ void normalizeImage(
    T const* __restrict__ x, T const* __restrict__ scale, T const* __restrict__ shift, T* __restrict__ y, Images const& p)
{
    __shared__ Moments warps[kWarp];
#if TRTCONV_CLUSTERS
    __shared__ Moments parts[kMostParts];
    __shared__ uint64_t barrier;
    if (p.parts > 1)
    {
        if (threadIdx.x == 0)
        {
            cluster::initBarrier(&barrier);
            cluster::expectBytes(&barrier, static_cast<uint32_t>(p.parts * sizeof(Moments)));
        }
        cluster::arrive();
    }
#endif
    auto const rank = static_cast<int32_t>(blockIdx.x % p.parts);
    T const* const image = x + int64_t{blockIdx.x / p.parts} * p.packs * V;
    int32_t const begin = min(rank * p.share, p.packs);
    Held<T, V, N> const held(image + int64_t{begin} * V, min(p.share, p.packs - begin));
    float const first = toFloat(image[0]);
    Moments all = mergedBlock(threadMoments<T, V, N>(held, first), warps);
#if TRTCONV_CLUSTERS
    if (p.parts > 1)
    {
        cluster::meet();
        if (static_cast<int32_t>(threadIdx.x) < p.parts)
        {
            auto* const place = reinterpret_cast<float*>(&parts[rank]);
            cluster::send(place, &barrier, threadIdx.x, all.count);
            cluster::send(place + 1, &barrier, threadIdx.x, all.mean);
            cluster::send(place + 2, &barrier, threadIdx.x, all.squares);
        }
        cluster::wait(&barrier, 0);
        Sums sums;
        for (int32_t i = 0; i < p.parts; ++i)
        {
            sums.add(parts[i]);
        }
        all = {sums.count, sums.mean(), 0.0F};
        for (int32_t i = 0; i < p.parts; ++i)
        {
            all.squares += squaresAbout(parts[i], all.mean);
        }
    }
#endif
    float const inverse = 1.0F / sqrtf(all.squares / all.count + p.epsilon);
    T* const out = y + (image - x) + int64_t{begin} * V;
    int32_t const packsOfRow = p.channels / V;
    held.each([&](int32_t at, Pack<T, V> const& pack) {
        int32_t const position = (begin + at) / packsOfRow;
        int32_t const channel = (begin + at - position * packsOfRow) * V;
        float values[V];
        float factors[V];
        unpack<T, V>(pack, values);
        unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(scale + channel), factors);
        if constexpr (MIXED)
        {
            float above[V];
            aboveCentre<T, V>(image, p, position, channel, values, above);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                values[v] = fmaf(above[v] * inverse, factors[v], values[v]);
            }
        }
        else
        {
            float terms[V];
            unpack<T, V>(*reinterpret_cast<Pack<T, V> const*>(shift + channel), terms);
#pragma unroll
            for (int v = 0; v < V; ++v)
            {
                values[v] = fmaf((values[v] - first - all.mean) * inverse, factors[v], terms[v]);
            }
        }
        store<T, V>(out + int64_t{at} * V, repack<T, V>(values));
    });
}
} // namespace trtconv::group_norm
