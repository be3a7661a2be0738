// Reflection padding of the last two axes of x[planes, height, width].
#pragma once

#include "common/element.h"

#include <cuda_runtime_api.h>

namespace trtconv::reflection_pad
{
// How elements get from x to y. kAuto chooses; the others are for measurements and tests, and give
// cudaErrorInvalidConfiguration for a problem that they do not fit.
enum class Route : int32_t
{
    kAuto = 0,
    kElements = 1,  // one element to a thread, at any alignment and size
    kGathered = 7,  // granules of y, loaded element by element; two granules to a thread
    kGranules = 15, // granules of y out of two granules of x, borders from a list; two granules to a thread
};

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
    Route route{Route::kAuto};
};

// Each pad has to be smaller than its axis; cudaErrorInvalidValue otherwise.
cudaError_t launch(Problem const& problem, void const* x, void* y, cudaStream_t stream);
} // namespace trtconv::reflection_pad
