// What IPluginRegistry::loadLibrary looks for. Everything else in the library is hidden.
#pragma once

#include <NvInferRuntime.h>

#define TRTCONV_EXPORT extern "C" __attribute__((visibility("default")))

TRTCONV_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder);
#if NV_TENSORRT_MAJOR < 10
TRTCONV_EXPORT nvinfer1::IPluginCreator* const* getPluginCreators(int32_t& count);
#else
TRTCONV_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count);
#endif
