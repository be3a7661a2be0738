// Mean and standard deviation of each position over all channels, whose values lie in the registers of a group of threads.
//
// Sums and sums of squared differences from a part's own mean are combined part by part (Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance", 1983), so that a large mean costs no digits.
#pragma once

#include "common/pack.cuh"

namespace trtconv::depthwise_conv_layer_norm
{
// Lanes of a warp that put their moments together before these go to shared memory, where a group is whole teams of them.
inline constexpr int32_t kTeam = 16;

struct Part
{
    float sum;
    float squares; // of differences from the part's mean
};

struct Moments
{
    float mean;
    float inverse; // 1 / standard deviation
};

// Bytes of dynamic shared memory for groupMoments.
inline int64_t sharedBytes(int64_t positions, int64_t lanes, int64_t groups)
{
    int64_t const parts = lanes % kTeam == 0 ? lanes / kTeam : lanes;
    return groups * positions * (parts + 1) * static_cast<int64_t>(sizeof(Part));
}

// Two parts of as many values each; `share` is 1 / (2 * count of one).
__device__ __forceinline__ Part combined(Part const& a, Part const& b, float share)
{
    float const difference = a.sum - b.sum;
    return {a.sum + b.sum, fmaf(difference * share, difference, a.squares + b.squares)};
}

// Lanes `STEP` apart exchange halves of their N positions, until each has the team's moments of few positions, [first, end),
// and writes them if it is the one of its twins to do so.
template <int STEP, int N>
__device__ __forceinline__ void writeTeamParts(Part (&parts)[N], int32_t first, int32_t end, bool writes, float share,
    Part* to, int32_t stride)
{
    int32_t const lane = static_cast<int32_t>(threadIdx.x) & (kTeam - 1);
    if constexpr (STEP == 0)
    {
#pragma unroll
        for (int i = 0; i < N; ++i)
        {
            if (writes && first + i < end)
            {
                to[(first + i) * stride] = parts[i];
            }
        }
    }
    else if constexpr (N == 1)
    {
        Part const other{
            __shfl_xor_sync(0xffffffffU, parts[0].sum, STEP), __shfl_xor_sync(0xffffffffU, parts[0].squares, STEP)};
        Part both[1] = {combined(parts[0], other, share)};
        writeTeamParts<STEP / 2, 1>(both, first, end, writes && (lane & STEP) == 0, share / 2, to, stride);
    }
    else
    {
        constexpr int half = (N + 1) / 2;
        bool const upper = (lane & STEP) != 0;
        Part mine[half];
#pragma unroll
        for (int i = 0; i < half; ++i)
        {
            Part const low = parts[i];
            Part const high = half + i < N ? parts[half + i < N ? half + i : 0] : Part{0.0F, 0.0F};
            Part const given = upper ? low : high;
            Part const taken{__shfl_xor_sync(0xffffffffU, given.sum, STEP), __shfl_xor_sync(0xffffffffU, given.squares, STEP)};
            mine[i] = combined(upper ? high : low, taken, share);
        }
        int32_t const middle = first + half;
        writeTeamParts<STEP / 2, half>(mine, upper ? middle : first, upper ? end : (middle < end ? middle : end), writes,
            share / 2, to, stride);
    }
}

// The moments of positions [group][i], in shared memory. Every thread of the block calls it.
template <int V, int N>
__device__ __forceinline__ Moments const* groupMoments(float const (&values)[N][V], int32_t lanes, int32_t groups, float epsilon)
{
    extern __shared__ __align__(16) unsigned char memory[];
    auto const thread = static_cast<int32_t>(threadIdx.x);
    int32_t const group = thread / lanes;
    int32_t const lane = thread - group * lanes;
    bool const teams = lanes % kTeam == 0;
    int32_t const count = teams ? lanes / kTeam : lanes;
    Part* const parts = reinterpret_cast<Part*>(memory);
    Moments* const moments = reinterpret_cast<Moments*>(parts + groups * N * count);
    Part own[N];
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        float sum = 0.0F;
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            sum += values[i][v];
        }
        float const mean = sum * (1.0F / V);
        float squares = 0.0F;
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            squares = fmaf(values[i][v] - mean, values[i][v] - mean, squares);
        }
        own[i] = {sum, squares};
    }
    bool const belongs = group < groups;
    Part* const to = parts + group * N * count;
    if (teams)
    {
        writeTeamParts<kTeam / 2, N>(own, 0, N, belongs, 0.5F / V, to + lane / kTeam, count);
    }
    else if (belongs)
    {
#pragma unroll
        for (int i = 0; i < N; ++i)
        {
            to[i * count + lane] = own[i];
        }
    }
    __syncthreads();
    float const each = static_cast<float>(teams ? kTeam * V : V);
    for (int32_t i = thread; i < groups * N; i += static_cast<int32_t>(blockDim.x))
    {
        Part const* const from = parts + i * count;
        float sum = 0.0F;
        for (int32_t j = 0; j < count; ++j)
        {
            sum += from[j].sum;
        }
        float const inverseCount = 1.0F / (each * static_cast<float>(count));
        float const mean = sum * inverseCount;
        float squares = 0.0F;
        for (int32_t j = 0; j < count; ++j)
        {
            float const difference = from[j].sum - each * mean;
            squares += fmaf(difference / each, difference, from[j].squares);
        }
        moments[i] = {mean, 1.0F / sqrtf(fmaf(squares, inverseCount, epsilon))};
    }
    __syncthreads();
    return moments;
}
} // namespace trtconv::depthwise_conv_layer_norm
