// Depthwise convolution by kernels of 3 by 3 of x[batch, height * width, channels] with stride 1 and one row and column of
// zeros around it, then GELU if asked for.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::depthwise_conv
{
struct Problem
{
    // Of every tensor.
    ElementType type{ElementType::kFloat32};
    int64_t batch{0};
    int64_t height{0};
    int64_t width{0};
    int64_t channels{0};
    bool gelu{false};
};

// weight[3, 3, channels], bias[channels].
cudaError_t launch(
    Problem const& problem, void const* x, void const* weight, void const* bias, void* y, cudaStream_t stream);
} // namespace trtconv::depthwise_conv
