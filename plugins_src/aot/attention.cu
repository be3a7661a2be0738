// TRTCONV_HEADS, TRTCONV_SIZE, TRTCONV_COLUMNS (of the kernel, no fewer than the size), TRTCONV_VECTOR, TRTCONV_SCALE, and
// the first columns TRTCONV_QUERY, TRTCONV_KEY and TRTCONV_VALUE.
#include "aot/begin.cuh"
#include "attention/blocks.cuh"
#include "aot/end.cuh"

using namespace trtconv;
using namespace trtconv::attention;
using Element = TRTCONV_ELEMENT;

extern "C" __global__ void __launch_bounds__(32 * kWarps) TRTCONV_ENTRY(Element const* query, Element const* key,
    Element const* value, Element const* bias, int32_t queries, int32_t keys, int32_t queryWidth, int32_t keyWidth,
    int32_t valueWidth, int32_t groups, int32_t biasHeads, int32_t biasRows, int32_t biasColumns, int32_t tiles, int32_t count,
    Element* y)
{
    if (count == 0)
    {
        return; // an empty tensor has one block all the same
    }
    Layout const p{Divider(tiles), Divider(TRTCONV_HEADS), Divider(groups), TRTCONV_SIZE, queries, keys,
        {queryWidth, keyWidth, valueWidth}, {TRTCONV_QUERY, TRTCONV_KEY, TRTCONV_VALUE}, biasHeads * biasRows * biasColumns,
        biasHeads == 1 ? 0 : biasRows * biasColumns, biasRows == 1 ? 0 : biasColumns, biasColumns == 1 ? 0 : 1,
        groups * biasHeads * biasRows * biasColumns, biasRows == queries && biasColumns == keys, TRTCONV_SCALE};
    blocks<Element, TRTCONV_COLUMNS, TRTCONV_VECTOR>(query, key, value, bias, y, p);
}
