// What the shape rules of several ops ask of their inputs.
#pragma once

#include <NvInferRuntime.h>

namespace trtconv
{
// True where a size is known to be another one.
inline bool isNot(nvinfer1::IDimensionExpr const* size, int64_t expected)
{
    return size->isConstant() && size->getConstantValue() != expected;
}

// False where the tensor is no vector, or where both lengths are known and differ.
inline bool mayBeVectorOf(nvinfer1::DimsExprs const& tensor, nvinfer1::IDimensionExpr const* length)
{
    return tensor.nbDims == 1 && !(length->isConstant() && isNot(tensor.d[0], length->getConstantValue()));
}
} // namespace trtconv
