// TRTCONV_PARAMETER (an ElementType), TRTCONV_EPSILON, TRTCONV_RELU; TRTCONV_WARP where a warp takes a plane, with
// TRTCONV_ITEMS packs to a thread and TRTCONV_PACK where the pack is fixed; TRTCONV_EVEN where a warp takes a plane that it
// fills exactly with TRTCONV_ITEMS packs of 16 bytes to a thread; otherwise a block takes a plane.
#include "aot/begin.cuh"
#include "instance_norm/even.cuh"
#include "aot/end.cuh"

#ifndef TRTCONV_PACK
#define TRTCONV_PACK pack
#endif

using namespace trtconv;
using namespace trtconv::instance_norm;
using Element = TRTCONV_ELEMENT;

#ifdef TRTCONV_WARP
extern "C" __global__ void __launch_bounds__(kWarpThreads) TRTCONV_ENTRY(Element const* x, void const* scale,
    void const* bias, int32_t planes, int32_t channels, int32_t area, int32_t pack, Element* y)
#elif defined(TRTCONV_EVEN)
extern "C" __global__ void __launch_bounds__(kWarpThreads) TRTCONV_ENTRY(Element const* x, void const* scale,
    void const* bias, int32_t planes, int32_t channels, int32_t area, Element* y)
#else
extern "C" __global__ void __launch_bounds__(1024, 1) TRTCONV_ENTRY(Element const* x, void const* scale,
    void const* bias, int32_t planes, int32_t channels, int32_t area, Element* y)
#endif
{
    constexpr int64_t granule = kVectorBytes / static_cast<int64_t>(sizeof(Element));
    Plane p{};
    p.planes = planes;
    p.channels = channels;
    p.area = area;
    p.part = (area + granule - 1) / granule * granule;
    p.parts = 1;
    p.epsilon = TRTCONV_EPSILON;
    p.relu = TRTCONV_RELU != 0;
    p.parameterType = static_cast<ElementType>(TRTCONV_PARAMETER);
    p.scale = scale;
    p.bias = bias;
    if (area == 0 || planes == 0)
    {
        return; // an empty tensor has one block all the same
    }
#ifdef TRTCONV_WARP
    switch (TRTCONV_PACK)
    {
    case 1: return warpPlanes<Element, 1, TRTCONV_ITEMS>(x, y, p);
    case 2: return warpPlanes<Element, 2, TRTCONV_ITEMS>(x, y, p);
    default: return warpPlanes<Element, 4, TRTCONV_ITEMS>(x, y, p);
    }
#elif defined(TRTCONV_EVEN)
    evenPlanes<Element, TRTCONV_ITEMS>(x, y, p);
#else
    onChipPlanes<Element, false>(x, y, p);
#endif
}
