// One thread to an output pixel: its position is worked out once in float32 and used for every channel.
#include "kernel.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace trtconv::stn_sampler
{
namespace
{
constexpr int32_t kBlock = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

__device__ float position(int64_t index, int64_t size, bool alignCorners)
{
    if (size == 1)
    {
        return 0.0F;
    }
    auto const i = static_cast<float>(index);
    auto const n = static_cast<float>(size);
    return alignCorners ? 2.0F * i / (n - 1.0F) - 1.0F : (2.0F * i + 1.0F) / n - 1.0F;
}

__device__ float pixel(float at, int64_t size, bool alignCorners)
{
    auto const n = static_cast<float>(size);
    return alignCorners ? (at + 1.0F) * 0.5F * (n - 1.0F) : ((at + 1.0F) * n - 1.0F) * 0.5F;
}

// A weight and an element, or nothing where the corner lies outside. A NaN position is inside nowhere.
struct Corner
{
    int64_t offset{0};
    float weight{0.0F};
};

__device__ Corner corner(float column, float row, float left, float top, int64_t width, int64_t height)
{
    bool const inside = left >= 0.0F && left < static_cast<float>(width) && top >= 0.0F && top < static_cast<float>(height);
    Corner found;
    if (inside)
    {
        found.offset = static_cast<int64_t>(top) * width + static_cast<int64_t>(left);
        found.weight = (1.0F - fabsf(column - left)) * (1.0F - fabsf(row - top));
    }
    return found;
}

template <typename T, typename S>
__global__ void sample(Problem const p, T const* x, S const* theta, T* y)
{
    int64_t const plane = p.height * p.width;
    int64_t const pixels = p.batch * plane;
    int64_t const stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += stride)
    {
        int64_t const n = i / plane;
        int64_t const within = i - n * plane;
        float const across = position(within % p.width, p.width, p.alignCorners);
        float const along = position(within / p.width, p.height, p.alignCorners);
        float t[6];
        for (int32_t k = 0; k < 6; ++k)
        {
            t[k] = static_cast<float>(theta[n * 6 + k]);
        }
        float const column = pixel(t[0] * across + t[1] * along + t[2], p.width, p.alignCorners);
        float const row = pixel(t[3] * across + t[4] * along + t[5], p.height, p.alignCorners);
        float const left = floorf(column);
        float const top = floorf(row);
        Corner corners[4];
        for (int32_t k = 0; k < 4; ++k)
        {
            corners[k] = corner(column, row, left + static_cast<float>(k & 1), top + static_cast<float>(k >> 1),
                p.width, p.height);
        }
        T const* from = x + n * p.channels * plane;
        T* to = y + n * p.channels * plane + within;
        for (int64_t c = 0; c < p.channels; ++c)
        {
            float sum = 0.0F;
            for (Corner const& k : corners)
            {
                // A weight of zero must not meet an infinite element.
                sum += k.weight == 0.0F ? 0.0F : k.weight * static_cast<float>(from[k.offset]);
            }
            *to = static_cast<T>(sum);
            from += plane;
            to += plane;
        }
    }
}

template <typename T, typename S>
cudaError_t start(Problem const& p, void const* x, void const* theta, void* y, cudaStream_t stream)
{
    int64_t const pixels = p.batch * p.height * p.width;
    if (pixels == 0 || p.channels == 0)
    {
        return cudaSuccess;
    }
    int64_t const blocks = (pixels + kBlock - 1) / kBlock;
    auto const grid = static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
    sample<T, S><<<grid, kBlock, 0, stream>>>(
        p, static_cast<T const*>(x), static_cast<S const*>(theta), static_cast<T*>(y));
    return cudaGetLastError();
}

template <typename T>
cudaError_t withTheta(Problem const& p, void const* x, void const* theta, void* y, cudaStream_t stream)
{
    switch (p.thetaType)
    {
    case ElementType::kFloat32: return start<T, float>(p, x, theta, y, stream);
    case ElementType::kFloat16: return start<T, __half>(p, x, theta, y, stream);
    case ElementType::kBFloat16: return start<T, __nv_bfloat16>(p, x, theta, y, stream);
    default: return cudaErrorInvalidValue;
    }
}
} // namespace

cudaError_t launch(Problem const& p, void const* x, void const* theta, void* y, cudaStream_t stream)
{
    switch (p.type)
    {
    case ElementType::kFloat32: return withTheta<float>(p, x, theta, y, stream);
    case ElementType::kFloat16: return withTheta<__half>(p, x, theta, y, stream);
    case ElementType::kBFloat16: return withTheta<__nv_bfloat16>(p, x, theta, y, stream);
    default: return cudaErrorInvalidValue;
    }
}
} // namespace trtconv::stn_sampler
