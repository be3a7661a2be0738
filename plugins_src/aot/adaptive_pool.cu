// TRTCONV_OUT_HEIGHT, TRTCONV_OUT_WIDTH, TRTCONV_MAXIMUM; TRTCONV_GROUP, how many threads share a bin, where it is fixed.
// Positions and sizes are under 2^31.
#include "aot/begin.cuh"
#include "common/divider.cuh"
#include "adaptive_pool/bins.cuh"
#include "aot/end.cuh"

#ifndef TRTCONV_GROUP
#define TRTCONV_GROUP group
#endif

using namespace trtconv;
using namespace trtconv::adaptive_pool;

extern "C" __global__ void __launch_bounds__(kThreads) TRTCONV_ENTRY(
    TRTCONV_ELEMENT const* x, int32_t planes, int32_t height, int32_t width, int32_t group, TRTCONV_ELEMENT* y)
{
    Layout const l{Divider(TRTCONV_OUT_WIDTH), Divider(TRTCONV_OUT_HEIGHT), height, width, TRTCONV_OUT_HEIGHT,
        TRTCONV_OUT_WIDTH, int64_t{planes} * TRTCONV_OUT_HEIGHT * TRTCONV_OUT_WIDTH, TRTCONV_MAXIMUM != 0};
    switch (TRTCONV_GROUP)
    {
    case 1: return pool<TRTCONV_ELEMENT, 1, true>(x, y, l);
    case 8: return pool<TRTCONV_ELEMENT, 8, true>(x, y, l);
    case 32: return pool<TRTCONV_ELEMENT, 32, true>(x, y, l);
    default: return pool<TRTCONV_ELEMENT, kThreads, true>(x, y, l);
    }
}
