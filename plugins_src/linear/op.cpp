#include "adapters/op.h"
#include "linear/kernel.h"
#include "trtconv_descriptions.h"

namespace trtconv
{
namespace
{
using linear::Attributes;

bool mayEqual(nvinfer1::IDimensionExpr const* one, nvinfer1::IDimensionExpr const* other)
{
    return !one->isConstant() || !other->isConstant() || one->getConstantValue() == other->getConstantValue();
}

bool shapes(void const* attributes, nvinfer1::DimsExprs const* inputs, nvinfer1::DimsExprs* outputs, nvinfer1::IExprBuilder&)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    nvinfer1::DimsExprs const& x = inputs[0];
    nvinfer1::DimsExprs const& weight = inputs[1];
    int32_t const last = x.nbDims - 1;
    if (last < 1 || weight.nbDims != 2 || inputs[2].nbDims != 1 || !mayEqual(weight.d[1], x.d[last])
        || !mayEqual(weight.d[0], inputs[2].d[0]))
    {
        return false;
    }
    outputs[0] = x;
    outputs[0].d[last] = weight.d[0];
    nvinfer1::DimsExprs const& expected = a.added != 0 ? outputs[0] : inputs[2];
    if (inputs[3].nbDims != expected.nbDims)
    {
        return false;
    }
    for (int32_t i = 0; i < expected.nbDims; ++i)
    {
        if (!mayEqual(inputs[3].d[i], expected.d[i]))
        {
            return false;
        }
    }
    return true;
}

int64_t workspace(void const*, TensorView const*)
{
    return linear::kWorkspaceBytes;
}

cudaError_t enqueue(void const* attributes, TensorView const* in, TensorView const* out, void* memory, cudaStream_t stream)
{
    auto const& a = *static_cast<Attributes const*>(attributes);
    TensorView const& x = in[0];
    linear::Problem p;
    p.type = x.type;
    p.rows = x.volume(0, x.rank - 1);
    p.columns = in[1].dims[0];
    p.depth = in[1].dims[1];
    p.activation = static_cast<linear::Activation>(a.activation);
    p.added = a.added != 0;
    p.tf32 = a.tf32 != 0;
    if (x.dims[x.rank - 1] != p.depth || in[2].dims[0] != p.columns
        || (p.added && in[3].volume(0, in[3].rank) != p.rows * p.columns))
    {
        return cudaErrorInvalidValue;
    }
    return linear::launch(p, x.data, in[1].data, in[2].data, in[3].data, out[0].data, memory, stream);
}

char const* missing()
{
    return linear::hasLibrary() ? nullptr
                                : "it computes with cuBLASLt, and neither libcublasLt.so.13 nor .12 nor .11 is on the "
                                  "loader's path (LD_LIBRARY_PATH) and works on this device";
}

constexpr Attributes kDefaults;
} // namespace

extern Op const kLinear{&linear::kSignature, &kDefaults, shapes, workspace, enqueue, missing};
} // namespace trtconv
