// The two small products behind the means, in float. Weights are read before the kernel ahead has ended.
#pragma once

#include "channel_gate/kernel.h"
#include "channel_gate/sums.cuh"

namespace trtconv::channel_gate
{
inline constexpr int32_t kReduceThreads = 256;
inline constexpr int32_t kReduceWarps = kReduceThreads / kWarp;
inline constexpr int32_t kExpandThreads = 128;
// Lanes that share a channel's product.
inline constexpr int32_t kLanes = 8;
// Channels whose means a block holds at once, and the packs of weights of a lane that it reads ahead.
inline constexpr int32_t kHeldMeans = 2048;
inline constexpr int32_t kAhead = 5;

struct Layers
{
    int32_t channels;
    int32_t hidden;
    int32_t splits; // rows of sums to an image; none where x holds the means
    int32_t pitch;  // elements from an image of y to the next, and of x that holds the means
    float share;    // one over the area
    Activation activation;
    Gate gate;
};

__device__ __forceinline__ float sigmoid(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

// Means of channels [begin, begin + count) of an image, from its sums: threads share channels, and where these are few, rows.
template <typename T>
__device__ __forceinline__ void loadMeans(
    T const* x, float const* sums, Layers const& p, int64_t image, int32_t begin, int32_t count, float* means)
{
    if (p.splits == 0)
    {
        for (auto c = static_cast<int32_t>(threadIdx.x); c < count; c += kReduceThreads)
        {
            means[c] = toFloat(x[image * p.pitch + begin + c]);
        }
        return;
    }
    int32_t const groups = count >= kReduceThreads ? 1 : kReduceThreads / count;
    float const* const rows = sums + image * p.splits * p.channels + begin;
    for (auto at = static_cast<int32_t>(threadIdx.x); at < count * groups; at += kReduceThreads)
    {
        int32_t const group = at / count;
        int32_t const c = at - group * count;
        float total = 0.0F;
#pragma unroll 4
        for (int32_t s = group; s < p.splits; s += groups)
        {
            total += __ldcg(rows + int64_t{s} * p.channels + c);
        }
        means[at] = total;
    }
    __syncthreads();
    for (auto c = static_cast<int32_t>(threadIdx.x); c < count; c += kReduceThreads)
    {
        float total = means[c];
        for (int32_t group = 1; group < groups; ++group)
        {
            total += means[group * count + c];
        }
        means[c] = total * p.share;
    }
}

template <typename T, int V>
__device__ __forceinline__ float product(Pack<T, V> const& weights, float const* means)
{
    float values[V];
    unpack<T, V>(weights, values);
    float sum = 0.0F;
#pragma unroll
    for (int v = 0; v < V; ++v)
    {
        sum = fmaf(values[v], means[v], sum);
    }
    return sum;
}

// A warp to each hidden value of image blockIdx.y.
template <typename T, int V>
__global__ void __launch_bounds__(kReduceThreads) reduceMeans(T const* __restrict__ x, float const* sums,
    T const* __restrict__ weight, T const* __restrict__ bias, float* __restrict__ hidden, Layers const p)
{
    __shared__ alignas(16) float means[kHeldMeans];
    letLaterBegin();
    auto const lane = static_cast<int32_t>(threadIdx.x) % kWarp;
    int32_t const unit = static_cast<int32_t>(blockIdx.x) * kReduceWarps + static_cast<int32_t>(threadIdx.x) / kWarp;
    bool const inside = unit < p.hidden;
    int64_t const image = blockIdx.y;
    T const* const row = weight + int64_t{inside ? unit : 0} * p.channels;
    int32_t const packs = p.channels / V;
    Pack<T, V> ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
    {
        int32_t const at = i * kWarp + lane;
        ahead[i] = at < packs ? *reinterpret_cast<Pack<T, V> const*>(row + at * V) : Pack<T, V>{};
    }
    float const term = toFloat(bias[inside ? unit : 0]);
    if (p.splits > 0)
    {
        waitForEarlier();
    }
    float sum = 0.0F;
    for (int32_t begin = 0; begin < p.channels; begin += kHeldMeans)
    {
        int32_t const count = min(kHeldMeans, p.channels - begin);
        __syncthreads();
        loadMeans<T>(x, sums, p, image, begin, count, means);
        __syncthreads();
        int32_t first = 0;
        if (begin == 0)
        {
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
            {
                int32_t const at = i * kWarp + lane;
                sum += at < count / V ? product<T, V>(ahead[i], means + at * V) : 0.0F;
            }
            first = kAhead * kWarp;
        }
#pragma unroll 4
        for (int32_t at = first + lane; at < count / V; at += kWarp)
        {
            sum += product<T, V>(*reinterpret_cast<Pack<T, V> const*>(row + begin + at * V), means + at * V);
        }
    }
    sum = warpSum(sum) + term;
    if (lane == 0 && inside)
    {
        hidden[image * p.hidden + unit] = p.activation == Activation::kSilu ? sum * sigmoid(sum) : sum < 0.0F ? 0.0F : sum;
    }
}

// kLanes lanes to each channel of image blockIdx.y.
template <typename T>
__global__ void __launch_bounds__(kExpandThreads) expandHidden(float const* hidden, T const* __restrict__ weight,
    T const* __restrict__ bias, T* __restrict__ y, Layers const p)
{
    auto const lane = static_cast<int32_t>(threadIdx.x) % kLanes;
    int32_t const channel
        = static_cast<int32_t>(blockIdx.x) * (kExpandThreads / kLanes) + static_cast<int32_t>(threadIdx.x) / kLanes;
    int64_t const image = blockIdx.y;
    bool const inside = channel < p.channels;
    T const* const row = weight + int64_t{inside ? channel : 0} * p.hidden;
    float const* const values = hidden + image * p.hidden;
    float ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
    {
        int32_t const r = i * kLanes + lane;
        ahead[i] = r < p.hidden ? toFloat(row[r]) : 0.0F;
    }
    float const term = toFloat(bias[inside ? channel : 0]);
    waitForEarlier();
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
    {
        int32_t const r = i * kLanes + lane;
        sum += r < p.hidden ? __ldcg(values + r) * ahead[i] : 0.0F;
    }
#pragma unroll 4
    for (int32_t r = kAhead * kLanes + lane; r < p.hidden; r += kLanes)
    {
        sum = fmaf(__ldcg(values + r), toFloat(row[r]), sum);
    }
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2)
    {
        sum += __shfl_xor_sync(0xffffffffU, sum, step);
    }
    if (lane != 0 || channel >= p.pitch)
    {
        return;
    }
    sum += term;
    float const linear = fmaf(sum, 1.0F / 6.0F, 0.5F);
    float const bounded = linear > 1.0F ? 1.0F : linear < 0.0F ? 0.0F : linear;
    float const gate = p.gate == Gate::kSigmoid ? sigmoid(sum) : bounded;
    // Zeros fill a pack of channels up.
    y[image * p.pitch + channel] = fromFloat<T>(inside ? gate : 0.0F);
}
} // namespace trtconv::channel_gate
