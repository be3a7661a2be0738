// TRTCONV_CHANNELS, TRTCONV_EPSILON; TRTCONV_PACK elements to an access, TRTCONV_COUNT of them to each of TRTCONV_LANES lanes
// of a row, or a pack of 0 for rows that registers do not hold.
#include "aot/begin.cuh"
#include "layer_norm/rows.cuh"
#include "aot/end.cuh"

using namespace trtconv;
using namespace trtconv::layer_norm;
using Element = TRTCONV_ELEMENT;

extern "C" __global__ void __launch_bounds__(kThreads)
    TRTCONV_ENTRY(Element const* x, Element const* scale, Element const* shift, int32_t rows, Element* y)
{
    if (rows == 0)
    {
        return; // an empty tensor has one block all the same
    }
    Rows const description{rows, TRTCONV_CHANNELS, TRTCONV_EPSILON};
#if TRTCONV_PACK > 0
    normalizeRows<Element, TRTCONV_PACK, TRTCONV_COUNT, TRTCONV_LANES>(x, scale, shift, y, description);
#else
    normalizeLongRows<Element>(x, scale, shift, y, description);
#endif
}
