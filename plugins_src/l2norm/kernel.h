// L2 normalisation of x[outer, channels, inner] over the middle axis, times scale[channels].
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::l2norm
{
struct Problem
{
    ElementType type{ElementType::kFloat32};
    ElementType scaleType{ElementType::kFloat32};
    int64_t outer{0};
    int64_t channels{0};
    int64_t inner{0};
    float epsilon{0};
    // 0: x / (sqrt(s) + eps); 1: x / sqrt(s + eps); 2: x / max(sqrt(s), eps).
    int32_t epsMode{0};
    // Lanes of a warp that lie side by side along `inner`; 0 chooses. For measurements.
    int32_t lanes{0};
    // Tiles that a block copies ahead; 0: blocks do one tile each; -1 chooses. For measurements and tests.
    int32_t depth{-1};
};

cudaError_t launch(Problem const& problem, void const* x, void const* scale, void* y, cudaStream_t stream);
} // namespace trtconv::l2norm
