// Products of small matrices whose elements are spread over the registers of a warp, as `mma.sync` has them (PTX ISA,
// "Matrix Fragments for mma.m16n8k16" and "m16n8k8"): lane 4 g + t has of a result of 16 x 8 the elements (g, 2t), (g, 2t + 1),
// (g + 8, 2t) and (g + 8, 2t + 1).
//
// Half precision goes 16 columns at a time, with sums in FP32. FP32 goes 8 at a time by three products of TF32 parts (high x
// high, high x low, low x high), which leave out 2^-22 of a product (Ootomo and Yokota, "Recovering single precision accuracy
// from Tensor Cores while surpassing the FP32 theoretical peak performance", 2022), or, where it need not be EXACT, by one of
// operands rounded to TF32. GPUs before Ampere, and the CPU in tests, exchange the elements by shuffles.
#pragma once

#include "common/pack.cuh"

namespace trtconv::attention
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool kTensorCores = true;
#else
inline constexpr bool kTensorCores = false;
#endif

template <typename T>
inline constexpr int kDepth = sizeof(T) == 4 ? 8 : 16;

// Two neighbouring elements of half precision, or one of FP32: what a register holds.
template <typename T>
__device__ __forceinline__ uint32_t packed(float first, float second)
{
    float const pair[2] = {first, second};
    Pack<T, 2> const pack = repack<T, 2>(pair);
    return *reinterpret_cast<uint32_t const*>(&pack);
}

__device__ __forceinline__ uint32_t bitsOf(float value)
{
    return *reinterpret_cast<uint32_t const*>(&value);
}

__device__ __forceinline__ float floatOf(uint32_t bits)
{
    return *reinterpret_cast<float const*>(&bits);
}

template <typename T>
__device__ __forceinline__ float elementOf(uint32_t bits, int32_t number)
{
    if constexpr (sizeof(T) == 4)
    {
        return floatOf(bits);
    }
    else
    {
        auto const half = static_cast<uint16_t>(bits >> (16 * number));
        return toFloat(*reinterpret_cast<T const*>(&half));
    }
}

// sums += a b, element after element.
template <typename T>
__device__ __forceinline__ void multiplyByShuffles(float (&sums)[4], uint32_t const (&a)[4], uint32_t const (&b)[2])
{
    constexpr int across = sizeof(T) == 4 ? 1 : 2; // elements of a register
    auto const lane = static_cast<int32_t>(threadIdx.x) & 31;
    int32_t const g = lane / 4;
    int32_t const t = lane % 4;
#pragma unroll
    for (int k = 0; k < kDepth<T>; ++k)
    {
        int const upper = k / (kDepth<T> / 2);
        int const owner = k % (kDepth<T> / 2) / across;
        float left[2];
        float right[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
        {
            left[i] = elementOf<T>(__shfl_sync(0xffffffffU, a[i + 2 * upper], 4 * g + owner), k % across);
            right[i] = elementOf<T>(__shfl_sync(0xffffffffU, b[upper], 4 * (2 * t + i) + owner), k % across);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            sums[i] = fmaf(left[i / 2], right[i % 2], sums[i]);
        }
    }
}

// The nearest number of TF32 in the bits that tensor cores read. (cvt.rna.tf32 says the same at an eighth of the speed.)
__device__ __forceinline__ uint32_t rounded(uint32_t bits)
{
    return bits + 0x1000U;
}

// That number, and what it leaves, if that is a number: an infinity leaves nothing.
__device__ __forceinline__ void split(uint32_t bits, uint32_t& high, uint32_t& low)
{
    high = rounded(bits) & 0xFFFFE000U;
    float const rest = floatOf(bits) - floatOf(high);
    low = bitsOf(rest == rest ? rest : 0.0F);
}

// The left side of products, once for all of them.
template <typename T, bool EXACT>
struct Left
{
    uint32_t bits[4];

    __device__ __forceinline__ explicit Left(uint32_t const (&elements)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            bits[i] = kTensorCores && sizeof(T) == 4 ? rounded(elements[i]) : elements[i];
        }
    }
};
template <>
struct Left<float, true>
{
    uint32_t bits[4];
    uint32_t low[4];

    __device__ __forceinline__ explicit Left(uint32_t const (&elements)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            if constexpr (kTensorCores)
            {
                split(elements[i], bits[i], low[i]);
            }
            else
            {
                bits[i] = elements[i];
            }
        }
    }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ void multiplyTf32(float (&sums)[4], uint32_t const (&a)[4], uint32_t const (&b)[2])
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// sums += a b. Tensor cores cut off what they add, so that FP32 adds a few products at a time to sums that are rounded.
template <typename T, bool EXACT>
__device__ __forceinline__ void multiply(float (&sums)[4], Left<T, EXACT> const& a, uint32_t const (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 4 && !EXACT)
    {
        uint32_t const right[2] = {rounded(b[0]), rounded(b[1])};
        multiplyTf32(sums, a.bits, right);
    }
    else if constexpr (sizeof(T) == 4)
    {
        uint32_t high[2];
        uint32_t low[2];
        float part[4] = {};
        split(b[0], high[0], low[0]);
        split(b[1], high[1], low[1]);
        multiplyTf32(part, a.low, high);
        multiplyTf32(part, a.bits, low);
        multiplyTf32(part, a.bits, high);
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            sums[i] += part[i];
        }
    }
    else if constexpr (std::is_same_v<T, __half>)
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a.bits[0]), "r"(a.bits[1]), "r"(a.bits[2]), "r"(a.bits[3]), "r"(b[0]), "r"(b[1]));
    }
    else
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(a.bits[0]), "r"(a.bits[1]), "r"(a.bits[2]), "r"(a.bits[3]), "r"(b[0]), "r"(b[1]));
    }
#else
    multiplyByShuffles<T>(sums, a.bits, b);
#endif
}

// The transposed right side of two products, from rows in shared memory: b[i] is that of columns `column` + kDepth i on of
// eight rows.
template <typename T>
__device__ __forceinline__ void loadRows(uint32_t (&b)[2][2], T const* rows, int32_t pitch)
{
    auto const lane = static_cast<int32_t>(threadIdx.x) & 31;
    if constexpr (kTensorCores && sizeof(T) == 2)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        T const* const from = rows + lane % 8 * pitch + lane / 8 * 8;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(b[0][0]), "=r"(b[0][1]), "=r"(b[1][0]), "=r"(b[1][1])
                     : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))));
#endif
    }
    else
    {
        constexpr int across = sizeof(T) == 4 ? 1 : 2;
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            T const* const from = rows + lane / 4 * pitch + i * kDepth<T> / 2 + lane % 4 * across;
            b[i / 2][i % 2] = *reinterpret_cast<uint32_t const*>(from);
        }
    }
}

// The right sides of two products, from rows in shared memory: b[i] is that of kDepth rows and the columns from 8 i on. The
// left sides come from scores (see `leftOf`): the rows of FP32 are in that order.
template <typename T>
__device__ __forceinline__ void loadColumns(uint32_t (&b)[2][2], T const* rows, int32_t pitch)
{
    auto const lane = static_cast<int32_t>(threadIdx.x) & 31;
    if constexpr (kTensorCores && sizeof(T) == 2)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        T const* const from = rows + lane % 16 * pitch + lane / 16 * 8;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(b[0][0]), "=r"(b[0][1]), "=r"(b[1][0]), "=r"(b[1][1])
                     : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))));
#endif
    }
    else
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            T const* const from = rows + lane / 4 + 8 * (i / 2);
            int32_t const row = lane % 4 * 2;
            if constexpr (sizeof(T) == 4)
            {
                b[i / 2][i % 2] = bitsOf(from[(row + i % 2) * pitch]);
            }
            else
            {
                int32_t const first = row + i % 2 * 8;
                b[i / 2][i % 2] = packed<T>(toFloat(from[first * pitch]), toFloat(from[(first + 1) * pitch]));
            }
        }
    }
}

// The left side of a product of kDepth neighbouring columns out of results of 16 x 8. Of FP32 the columns 2t and 2t + 1 of a
// result stand where a left side has t and t + 4.
template <typename T, bool EXACT>
__device__ __forceinline__ Left<T, EXACT> leftOf(float const (*results)[4])
{
    uint32_t a[4];
    if constexpr (sizeof(T) == 4)
    {
        a[0] = bitsOf(results[0][0]);
        a[1] = bitsOf(results[0][2]);
        a[2] = bitsOf(results[0][1]);
        a[3] = bitsOf(results[0][3]);
    }
    else
    {
#pragma unroll
        for (int i = 0; i < 4; ++i)
        {
            float const* const from = results[i / 2] + i % 2 * 2;
            a[i] = packed<T>(from[0], from[1]);
        }
    }
    return Left<T, EXACT>(a);
}
} // namespace trtconv::attention
