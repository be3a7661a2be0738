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
    kGranules = 2,  // granules of y out of two granules of x, borders from a list; two granules to a thread
    kGranules1 = 3, // the same with one granule to a thread
    kGathered = 4,  // granules of y, loaded element by element; one granule to a thread
    kGathered2 = 5, // the same with two granules to a thread
    kScalar = 6,    // element by element, four to a thread, neighbours in neighbouring threads
    kGatheredStay = 7,  // kGathered2, with x last to leave L2
    kGatheredHalf = 8,  // the same with half of x
    kGathered128 = 9,   // kGathered2 with blocks of 128 threads
    kGatheredOut = 10,  // kGathered2, with y first to leave L2
    kGatheredStay1 = 11,   // kGathered, with x last to leave L2
    kGatheredStay128 = 12, // kGathered128, with x last to leave L2
    kGathered1Stay128 = 13, // the same with one granule to a thread
    kGathered4Stay128 = 14, // the same with four
    kGranulesStay = 15,  // kGranules, with x last to leave L2
    kGranules1Stay = 16, // the same with one granule to a thread
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
