// Rows that begin at any alignment (an odd width of 16-bit values, say). A block takes all channels of a run of positions
// as the 16-byte granules of x that the run touches, so that loads are whole and aligned, into shared memory; sums and
// scales there element by element; and writes whole granules out. Only the granules at the two ends of a run, which belong
// to the neighbouring runs too, are written element by element.
#pragma once

#include "l2norm/columns.cuh"

namespace trtconv::l2norm
{
inline constexpr int32_t kRaggedWarps = 16;
// What the sums take beside the tile at most, rounded up.
inline constexpr int64_t kRaggedStaticBytes = 10 * 1024;

// Bytes of a block's shared memory for `channels` rows of GRANULES whole granules and the one more that they may touch.
constexpr int64_t raggedBytes(int64_t channels, int32_t granules)
{
    return channels * (granules + 1) * kVectorBytes;
}

// Row `c` of a run: where it begins in x, and how far inside its first granule.
template <typename T>
struct RaggedRow
{
    static constexpr int32_t V = kVectorBytes / sizeof(T);
    int64_t start;
    int32_t skip;

    __device__ __forceinline__ RaggedRow(int64_t first, int64_t inner, int32_t c)
        : start(first + c * inner)
        , skip(static_cast<int32_t>(start & (V - 1)))
    {
    }
};

template <typename T, int GRANULES>
__device__ __forceinline__ void loadRagged(
    T const* __restrict__ x, T* tile, int64_t first, int32_t count, int64_t elements, Column const& p)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    constexpr int32_t G = GRANULES + 1;
    for (int32_t i = threadIdx.x; i < p.channels * G; i += static_cast<int32_t>(blockDim.x))
    {
        int32_t const c = i / G;
        int32_t const g = i % G;
        RaggedRow<T> const row(first, p.inner, c);
        if (g * V < row.skip + count)
        {
            int64_t const at = row.start - row.skip + g * V;
            if (at + V <= elements)
            {
                startCopy<T, V>(reinterpret_cast<Pack<T, V>*>(tile) + i, x + at);
            }
            else
            {
                for (int32_t v = 0; at + v < elements; ++v)
                {
                    tile[i * V + v] = x[at + v];
                }
            }
        }
    }
    commitCopies();
    waitCopies<0>();
    __syncthreads();
}

template <typename T, int GRANULES>
__device__ __forceinline__ void storeRagged(
    T* __restrict__ y, T const* tile, int64_t first, int32_t count, Column const& p)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    constexpr int32_t G = GRANULES + 1;
    for (int32_t i = threadIdx.x; i < p.channels * G; i += static_cast<int32_t>(blockDim.x))
    {
        int32_t const c = i / G;
        int32_t const at = (i % G) * V;
        RaggedRow<T> const row(first, p.inner, c);
        T* const to = y + (row.start - row.skip + at);
        int32_t const low = row.skip > at ? row.skip - at : 0;
        int32_t const end = row.skip + count - at;
        if (low == 0 && end >= V)
        {
            store<T, V>(to, reinterpret_cast<Pack<T, V> const*>(tile)[i]);
        }
        else
        {
#pragma unroll
            for (int32_t v = 0; v < V; ++v)
            {
                if (v >= low && v < end)
                {
                    to[v] = tile[i * V + v];
                }
            }
        }
    }
}

template <typename T, int GRANULES>
__global__ void __launch_bounds__(kRaggedWarps * 32)
    raggedColumns(T const* __restrict__ x, void const* __restrict__ scale, T* __restrict__ y, int64_t elements,
        Column const p)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    constexpr int32_t RUN = GRANULES * V;
    constexpr int32_t LANES = RUN < 32 ? RUN : 32;
    constexpr int32_t EACH = RUN / LANES; // positions of a thread, LANES apart
    constexpr int32_t ROWS = 32 / LANES;  // rows of a warp
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ float partial[kRaggedWarps * ROWS][RUN];
    __shared__ float norms[RUN];
    T* const tile = reinterpret_cast<T*>(memory);
    int64_t const outer = blockIdx.x / p.tiles;
    int64_t const position = (blockIdx.x % p.tiles) * RUN;
    int32_t const count = static_cast<int32_t>(p.inner - position < RUN ? p.inner - position : RUN);
    int64_t const first = outer * p.channels * p.inner + position;
    loadRagged<T, GRANULES>(x, tile, first, count, elements, p);

    int32_t const lane = static_cast<int32_t>(threadIdx.x) % LANES;
    int32_t const group = static_cast<int32_t>(threadIdx.x) / LANES;
    int32_t const groups = static_cast<int32_t>(blockDim.x) / LANES;
    float sum[EACH] = {};
    for (int32_t c = group; c < p.channels; c += groups)
    {
        T const* const row = tile + c * (GRANULES + 1) * V + RaggedRow<T>(first, p.inner, c).skip;
#pragma unroll
        for (int32_t e = 0; e < EACH; ++e)
        {
            if (lane + e * LANES < count)
            {
                float const value = toFloat(row[lane + e * LANES]);
                sum[e] = fmaf(value, value, sum[e]);
            }
        }
    }
#pragma unroll
    for (int32_t e = 0; e < EACH; ++e)
    {
        partial[group][lane + e * LANES] = sum[e];
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < RUN; i += static_cast<int32_t>(blockDim.x))
    {
        float total = 0.0F;
        for (int32_t g = 0; g < groups; ++g)
        {
            total += partial[g][i];
        }
        norms[i] = reciprocalNorm(total, p.epsilon, p.mode);
    }
    __syncthreads();
#pragma unroll
    for (int32_t e = 0; e < EACH; ++e)
    {
        sum[e] = norms[lane + e * LANES];
    }
    for (int32_t c = group; c < p.channels; c += groups)
    {
        T* const row = tile + c * (GRANULES + 1) * V + RaggedRow<T>(first, p.inner, c).skip;
        float const factor = parameter(scale, p.scaleType, c);
#pragma unroll
        for (int32_t e = 0; e < EACH; ++e)
        {
            if (lane + e * LANES < count)
            {
                row[lane + e * LANES] = fromFloat<T>(toFloat(row[lane + e * LANES]) * sum[e] * factor);
            }
        }
    }
    __syncthreads();
    storeRagged<T, GRANULES>(y, tile, first, count, p);
}
} // namespace trtconv::l2norm
