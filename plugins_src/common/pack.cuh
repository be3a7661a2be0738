// Aligned groups of elements that move in one access, and conversion to float and back.
#pragma once

#include "common/element.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace trtconv
{
inline constexpr int32_t kVectorBytes = 16;

template <typename T, int V>
struct alignas(sizeof(T) * V) Pack
{
    T value[V];
};

__device__ __forceinline__ float toFloat(float value)
{
    return value;
}
__device__ __forceinline__ float toFloat(__half value)
{
    return __half2float(value);
}
__device__ __forceinline__ float toFloat(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

template <typename T>
__device__ __forceinline__ T fromFloat(float value);
template <>
__device__ __forceinline__ float fromFloat<float>(float value)
{
    return value;
}
template <>
__device__ __forceinline__ __half fromFloat<__half>(float value)
{
    return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 fromFloat<__nv_bfloat16>(float value)
{
    return __float2bfloat16_rn(value);
}

// A whole pack to floats and back; 16-bit types go two at a time, for which there are instructions.
template <typename T, int V>
__device__ __forceinline__ void unpack(Pack<T, V> const& pack, float (&values)[V])
{
    if constexpr (sizeof(T) == 2 && V % 2 == 0)
    {
#pragma unroll
        for (int v = 0; v < V; v += 2)
        {
            float2 pair;
            if constexpr (std::is_same_v<T, __half>)
            {
                pair = __half22float2(*reinterpret_cast<__half2 const*>(&pack.value[v]));
            }
            else
            {
                pair = __bfloat1622float2(*reinterpret_cast<__nv_bfloat162 const*>(&pack.value[v]));
            }
            values[v] = pair.x;
            values[v + 1] = pair.y;
        }
    }
    else
    {
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            values[v] = toFloat(pack.value[v]);
        }
    }
}

template <typename T, int V>
__device__ __forceinline__ Pack<T, V> repack(float const (&values)[V])
{
    Pack<T, V> pack;
    if constexpr (sizeof(T) == 2 && V % 2 == 0)
    {
#pragma unroll
        for (int v = 0; v < V; v += 2)
        {
            if constexpr (std::is_same_v<T, __half>)
            {
                *reinterpret_cast<__half2*>(&pack.value[v]) = __floats2half2_rn(values[v], values[v + 1]);
            }
            else
            {
                *reinterpret_cast<__nv_bfloat162*>(&pack.value[v]) = __floats2bfloat162_rn(values[v], values[v + 1]);
            }
        }
    }
    else
    {
#pragma unroll
        for (int v = 0; v < V; ++v)
        {
            pack.value[v] = fromFloat<T>(values[v]);
        }
    }
    return pack;
}

// A per-channel parameter, whose type is chosen apart from that of the tensor.
__device__ __forceinline__ float parameter(void const* values, ElementType type, int64_t index)
{
    switch (type)
    {
    case ElementType::kFloat16: return toFloat(static_cast<__half const*>(values)[index]);
    case ElementType::kBFloat16: return toFloat(static_cast<__nv_bfloat16 const*>(values)[index]);
    default: return static_cast<float const*>(values)[index];
    }
}

// Inputs that are read once: past L1, first to leave L2.
template <typename T, int V>
__device__ __forceinline__ Pack<T, V> loadOnce(T const* from)
{
    Pack<T, V> pack;
    constexpr int bytes = sizeof(T) * V;
    if constexpr (bytes == 16)
    {
        *reinterpret_cast<uint4*>(&pack) = __ldcs(reinterpret_cast<uint4 const*>(from));
    }
    else if constexpr (bytes == 8)
    {
        *reinterpret_cast<uint2*>(&pack) = __ldcs(reinterpret_cast<uint2 const*>(from));
    }
    else if constexpr (bytes == 4)
    {
        *reinterpret_cast<uint32_t*>(&pack) = __ldcs(reinterpret_cast<uint32_t const*>(from));
    }
    else
    {
        static_assert(bytes == 2, "a pack is 2, 4, 8 or 16 bytes");
        *reinterpret_cast<uint16_t*>(&pack) = __ldcs(reinterpret_cast<uint16_t const*>(from));
    }
    return pack;
}

// One access, whatever branches lie around it: written as an assignment of a Pack, the compiler may split it.
template <typename T, int V>
__device__ __forceinline__ void store(T* to, Pack<T, V> const& pack)
{
    constexpr int bytes = sizeof(T) * V;
    if constexpr (bytes == 16)
    {
        __stcg(reinterpret_cast<uint4*>(to), *reinterpret_cast<uint4 const*>(&pack));
    }
    else if constexpr (bytes == 8)
    {
        __stcg(reinterpret_cast<uint2*>(to), *reinterpret_cast<uint2 const*>(&pack));
    }
    else
    {
        *reinterpret_cast<Pack<T, V>*>(to) = pack;
    }
}

// Makes the compiler forget converted copies of packs that are used again after a barrier, which would double their
// registers.
template <typename T, int V, int N>
__device__ __forceinline__ void keepPacked(Pack<T, V> (&packs)[N])
{
    constexpr int words = sizeof(T) * V / 4;
#pragma unroll
    for (int i = 0; i < N; ++i)
    {
        if constexpr (words > 0)
        {
#pragma unroll
            for (int w = 0; w < words; ++w)
            {
                asm volatile("" : "+r"(reinterpret_cast<uint32_t*>(&packs[i])[w]));
            }
        }
        else
        {
            asm volatile("" : "+h"(*reinterpret_cast<uint16_t*>(&packs[i])));
        }
    }
}

__device__ __forceinline__ float warpSum(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
    {
        value += __shfl_xor_sync(0xffffffffU, value, step);
    }
    return value;
}

// The most elements, a power of two, that one access may move at `pointer` when rows are `stride` elements apart.
template <typename T>
int32_t widestPack(int64_t stride, void const* first, void const* second) noexcept
{
    uint64_t const bits = reinterpret_cast<uint64_t>(first) | reinterpret_cast<uint64_t>(second)
        | (static_cast<uint64_t>(stride) * sizeof(T));
    int32_t bytes = kVectorBytes;
    while (bytes > static_cast<int32_t>(sizeof(T)) && bits % bytes != 0)
    {
        bytes /= 2;
    }
    return bytes / static_cast<int32_t>(sizeof(T));
}

// Calls function.operator()<T>() for the element type.
template <typename Function>
cudaError_t dispatchElement(ElementType type, Function const& function)
{
    switch (type)
    {
    case ElementType::kFloat32: return function(float{});
    case ElementType::kFloat16: return function(__half{});
    case ElementType::kBFloat16: return function(__nv_bfloat16{});
    default: return cudaErrorInvalidValue;
    }
}
} // namespace trtconv
