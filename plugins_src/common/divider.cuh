// Division of 31-bit numbers by a number that is the same for a whole launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace trtconv
{
// n / divisor for 0 <= n < 2^31 by a multiplication.
struct Divider
{
    uint32_t divisor{1};
    uint32_t factor{0};
    uint32_t shift{0};

    explicit Divider(int64_t by)
        : divisor(static_cast<uint32_t>(by))
    {
        while (shift < 31 && (1U << shift) < divisor)
        {
            ++shift;
        }
        uint64_t const above = (uint64_t{1} << shift) - divisor;
        factor = static_cast<uint32_t>((above << 32) / divisor + 1);
    }

    __device__ __forceinline__ uint32_t operator()(uint32_t n) const
    {
        return (__umulhi(n, factor) + n) >> shift;
    }
};
} // namespace trtconv
