#include "adapters/op.h"
#include "attention/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using attention::Attributes;

// Whether a size may be this one.
bool mayBe(nvinfer1::IDimensionExpr const* size, int64_t expected)
{
    return !size->isConstant() || size->getConstantValue() == expected;
}

bool mayEqual(nvinfer1::IDimensionExpr const* one, nvinfer1::IDimensionExpr const* other)
{
    return !other->isConstant() || mayBe(one, other->getConstantValue());
}

bool shapes(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder& builder)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    int64_t const width = int64_t{a.heads} * a.size;
    int64_t const offsets[] = {a.query_offset, a.key_offset, a.value_offset};
    for (int32_t i = 0; i < 3; ++i)
    {
        if (inputs[i].nbDims != 3 || !mayEqual(inputs[i].d[0], inputs[0].d[0]))
        {
            return false;
        }
        nvinfer1::IDimensionExpr const* const columns = inputs[i].d[2];
        if (columns->isConstant() && columns->getConstantValue() < offsets[i] + width)
        {
            return false;
        }
    }
    auto const* const* const bias = inputs[3].d;
    if (inputs[3].nbDims != 4 || !mayEqual(inputs[1].d[1], inputs[2].d[1]) || !(mayBe(bias[1], 1) || mayBe(bias[1], a.heads))
        || !(mayBe(bias[2], 1) || mayEqual(bias[2], inputs[0].d[1])) || !(mayBe(bias[3], 1) || mayEqual(bias[3], inputs[1].d[1])))
    {
        return false;
    }
    outputs[0] = inputs[0];
    outputs[0].d[2] = builder.constant(static_cast<int32_t>(width));
    return true;
}

int64_t workspace(void const*, TensorView const*)
{
    return 0;
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void*, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    if (in[1].dims[0] != in[0].dims[0] || in[2].dims[0] != in[0].dims[0] || in[1].dims[1] != in[2].dims[1])
    {
        return cudaErrorInvalidValue;
    }
    attention::Problem p;
    p.type = in[0].type;
    p.batch = in[0].dims[0];
    p.queries = in[0].dims[1];
    p.keys = in[1].dims[1];
    p.heads = a.heads;
    p.size = a.size;
    p.scale = a.scale;
    p.tf32 = a.tf32 != 0;
    int64_t const offsets[] = {a.query_offset, a.key_offset, a.value_offset};
    for (int32_t i = 0; i < 3; ++i)
    {
        p.widths[i] = in[i].dims[2];
        p.offsets[i] = offsets[i];
    }
    for (int32_t i = 0; i < 4; ++i)
    {
        p.bias[i] = in[3].dims[i];
    }
    return attention::launch(p, in[0].data, in[1].data, in[2].data, in[3].data, out[0].data, stream);
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kAttention{&attention::kSignature, &kDefaults, shapes, workspace, enqueue};
} // namespace trtconv
