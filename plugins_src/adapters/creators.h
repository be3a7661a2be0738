// One creator for each op, of the kind that the TensorRT version at hand has.
#pragma once

#include "adapters/op.h"

#include <memory>

namespace trtconv
{
#if NV_TENSORRT_MAJOR < 10
using Creator = nvinfer1::IPluginCreator;
#else
using Creator = nvinfer1::IPluginCreatorInterface;
#endif

std::unique_ptr<Creator> makeCreator(Op const& op);
} // namespace trtconv
