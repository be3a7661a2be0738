// The sampler of a spatial transformer. No TensorRT types here: the kernel can be tested and reused without it.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::stn_sampler
{
struct Problem
{
    ElementType type{ElementType::kFloat32};
    ElementType thetaType{ElementType::kFloat32};
    int64_t batch{0};
    int64_t channels{0};
    int64_t height{0};
    int64_t width{0};
    bool alignCorners{false};
};

// x, y: [batch, channels, height, width]; theta: [batch, 2, 3]. Nothing is launched for an empty tensor.
cudaError_t launch(Problem const& problem, void const* x, void const* theta, void* y, cudaStream_t stream);
} // namespace trtconv::stn_sampler
