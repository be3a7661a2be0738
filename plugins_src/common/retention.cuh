// How long lines stay in L2, and kernels that begin before the one ahead of them ends.
//
// What is marked to stay leaves the rest of L2 to what a kernel writes, which is then written out soon after: a copy of a
// gigabyte is 2 to 3 % faster so on an H200, and 4 % slower with the input marked to leave.
#pragma once

#include "common/pack.cuh"

namespace trtconv
{
// In which order lines leave L2.
enum class Lines
{
    kPlain,
    kStay,     // last
    kHalfStay, // every second one last
    kLeave,    // first
};

// Before compute capability 8.0 there are no policies.
template <Lines LINES>
__device__ __forceinline__ uint64_t linesPolicy()
{
    uint64_t policy = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (LINES == Lines::kStay)
    {
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    }
    else if constexpr (LINES == Lines::kHalfStay)
    {
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
    }
    else if constexpr (LINES == Lines::kLeave)
    {
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    }
#endif
    return policy;
}

// 16 bytes, or one element of unsigned integers, of an input that this launch does not write.
template <Lines LINES, typename P>
__device__ __forceinline__ P loadLines(P const* from, [[maybe_unused]] uint64_t policy)
{
    static_assert(sizeof(P) == 16 || sizeof(P) == 4 || sizeof(P) == 2, "16 bytes or an element");
    P value;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (LINES != Lines::kPlain)
    {
        if constexpr (sizeof(P) == 16)
        {
            auto* const words = reinterpret_cast<uint4*>(&value);
            asm("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                : "=r"(words->x), "=r"(words->y), "=r"(words->z), "=r"(words->w)
                : "l"(from), "l"(policy));
        }
        else if constexpr (sizeof(P) == 4)
        {
            asm("ld.global.nc.L1::evict_last.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(value) : "l"(from), "l"(policy));
        }
        else
        {
            asm("ld.global.nc.L1::evict_last.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(value) : "l"(from), "l"(policy));
        }
        return value;
    }
#endif
    if constexpr (sizeof(P) == 16)
    {
        *reinterpret_cast<uint4*>(&value) = __ldg(reinterpret_cast<uint4 const*>(from));
    }
    else
    {
        value = __ldg(from);
    }
    return value;
}

template <Lines LINES, typename T, int V>
__device__ __forceinline__ void storeLines(T* to, Pack<T, V> const& pack, [[maybe_unused]] uint64_t policy)
{
    static_assert(sizeof(T) * V == 16, "a pack of 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (LINES != Lines::kPlain)
    {
        uint4 const words = *reinterpret_cast<uint4 const*>(&pack);
        asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "r"(words.x), "r"(words.y),
            "r"(words.z), "r"(words.w), "l"(policy)
            : "memory");
        return;
    }
#endif
    store<T, V>(to, pack);
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
