// TRTCONV_SCALE (an ElementType), TRTCONV_EPSILON, TRTCONV_MODE, TRTCONV_CHANNELS, TRTCONV_ITEMS (packs that a thread
// holds), and one of: TRTCONV_TEAM, the warps that take a row, where `inner` is 1, with TRTCONV_THREADS to a block;
// TRTCONV_LANES, windows of so many granules; TRTCONV_ROWS, rows of any packs, a warp to each; none of them: tiles of packs,
// with TRTCONV_PACK, how many elements a thread moves at once, where it is fixed; a pack of 0: the column is read twice.
#include "aot/begin.cuh"
#include "l2norm/columns.cuh"
#include "l2norm/rows.cuh"
#include "l2norm/windows.cuh"
#include "aot/end.cuh"

#ifndef TRTCONV_PACK
#define TRTCONV_PACK pack
#endif

using namespace trtconv;
using namespace trtconv::l2norm;
using Element = TRTCONV_ELEMENT;

#if defined(TRTCONV_TEAM) || defined(TRTCONV_ROWS)
#ifndef TRTCONV_THREADS
#define TRTCONV_THREADS kRowThreads
#endif
extern "C" __global__ void __launch_bounds__(TRTCONV_THREADS)
    TRTCONV_ENTRY(Element const* x, void const* scale, int32_t outer, Element* y)
{
    Column const p{TRTCONV_CHANNELS, 1, 1, 0, TRTCONV_EPSILON, TRTCONV_MODE, static_cast<ElementType>(TRTCONV_SCALE)};
#ifdef TRTCONV_TEAM
    using Scale = std::conditional_t<TRTCONV_SCALE == 0, float, Element>;
    packedRows<Element, Scale, TRTCONV_ITEMS>(x, static_cast<Scale const*>(scale), y, outer, TRTCONV_TEAM, p);
#else
    heldRows<Element, TRTCONV_PACK, TRTCONV_ITEMS>(x, scale, y, outer, p);
#endif
}
#elif defined(TRTCONV_LANES)
extern "C" __global__ void __launch_bounds__(kThreads, windowBlocks(TRTCONV_ITEMS)) TRTCONV_ENTRY(Element const* x,
    void const* scale, int32_t outer, int32_t inner, int32_t tiles, int32_t run, int32_t halo, Element* y)
{
    Window const p{TRTCONV_CHANNELS, TRTCONV_CHANNELS, inner, run, halo, static_cast<uint32_t>(tiles),
        static_cast<uint32_t>(outer) * static_cast<uint32_t>(tiles), 0, TRTCONV_EPSILON, TRTCONV_MODE,
        static_cast<ElementType>(TRTCONV_SCALE)};
    // An empty tensor has one block all the same, and no tiles.
    windows<Element, TRTCONV_LANES, TRTCONV_ITEMS>(x, scale, y, p);
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
