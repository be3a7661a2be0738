// The creators that IPluginRegistry::loadLibrary registers. They live as long as the library.
#include "adapters/creators.h"
#include "adapters/exports.h"

#include <vector>

namespace trtconv
{
namespace
{
std::vector<Creator*> makeCreators()
{
    static std::vector<std::unique_ptr<Creator>> owners;
    std::vector<Creator*> creators;
    for (int32_t i = 0; i < kOpCount; ++i)
    {
        owners.push_back(makeCreator(*kOps[i]));
        creators.push_back(owners.back().get());
    }
    return creators;
}

std::vector<Creator*> const& creators()
{
    static std::vector<Creator*> const all = makeCreators();
    return all;
}
} // namespace
} // namespace trtconv

#if NV_TENSORRT_MAJOR < 10
TRTCONV_EXPORT nvinfer1::IPluginCreator* const* getPluginCreators(int32_t& count)
#else
TRTCONV_EXPORT nvinfer1::IPluginCreatorInterface* const* getCreators(int32_t& count)
#endif
{
    count = static_cast<int32_t>(trtconv::creators().size());
    return trtconv::creators().data();
}
