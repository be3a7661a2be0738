// A thread takes a small bin, eight threads or a warp a medium one, a block a large one (global pooling of a plane).
#pragma once

#include "common/divider.cuh"
#include "common/pack.cuh"

namespace trtconv::adaptive_pool
{
inline constexpr int32_t kThreads = 256;

struct Layout
{
    Divider byOutWidth;
    Divider byOutHeight;
    int64_t height;
    int64_t width;
    int64_t outHeight;
    int64_t outWidth;
    int64_t outputs;
    bool maximum;
};

struct Bin
{
    int64_t start; // of its first row in x
    int32_t rows;
    int32_t columns;
};

// NARROW: the number of outputs and the products of positions and sizes are under 2^31.
template <bool NARROW>
__device__ __forceinline__ Bin binOf(Layout const& l, int64_t output)
{
    auto const divide = [](int64_t n, Divider const& narrow, int64_t wide) {
        return NARROW ? static_cast<int64_t>(narrow(static_cast<uint32_t>(n))) : n / wide;
    };
    int64_t const line = divide(output, l.byOutWidth, l.outWidth);
    int64_t const j = output - line * l.outWidth;
    int64_t const plane = divide(line, l.byOutHeight, l.outHeight);
    int64_t const i = line - plane * l.outHeight;
    int64_t const top = divide(i * l.height, l.byOutHeight, l.outHeight);
    int64_t const left = divide(j * l.width, l.byOutWidth, l.outWidth);
    int64_t const bottom = divide((i + 1) * l.height + l.outHeight - 1, l.byOutHeight, l.outHeight);
    int64_t const right = divide((j + 1) * l.width + l.outWidth - 1, l.byOutWidth, l.outWidth);
    return {(plane * l.height + top) * l.width + left, static_cast<int32_t>(bottom - top),
        static_cast<int32_t>(right - left)};
}

// A NaN wins over every number, as in PyTorch.
__device__ __forceinline__ float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

__device__ __forceinline__ float join(bool maximum, float a, float b)
{
    return maximum ? larger(a, b) : a + b;
}

// The sum or maximum of the bin's values with number first, first + step, ...
template <typename T>
__device__ __forceinline__ float reduceBin(T const* __restrict__ x, Layout const& l, Bin const& bin, int32_t first, int32_t step)
{
    constexpr int ahead = 4;
    float const nothing = l.maximum ? -INFINITY : 0.0F;
    float result = nothing;
    int32_t row = first / bin.columns;
    int32_t column = first - row * bin.columns;
    int32_t const downBy = step / bin.columns;
    int32_t const rightBy = step - downBy * bin.columns;
    while (row < bin.rows)
    {
        float values[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i)
        {
            values[i] = row < bin.rows ? toFloat(x[bin.start + row * l.width + column]) : nothing;
            row += downBy;
            column += rightBy;
            if (column >= bin.columns)
            {
                column -= bin.columns;
                ++row;
            }
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i)
        {
            result = join(l.maximum, result, values[i]);
        }
    }
    return result;
}

// The same of `count` values side by side: whole packs, then what is before and behind them.
template <typename T>
__device__ __forceinline__ float reduceRun(T const* __restrict__ from, int64_t count, bool maximum, int32_t first, int32_t step)
{
    constexpr int32_t V = kVectorBytes / sizeof(T);
    float result = maximum ? -INFINITY : 0.0F;
    int64_t const skew = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) % kVectorBytes / sizeof(T));
    int64_t const head = min(count, (V - skew) % V);
    int64_t const packs = (count - head) / V;
#pragma unroll 4
    for (int64_t i = first; i < packs; i += step)
    {
        Pack<T, V> const pack = loadOnce<T, V>(from + head + i * V);
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            result = join(maximum, result, toFloat(pack.value[v]));
        }
    }
    for (int64_t i = first; i < head; i += step)
    {
        result = join(maximum, result, toFloat(from[i]));
    }
    for (int64_t i = head + packs * V + first; i < count; i += step)
    {
        result = join(maximum, result, toFloat(from[i]));
    }
    return result;
}

__device__ __forceinline__ float finish(Layout const& l, Bin const& bin, float value)
{
    return l.maximum ? value : value / (static_cast<float>(bin.rows) * static_cast<float>(bin.columns));
}

// GROUP threads share a bin; GROUP is 1, 8, 32 or the whole block.
template <typename T, int GROUP, bool NARROW>
__global__ void __launch_bounds__(kThreads) pool(T const* __restrict__ x, T* __restrict__ y, Layout const l)
{
    int64_t const output = static_cast<int64_t>(blockIdx.x) * (kThreads / GROUP) + threadIdx.x / GROUP;
    if (output >= l.outputs)
    {
        return; // whole groups leave
    }
    Bin const bin = binOf<NARROW>(l, output);
    auto const rank = static_cast<int32_t>(threadIdx.x % GROUP);
    bool const side = GROUP > 1 && bin.columns == l.width;
    float value = side
        ? reduceRun(x + bin.start, static_cast<int64_t>(bin.rows) * bin.columns, l.maximum, rank, GROUP)
        : reduceBin(x, l, bin, rank, GROUP);
    if constexpr (GROUP > 1)
    {
        uint32_t const mask = GROUP < 32 ? ((1U << (GROUP % 32)) - 1U) << (threadIdx.x % 32 / GROUP * GROUP) : 0xffffffffU;
#pragma unroll
        for (int step = (GROUP < 32 ? GROUP : 32) / 2; step > 0; step /= 2)
        {
            float const other = __shfl_xor_sync(mask, value, step);
            value = join(l.maximum, value, other);
        }
    }
    if constexpr (GROUP == kThreads)
    {
        __shared__ float shared[kThreads / 32];
        if (threadIdx.x % 32 == 0)
        {
            shared[threadIdx.x / 32] = value;
        }
        __syncthreads();
        value = shared[0];
#pragma unroll
        for (int w = 1; w < kThreads / 32; ++w)
        {
            value = join(l.maximum, value, shared[w]);
        }
    }
    if (threadIdx.x % GROUP == 0)
    {
        y[output] = fromFloat<T>(finish(l, bin, value));
    }
}
} // namespace trtconv::adaptive_pool
