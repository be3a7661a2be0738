// TRTCONV_SCALE (an ElementType), TRTCONV_EPSILON, TRTCONV_MODE, TRTCONV_CHANNELS, TRTCONV_ITEMS (packs that a thread
// holds); TRTCONV_PACK, how many elements a thread moves at once, where it is fixed; TRTCONV_ROWS where `inner` is 1 and a
// warp takes a row. A pack of 0: the column is read twice.
#include "aot/begin.cuh"
#include "l2norm/columns.cuh"
#include "l2norm/rows.cuh"
#include "aot/end.cuh"

#ifndef TRTCONV_PACK
#define TRTCONV_PACK pack
#endif

using namespace trtconv;
using namespace trtconv::l2norm;
using Element = TRTCONV_ELEMENT;

#ifdef TRTCONV_ROWS
extern "C" __global__ void __launch_bounds__(kRowThreads)
    TRTCONV_ENTRY(Element const* x, void const* scale, int32_t outer, Element* y)
{
    Column const p{TRTCONV_CHANNELS, 1, 1, 0, TRTCONV_EPSILON, TRTCONV_MODE, static_cast<ElementType>(TRTCONV_SCALE)};
    heldRows<Element, TRTCONV_PACK, TRTCONV_ITEMS>(x, scale, y, outer, p);
}
#else
extern "C" __global__ void __launch_bounds__(kThreads, 2) TRTCONV_ENTRY(Element const* x, void const* scale,
    int32_t outer, int32_t inner, int32_t tiles, int32_t lanesLog2, int32_t pack, Element* y)
{
    Column const p{TRTCONV_CHANNELS, inner, tiles, lanesLog2, TRTCONV_EPSILON, TRTCONV_MODE,
        static_cast<ElementType>(TRTCONV_SCALE)};
    if (blockIdx.x >= int64_t{outer} * tiles)
    {
        return; // an empty tensor has one block all the same
    }
    switch (TRTCONV_PACK)
    {
    case 0: return reloadedColumns<Element>(x, scale, y, p);
    case 1: return heldColumns<Element, 1, TRTCONV_ITEMS>(x, scale, y, p);
    case 2: return heldColumns<Element, 2, TRTCONV_ITEMS>(x, scale, y, p);
    case 4: return heldColumns<Element, 4, TRTCONV_ITEMS>(x, scale, y, p);
    default: return heldColumns<Element, kVectorBytes / sizeof(Element), TRTCONV_ITEMS>(x, scale, y, p);
    }
}
#endif
