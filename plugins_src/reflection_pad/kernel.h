// Reflection padding of the last two axes of x[planes, height, width].
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::reflection_pad
{
struct Problem
{
    ElementType type{ElementType::kFloat32};
    int64_t planes{0};
    int64_t height{0};
    int64_t width{0};
    int32_t top{0};
    int32_t left{0};
    int32_t bottom{0};
    int32_t right{0};
};

// Each pad has to be smaller than its axis; cudaErrorInvalidValue otherwise.
cudaError_t launch(Problem const& problem, void const* x, void* y, cudaStream_t stream);
} // namespace trtconv::reflection_pad
