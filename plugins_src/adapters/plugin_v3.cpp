// IPluginV3 with its three capabilities in one object, for TensorRT 10 and later.
#include "adapters/common.h"
#include "adapters/creators.h"

#if NV_TENSORRT_MAJOR >= 10
#include <exception>

namespace trtconv
{
namespace
{
using namespace nvinfer1;

class PluginV3 final : public IPluginV3, public IPluginV3OneCore, public IPluginV3OneBuild, public IPluginV3OneRuntime
{
public:
    PluginV3(Op const& op, AttributeBlock const& attributes)
        : mOp(op)
        , mAttributes(attributes)
        , mFields(mAttributes.fields())
        , mCollection{static_cast<int32_t>(mFields.size()), mFields.data()}
    {
    }

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override
    {
        switch (type)
        {
        case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild*>(this);
        case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
        default: return nullptr;
        }
    }

    IPluginV3* clone() noexcept override
    {
        try
        {
            return new PluginV3(mOp, mAttributes);
        }
        catch (std::exception const& error)
        {
            logError(error.what());
            return nullptr;
        }
    }

    char const* getPluginName() const noexcept override
    {
        return mOp.signature->name;
    }

    char const* getPluginVersion() const noexcept override
    {
        return mOp.signature->version;
    }

    char const* getPluginNamespace() const noexcept override
    {
        return mOp.signature->nameSpace;
    }

    int32_t configurePlugin(
        DynamicPluginTensorDesc const*, int32_t nbInputs, DynamicPluginTensorDesc const*, int32_t nbOutputs) noexcept override
    {
        return nbInputs == mOp.signature->inputs && nbOutputs == mOp.signature->outputs && canRun(mOp) ? 0 : 1;
    }

    int32_t getOutputDataTypes(
        DataType* outputs, int32_t nbOutputs, DataType const* inputs, int32_t nbInputs) const noexcept override
    {
        if (nbInputs != mOp.signature->inputs || nbOutputs != mOp.signature->outputs)
        {
            return 1;
        }
        for (int32_t i = 0; i < nbOutputs; ++i)
        {
            outputs[i] = outputType(*mOp.signature, i, inputs);
        }
        return 0;
    }

    int32_t getOutputShapes(DimsExprs const* inputs, int32_t nbInputs, DimsExprs const*, int32_t, DimsExprs* outputs,
        int32_t nbOutputs, IExprBuilder& builder) noexcept override
    {
        if (nbInputs == mOp.signature->inputs && nbOutputs == mOp.signature->outputs
            && mOp.shapes(mAttributes.data(), inputs, outputs, builder))
        {
            return 0;
        }
        logError(std::string(mOp.signature->name) + ": the inputs' shapes do not fit the attributes");
        return 1;
    }

    bool supportsFormatCombination(
        int32_t pos, DynamicPluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs) noexcept override
    {
        return nbInputs == mOp.signature->inputs && nbOutputs == mOp.signature->outputs
            && supports(mOp, pos, [&](int32_t i) -> PluginTensorDesc const& { return inOut[i].desc; });
    }

    int32_t getNbOutputs() const noexcept override
    {
        return mOp.signature->outputs;
    }

    size_t getWorkspaceSize(
        DynamicPluginTensorDesc const* inputs, int32_t nbInputs, DynamicPluginTensorDesc const*, int32_t) const noexcept override
    {
        TensorView views[kMaxTensors];
        for (int32_t i = 0; i < nbInputs && i < kMaxTensors; ++i)
        {
            views[i] = viewOf(inputs[i].desc.type, inputs[i].max, nullptr);
        }
        return static_cast<size_t>(mOp.workspace(mAttributes.data(), views));
    }

    int32_t onShapeChange(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) noexcept override
    {
        return 0;
    }

    int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const* const* inputs,
        void* const* outputs, void* workspace, cudaStream_t stream) noexcept override
    {
        return enqueueOp(mOp, mAttributes, inputDesc, outputDesc, inputs, outputs, workspace, stream);
    }

    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override
    {
        return canRun(mOp) ? clone() : nullptr;
    }

    PluginFieldCollection const* getFieldsToSerialize() noexcept override
    {
        return &mCollection;
    }

private:
    Op const& mOp;
    AttributeBlock mAttributes;
    std::vector<PluginField> mFields; // point into mAttributes: the object is neither copied nor moved
    PluginFieldCollection mCollection;
};

class CreatorV3 final : public IPluginCreatorV3One
{
public:
    explicit CreatorV3(Op const& op)
        : mOp(op)
        , mFields(declaredFields(*op.signature))
        , mCollection{static_cast<int32_t>(mFields.size()), mFields.data()}
    {
    }

    char const* getPluginName() const noexcept override
    {
        return mOp.signature->name;
    }

    char const* getPluginVersion() const noexcept override
    {
        return mOp.signature->version;
    }

    char const* getPluginNamespace() const noexcept override
    {
        return mOp.signature->nameSpace;
    }

    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mCollection;
    }

    // The same at build time and at run time: the engine keeps the fields of getFieldsToSerialize.
    IPluginV3* createPlugin(char const*, PluginFieldCollection const* fields, TensorRTPhase) noexcept override
    {
        try
        {
            AttributeBlock attributes(mOp);
            std::string const wrong = fields == nullptr ? "no fields" : attributes.take(*fields);
            if (!wrong.empty())
            {
                logError(wrong);
                return nullptr;
            }
            return new PluginV3(mOp, attributes);
        }
        catch (std::exception const& error)
        {
            logError(error.what());
            return nullptr;
        }
    }

private:
    Op const& mOp;
    std::vector<PluginField> mFields;
    PluginFieldCollection mCollection;
};
} // namespace

std::unique_ptr<Creator> makeCreator(Op const& op)
{
    return std::make_unique<CreatorV3>(op);
}
} // namespace trtconv
#endif
