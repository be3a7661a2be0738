// IPluginV2DynamicExt, for TensorRT before 10.
#include "adapters/common.h"
#include "adapters/creators.h"

#if NV_TENSORRT_MAJOR < 10
#include <cstring>
#include <exception>

namespace trtconv
{
namespace
{
using namespace nvinfer1;

// Before TensorRT 10 a network is typed weakly, and a plugin that takes half and FP32 computes in what was faster when the
// builder tried both. Whoever builds may say what each tensor is (an ElementType, inputs first; other numbers leave it open).
// It matters to the builder alone, so that it is no part of the serialized plugin.
constexpr char const* kTypesField = "element_types";

struct TensorTypes
{
    int32_t types[kMaxTensors]{-1, -1, -1, -1, -1, -1, -1, -1};

    void take(PluginFieldCollection const& fields) noexcept
    {
        for (int32_t i = 0; i < fields.nbFields; ++i)
        {
            PluginField const& field = fields.fields[i];
            if (field.name != nullptr && std::strcmp(field.name, kTypesField) == 0 && field.data != nullptr
                && field.type == PluginFieldType::kINT32 && field.length > 0 && field.length <= kMaxTensors)
            {
                std::memcpy(types, field.data, sizeof(int32_t) * static_cast<size_t>(field.length));
            }
        }
    }

    // Whether tensor `pos` may be of the type, by what is said of the tensors of its type variable.
    bool allow(Signature const& signature, int32_t pos, ElementType type) const noexcept
    {
        for (int32_t i = 0; i < signature.inputs + signature.outputs; ++i)
        {
            bool const said = types[i] >= 0 && types[i] < kElementTypes;
            if (signature.slots[i] == signature.slots[pos] && said && types[i] != static_cast<int32_t>(type))
            {
                return false;
            }
        }
        return true;
    }
};

class PluginV2 final : public IPluginV2DynamicExt
{
public:
    PluginV2(Op const& op, AttributeBlock const& attributes, TensorTypes const& types, std::string nameSpace)
        : mOp(op)
        , mAttributes(attributes)
        , mTypes(types)
        , mNamespace(std::move(nameSpace))
    {
    }

    IPluginV2DynamicExt* clone() const noexcept override
    {
        try
        {
            return new PluginV2(mOp, mAttributes, mTypes, mNamespace);
        }
        catch (std::exception const& error)
        {
            logError(error.what());
            return nullptr;
        }
    }

    DimsExprs getOutputDimensions(
        int32_t output, DimsExprs const* inputs, int32_t nbInputs, IExprBuilder& builder) noexcept override
    {
        DimsExprs outputs[kMaxTensors]{};
        if (nbInputs != mOp.signature->inputs || !mOp.shapes(mAttributes.data(), inputs, outputs, builder))
        {
            logError(std::string(mOp.signature->name) + ": the inputs' shapes do not fit the attributes");
            return DimsExprs{-1, {}};
        }
        return outputs[output];
    }

    bool supportsFormatCombination(
        int32_t pos, PluginTensorDesc const* inOut, int32_t nbInputs, int32_t nbOutputs) noexcept override
    {
        return nbInputs == mOp.signature->inputs && nbOutputs == mOp.signature->outputs
            && mTypes.allow(*mOp.signature, pos, elementOf(inOut[pos].type))
            && supports(mOp, pos, [&](int32_t i) -> PluginTensorDesc const& { return inOut[i]; });
    }

    void configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*, int32_t) noexcept override
    {
    }

    size_t getWorkspaceSize(
        PluginTensorDesc const* inputs, int32_t nbInputs, PluginTensorDesc const*, int32_t) const noexcept override
    {
        TensorView views[kMaxTensors];
        for (int32_t i = 0; i < nbInputs && i < kMaxTensors; ++i)
        {
            views[i] = viewOf(inputs[i].type, inputs[i].dims, nullptr);
        }
        return static_cast<size_t>(mOp.workspace(mAttributes.data(), views));
    }

    int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc, void const* const* inputs,
        void* const* outputs, void* workspace, cudaStream_t stream) noexcept override
    {
        return enqueueOp(mOp, mAttributes, inputDesc, outputDesc, inputs, outputs, workspace, stream);
    }

    DataType getOutputDataType(int32_t output, DataType const* inputs, int32_t) const noexcept override
    {
        return outputType(*mOp.signature, output, inputs);
    }

    char const* getPluginType() const noexcept override
    {
        return mOp.signature->name;
    }

    char const* getPluginVersion() const noexcept override
    {
        return mOp.signature->version;
    }

    int32_t getNbOutputs() const noexcept override
    {
        return mOp.signature->outputs;
    }

    // Called when an engine is built and when it is loaded.
    int32_t initialize() noexcept override
    {
        return canRun(mOp) ? 0 : 1;
    }

    void terminate() noexcept override {}

    size_t getSerializationSize() const noexcept override
    {
        return mAttributes.serializedSize();
    }

    void serialize(void* buffer) const noexcept override
    {
        mAttributes.serialize(buffer);
    }

    void destroy() noexcept override
    {
        delete this;
    }

    void setPluginNamespace(char const* nameSpace) noexcept override
    {
        mNamespace = nameSpace == nullptr ? "" : nameSpace;
    }

    char const* getPluginNamespace() const noexcept override
    {
        return mNamespace.c_str();
    }

private:
    Op const& mOp;
    AttributeBlock mAttributes;
    TensorTypes mTypes;
    std::string mNamespace;
};

class CreatorV2 final : public IPluginCreator
{
public:
    explicit CreatorV2(Op const& op)
        : mOp(op)
        , mFields(fieldsOf(op))
        , mCollection{static_cast<int32_t>(mFields.size()), mFields.data()}
        , mNamespace(op.signature->nameSpace)
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

    PluginFieldCollection const* getFieldNames() noexcept override
    {
        return &mCollection;
    }

    IPluginV2* createPlugin(char const*, PluginFieldCollection const* fields) noexcept override
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
            TensorTypes types;
            types.take(*fields);
            return new PluginV2(mOp, attributes, types, mNamespace);
        }
        catch (std::exception const& error)
        {
            logError(error.what());
            return nullptr;
        }
    }

    IPluginV2* deserializePlugin(char const*, void const* data, size_t length) noexcept override
    {
        try
        {
            AttributeBlock attributes(mOp);
            if (!attributes.deserialize(data, length))
            {
                logError(std::string(mOp.signature->name) + ": the engine was built with another plugin library");
                return nullptr;
            }
            return new PluginV2(mOp, attributes, TensorTypes(), mNamespace);
        }
        catch (std::exception const& error)
        {
            logError(error.what());
            return nullptr;
        }
    }

    void setPluginNamespace(char const* nameSpace) noexcept override
    {
        mNamespace = nameSpace == nullptr ? "" : nameSpace;
    }

    char const* getPluginNamespace() const noexcept override
    {
        return mNamespace.c_str();
    }

private:
    // The ONNX parser passes only what is declared here.
    static std::vector<PluginField> fieldsOf(Op const& op)
    {
        std::vector<PluginField> fields = declaredFields(*op.signature);
        fields.emplace_back(kTypesField, nullptr, PluginFieldType::kINT32, op.signature->inputs + op.signature->outputs);
        return fields;
    }

    Op const& mOp;
    std::vector<PluginField> mFields;
    PluginFieldCollection mCollection;
    std::string mNamespace;
};
} // namespace

std::unique_ptr<Creator> makeCreator(Op const& op)
{
    return std::make_unique<CreatorV2>(op);
}
} // namespace trtconv
#endif
