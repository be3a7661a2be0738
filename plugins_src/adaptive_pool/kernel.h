// Adaptive pooling of the last two axes of x[planes, height, width] with PyTorch's bins.
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::adaptive_pool
{
struct Problem
{
    ElementType type{ElementType::kFloat32};
    int64_t planes{0};
    int64_t height{0};
    int64_t width{0};
    int32_t outHeight{0};
    int32_t outWidth{0};
    bool maximum{false};
};

cudaError_t launch(Problem const& problem, void const* x, void* y, cudaStream_t stream);
} // namespace trtconv::adaptive_pool
