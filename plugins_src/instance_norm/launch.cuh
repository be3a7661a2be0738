// What every launch of this plugin needs.
#pragma once

#include "common/device.h"
#include "instance_norm/kernel.h"
#include "instance_norm/planes.cuh"

namespace trtconv::instance_norm
{
namespace
{
template <typename T>
struct Launch
{
    T const* x;
    T* y;
    void* workspace;
    Plane plane;
    Device device;
    cudaStream_t stream;
};

template <typename T>
constexpr int64_t perGranule()
{
    return kVectorBytes / static_cast<int64_t>(sizeof(T));
}
} // namespace
} // namespace trtconv::instance_norm
