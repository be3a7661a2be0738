// How long lines stay in L2, and kernels that begin before the one ahead of them ends.
//
// ReflectionPad and InstanceNorm's clusters are 2 to 3 % faster on an H200 with x marked to stay, and ReflectionPad 4 % slower
// with x marked to leave, whether or not they find anything of an earlier launch in L2.
#pragma once

#include "common/pack.cuh"

namespace trtconv
{
// In which order lines leave L2.
enum class Lines
{
    kPlain,
    kStay, // last
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
