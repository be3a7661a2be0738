// What every launch of a kernel is given.
#pragma once

#include "common/device.h"
#include "common/pack.cuh"
#include "l2norm/columns.cuh"

namespace trtconv::l2norm
{
template <typename T>
struct Launch
{
    T const* x;
    void const* scale;
    T* y;
    Column column;
    int64_t outer;
    Device device;
    cudaStream_t stream;
};

// Calls function with the pack width as a compile-time constant.
template <typename T, typename Function>
cudaError_t dispatchWidth(int32_t width, Function const& function)
{
    switch (width)
    {
    case 1: return function(std::integral_constant<int, 1>{});
    case 2: return function(std::integral_constant<int, 2>{});
    case 4: return function(std::integral_constant<int, 4>{});
    default: return function(std::integral_constant<int, kVectorBytes / sizeof(T)>{});
    }
}

inline int32_t log2Of(int32_t value)
{
    int32_t result = 0;
    while ((1 << result) < value)
    {
        ++result;
    }
    return result;
}
} // namespace trtconv::l2norm
