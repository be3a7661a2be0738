// In place of common/divider.cuh where a kernel is compiled ahead of time: there is no host code that could prepare a
// factor. A divisor that is known when the kernel is compiled becomes a multiplication all the same.
#pragma once

#include <cstdint>

namespace trtconv
{
struct Divider
{
    uint32_t divisor;

    __device__ __forceinline__ explicit Divider(int64_t by)
        : divisor(static_cast<uint32_t>(by))
    {
    }

    __device__ __forceinline__ uint32_t operator()(uint32_t n) const
    {
        return n / divisor;
    }
};
} // namespace trtconv
