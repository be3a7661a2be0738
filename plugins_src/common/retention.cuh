// Loads that say how long the lines they read are to stay in L2, and kernels that begin before the one ahead of them ends.
#pragma once

#include "common/pack.cuh"

namespace trtconv
{
// The policy of lines that are the last to leave L2. Before compute capability 8.0 there is none.
__device__ __forceinline__ uint64_t stayingPolicy()
{
    uint64_t policy = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

// 16 bytes of an input that this launch does not write.
template <typename T, int V>
__device__ __forceinline__ Pack<T, V> loadStaying(T const* from, uint64_t policy)
{
    static_assert(sizeof(T) * V == 16, "a pack of 16 bytes");
    Pack<T, V> pack;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    auto* const words = reinterpret_cast<uint4*>(&pack);
    asm("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(words->x), "=r"(words->y), "=r"(words->z), "=r"(words->w)
        : "l"(from), "l"(policy));
#else
    (void) policy;
    *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<uint4 const*>(from);
#endif
    return pack;
}

// One element, 2 or 4 bytes of unsigned integer.
template <typename T>
__device__ __forceinline__ T loadOneStaying(T const* from, uint64_t policy)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 4)
    {
        uint32_t value;
        asm("ld.global.nc.L1::evict_last.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(value) : "l"(from), "l"(policy));
        return value;
    }
    else
    {
        uint16_t value;
        asm("ld.global.nc.L1::evict_last.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(value) : "l"(from), "l"(policy));
        return value;
    }
#else
    (void) policy;
    return __ldg(from);
#endif
}

// In a kernel launched with programmatic serialisation: all that was launched before it is done and visible. Elsewhere
// nothing.
__device__ __forceinline__ void waitForEarlier()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The kernel after this one may begin as soon as every block has called this or ended.
__device__ __forceinline__ void letLaterBegin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
} // namespace trtconv
