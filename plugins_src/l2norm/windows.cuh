// Rows at any alignment, in 16-byte granules that stay in registers. A warp's channels lie a multiple of kWarps rows apart,
// and kWarps rows are whole granules, so that all of them begin equally far inside a granule: a thread loads and stores whole
// granules, and only its place among the sums is shifted. The channels of a tile may be split over a cluster of blocks.
#pragma once

#include "common/cluster.cuh"
#include "l2norm/columns.cuh"

namespace trtconv::l2norm
{
inline constexpr int32_t kMostCluster = 8;

// How x is cut. A tile is all channels of `run` positions.
struct Window
{
    int32_t channels;
    int32_t blockChannels; // those of one block of the cluster, at most
    int32_t inner;
    int32_t run;    // a multiple of a granule's elements
    int32_t halo;   // 1: rows are not whole granules; one more is read at both ends, and each is written by one tile
    uint32_t tiles; // of one outer index
    uint32_t work;  // tiles of all
    int32_t clusterLog2;
    float epsilon;
    int32_t mode;
    ElementType scaleType;
};

template <typename T, int LANES>
struct WindowShape
{
    static constexpr int32_t V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    static constexpr int32_t STEP = kThreads / LANES;    // channels from one granule of a thread to its next
    static constexpr int32_t SPAN = (LANES + 1) * V;   // sums of a tile: of every position that some warp sees
    static constexpr int32_t KEPT = V * LANES / 32;    // sums of a thread once its warp has added up
    static_assert(kWarps % V == 0, "channels of a warp have to begin equally far inside a granule");
};

// Where a thread is in a tile.
template <typename T>
struct Granule
{
    static constexpr int32_t V = kVectorBytes / static_cast<int32_t>(sizeof(T));
    int64_t at;   // the element where its granule of its first channel begins
    int32_t slot; // the place of that granule's first position among the sums
    int32_t low;  // elements [low, high) of the granule are written
    int32_t high;
    bool needed; // whether the sums of some of its positions are

    __device__ __forceinline__ Granule(Window const& p, uint32_t work, int32_t lane, int32_t channel)
    {
        uint32_t const outer = work / p.tiles;
        auto const begin = static_cast<int32_t>(work - outer * p.tiles) * p.run;
        int64_t const start = (static_cast<int64_t>(outer) * p.channels + channel) * p.inner + begin;
        auto const skip = static_cast<int32_t>(start & (V - 1));
        int32_t const ahead = (lane - p.halo) * V - skip;
        int32_t const first = begin + ahead;
        at = start + ahead;
        slot = ahead + (1 + p.halo) * V;
        needed = first < min(begin + p.run, p.inner) && first + V > max(begin - p.halo * (V - 1), 0);
        // The granules that begin in a run, as their row sees it, are the tile's.
        bool const own = lane >= p.halo && (lane - p.halo) * V < p.run;
        low = max(-first, 0);
        high = own ? min(p.inner - first, V) : 0;
    }
};

// The blocks of a cluster add up their sums of squares of position i.
template <int SPAN>
__device__ __forceinline__ float clusterSum(float own, int32_t i, int32_t rank, Window const& p,
    float (&incoming)[kMostCluster][SPAN], uint64_t& barrier)
{
#if TRTCONV_CLUSTERS
    int32_t const size = 1 << p.clusterLog2;
    for (int32_t other = 0; other < size; ++other)
    {
        if (other != rank)
        {
            cluster::send(&incoming[rank][i], &barrier, static_cast<uint32_t>(other), own);
        }
    }
    cluster::wait(&barrier, 0);
    float total = 0.0F;
    for (int32_t other = 0; other < size; ++other)
    {
        total += other == rank ? own : incoming[other][i];
    }
    return total;
#else
    (void) i, (void) rank, (void) p, (void) incoming, (void) barrier;
    return own;
#endif
}

// From the threads' sums of squares the reciprocal norms of their positions.
template <typename T, int LANES, int V>
__device__ __forceinline__ void windowNorms(
    float (&sum)[V], int32_t slot, int32_t rank, Window const& p, uint64_t& barrier)
{
    using Shape = WindowShape<T, LANES>;
    __shared__ float partial[kWarps][Shape::SPAN];
    __shared__ float norms[Shape::SPAN];
    __shared__ float incoming[kMostCluster][Shape::SPAN];
    // Lanes of the same granules, in other rows, share the adding: each keeps half of what is left.
    auto const lane = static_cast<int32_t>(threadIdx.x) % 32;
    int32_t place = slot;
#pragma unroll
    for (int32_t step = 16, half = V / 2; step >= LANES; step /= 2, half /= 2)
    {
        bool const upper = (lane & step) != 0;
#pragma unroll
        for (int32_t v = 0; v < half; ++v)
        {
            float const given = upper ? sum[v] : sum[v + half];
            sum[v] = (upper ? sum[v + half] : sum[v]) + __shfl_xor_sync(0xffffffffU, given, step);
        }
        place += upper ? half : 0;
    }
#pragma unroll
    for (int v = 0; v < Shape::KEPT; ++v)
    {
        partial[threadIdx.x / 32][place + v] = sum[v];
    }
#if TRTCONV_CLUSTERS
    if (p.clusterLog2 > 0 && threadIdx.x == 0)
    {
        uint32_t const others = (1U << p.clusterLog2) - 1U;
        cluster::expectBytes(&barrier, others * Shape::SPAN * static_cast<uint32_t>(sizeof(float)));
    }
#endif
    __syncthreads();
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < Shape::SPAN; i += kThreads)
    {
        float total = 0.0F;
#pragma unroll
        for (int w = 0; w < kWarps; ++w)
        {
            total += partial[w][i];
        }
        if (p.clusterLog2 > 0)
        {
            total = clusterSum<Shape::SPAN>(total, i, rank, p, incoming, barrier);
        }
        norms[i] = reciprocalNorm(total, p.epsilon, p.mode);
    }
    __syncthreads();
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        sum[v] = norms[slot + v];
    }
}

// Elements [low, high) of a granule.
template <typename T, int V>
__device__ __forceinline__ void storeGranule(T* to, Pack<T, V> const& pack, int32_t low, int32_t high)
{
    if (low == 0 && high == V)
    {
        store<T, V>(to, pack);
        return;
    }
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        if (v >= low && v < high)
        {
            to[v] = pack.value[v];
        }
    }
}

// Blocks on a multiprocessor, by the registers that a thread needs.
constexpr int32_t windowBlocks(int32_t items)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    int32_t const most = 1024;
#else
    int32_t const most = 1536;
#endif
    return (items <= 4 ? most : 1024) / kThreads;
}

// A block (or a cluster) to each tile. x and y begin at a multiple of 16 bytes, and x is a whole number of granules.
template <typename T, int LANES, int ITEMS>
__global__ void __launch_bounds__(kThreads, windowBlocks(ITEMS))
    windows(T const* __restrict__ x, void const* __restrict__ scale, T* __restrict__ y, Window const p)
{
    using Shape = WindowShape<T, LANES>;
    constexpr int32_t V = Shape::V;
    constexpr int32_t STEP = Shape::STEP;
    __shared__ float factors[STEP * ITEMS];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t const work = blockIdx.x >> p.clusterLog2;
    if (work >= p.work)
    {
        return; // whole clusters leave
    }
    auto const lane = static_cast<int32_t>(threadIdx.x) % LANES;
    // Warp 0, 1, ..., then the next group of lanes of warp 0, 1, ...
    int32_t const row = static_cast<int32_t>(threadIdx.x) / 32
        + static_cast<int32_t>(threadIdx.x) % 32 / LANES * kWarps;
    auto const rank = static_cast<int32_t>(blockIdx.x) & ((1 << p.clusterLog2) - 1);
    int32_t const base = rank * p.blockChannels;
    int32_t const count = min(p.channels - base, p.blockChannels);
    int64_t const step = static_cast<int64_t>(STEP) * p.inner;
#if TRTCONV_CLUSTERS
    if (p.clusterLog2 > 0)
    {
        if (threadIdx.x == 0)
        {
            cluster::initBarrier(&barrier);
        }
        __syncwarp();
        cluster::arrive();
    }
#endif
    Granule<T> const g(p, work, lane, base + row);
    Pack<T, V> held[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        held[i] = {};
        if (g.needed && row + i * STEP < count)
        {
            held[i] = loadGranule<T, V>(x + g.at + i * step);
        }
    }
    // While x is on its way.
    for (int32_t c = static_cast<int32_t>(threadIdx.x); c < count; c += kThreads)
    {
        factors[c] = parameter(scale, p.scaleType, base + c);
    }
#if TRTCONV_CLUSTERS
    if (p.clusterLog2 > 0)
    {
        cluster::meet(); // the others' barriers are there
    }
#endif
    float sum[V] = {};
    addSquares(held, sum);
    keepPacked(held);
    windowNorms<T, LANES, V>(sum, g.slot, rank, p, barrier);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
    {
        if (g.high > g.low && row + i * STEP < count)
        {
            storeGranule<T, V>(y + g.at + i * step, scaled(held[i], sum, factors[row + i * STEP]), g.low, g.high);
        }
    }
}
} // namespace trtconv::l2norm
