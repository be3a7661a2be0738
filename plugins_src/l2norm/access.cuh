// How granules of 16 bytes that are read or written once pass the caches.
#pragma once

#include "common/pack.cuh"

namespace trtconv::l2norm
{
// kPlain is what is used; the others are for measurements.
enum class Access : int32_t
{
    kPlain = 0,
    kLeavingStores = 1, // the first to leave L2
    kWideLoads = 2,     // L2 is asked for 256 bytes
    kWideLeaving = 3,   // both
    kLeavingLoads = 4,  // the first to leave L2
};

template <Access ACCESS>
inline constexpr bool kWide = ACCESS == Access::kWideLoads || ACCESS == Access::kWideLeaving;

template <Access ACCESS, typename T, int V>
__device__ __forceinline__ Pack<T, V> loadGranule(T const* from)
{
    static_assert(sizeof(T) * V == kVectorBytes, "a granule");
    Pack<T, V> pack;
    auto& words = *reinterpret_cast<uint4*>(&pack);
    if constexpr (ACCESS == Access::kLeavingLoads)
    {
        words = __ldcs(reinterpret_cast<uint4 const*>(from));
    }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    else if constexpr (kWide<ACCESS>)
    {
        asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
            : "l"(from));
    }
#endif
    else
    {
        words = __ldg(reinterpret_cast<uint4 const*>(from));
    }
    return pack;
}

template <Access ACCESS, typename T, int V>
__device__ __forceinline__ void startGranule(Pack<T, V>* to, T const* from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (kWide<ACCESS>)
    {
        asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                     "l"(from)
                     : "memory");
        return;
    }
#endif
    startCopy<T, V>(to, from);
}

template <Access ACCESS, typename T, int V>
__device__ __forceinline__ void storeWhole(T* to, Pack<T, V> const& pack)
{
    store<T, V, ACCESS == Access::kLeavingStores || ACCESS == Access::kWideLeaving>(to, pack);
}
} // namespace trtconv::l2norm
