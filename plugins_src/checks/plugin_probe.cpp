// Asks a plugin library, without TensorRT, what TensorRT would ask: its creators and fields, the types it takes, the
// shapes it gives, and whether a plugin survives serialization. Built with the headers that the library was built with.
//
//   plugin_probe LIBRARY creators
//   plugin_probe LIBRARY types OP INPUTS [NAME=i:1,2]...
//   plugin_probe LIBRARY ready OP                         whether the plugin could run in this process
//   plugin_probe LIBRARY shapes OP [NAME=i:1,2 | NAME=f:0.5]... -- DIMS [DIMS]...     with DIMS as 2x3x4
#include "adapters/exports.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace nvinfer1;

namespace
{
#if NV_TENSORRT_MAJOR < 10
using Creator = IPluginCreator;
using Size = int32_t;
#else
using Creator = IPluginCreatorV3One;
using Size = int64_t;
#endif

class Constant final : public apiv::VDimensionExpr, public IDimensionExpr
{
public:
    explicit Constant(Size value)
        : mValue(value)
    {
        mImpl = this;
    }
    bool isConstant() const override
    {
        return true;
    }
    Size getConstantValue() const override
    {
        return mValue;
    }
#if NV_TENSORRT_MAJOR >= 10
    bool isSizeTensor() const override
    {
        return false;
    }
#endif

private:
    Size mValue;
};

class Builder final : public apiv::VExprBuilder, public IExprBuilder
{
public:
    Builder()
    {
        mImpl = this;
    }
    IDimensionExpr const* constant(Size value) override
    {
        mMade.push_back(std::make_unique<Constant>(value));
        return mMade.back().get();
    }
    IDimensionExpr const* operation(
        DimensionOperation op, IDimensionExpr const& first, IDimensionExpr const& second) override
    {
        if (op != DimensionOperation::kSUM)
        {
            std::fprintf(stderr, "the probe knows only sums\n");
            std::exit(2);
        }
        return constant(first.getConstantValue() + second.getConstantValue());
    }
#if NV_TENSORRT_MAJOR >= 10
    IDimensionExpr const* declareSizeTensor(int32_t, IDimensionExpr const&, IDimensionExpr const&) override
    {
        return nullptr;
    }
#endif

private:
    std::vector<std::unique_ptr<Constant>> mMade;
};

std::vector<Creator*> creatorsOf(void* library)
{
    int32_t count = 0;
    std::vector<Creator*> result;
#if NV_TENSORRT_MAJOR < 10
    auto const get = reinterpret_cast<decltype(&getPluginCreators)>(dlsym(library, "getPluginCreators"));
#else
    auto const get = reinterpret_cast<decltype(&getCreators)>(dlsym(library, "getCreators"));
#endif
    if (get == nullptr || dlsym(library, "setLoggerFinder") == nullptr)
    {
        std::fprintf(stderr, "the library lacks the functions that loadLibrary looks for\n");
        std::exit(2);
    }
    auto* const* const all = get(count);
    for (int32_t i = 0; i < count; ++i)
    {
        result.push_back(static_cast<Creator*>(all[i]));
    }
    return result;
}

Creator& creatorOf(void* library, std::string const& name)
{
    for (Creator* const creator : creatorsOf(library))
    {
        if (name == creator->getPluginName())
        {
            return *creator;
        }
    }
    std::fprintf(stderr, "no creator %s\n", name.c_str());
    std::exit(2);
}

// The plugin object of whichever interface, asked in the same words.
struct Plugin
{
#if NV_TENSORRT_MAJOR < 10
    IPluginV2DynamicExt* plugin;
    int32_t outputs() const
    {
        return plugin->getNbOutputs();
    }
    bool supports(int32_t pos, std::vector<PluginTensorDesc> const& descs, int32_t inputs) const
    {
        return plugin->supportsFormatCombination(pos, descs.data(), inputs, outputs());
    }
    bool shapes(std::vector<DimsExprs> const& in, DimsExprs& out, Builder& builder) const
    {
        out = plugin->getOutputDimensions(0, in.data(), static_cast<int32_t>(in.size()), builder);
        return out.nbDims >= 0;
    }
    bool ready() const
    {
        return plugin->initialize() == 0;
    }
    std::string state() const
    {
        std::string bytes(plugin->getSerializationSize(), '\0');
        plugin->serialize(bytes.data());
        return bytes;
    }
    Plugin again(Creator& creator) const
    {
        std::string const bytes = state();
        return {static_cast<IPluginV2DynamicExt*>(creator.deserializePlugin("probe", bytes.data(), bytes.size()))};
    }
#else
    IPluginV3* plugin;
    IPluginV3OneBuild* build() const
    {
        return static_cast<IPluginV3OneBuild*>(plugin->getCapabilityInterface(PluginCapabilityType::kBUILD));
    }
    IPluginV3OneRuntime* runtime() const
    {
        return static_cast<IPluginV3OneRuntime*>(plugin->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
    }
    int32_t outputs() const
    {
        return build()->getNbOutputs();
    }
    bool supports(int32_t pos, std::vector<PluginTensorDesc> const& descs, int32_t inputs) const
    {
        std::vector<DynamicPluginTensorDesc> dynamic(descs.size());
        for (size_t i = 0; i < descs.size(); ++i)
        {
            dynamic[i].desc = descs[i];
        }
        return build()->supportsFormatCombination(pos, dynamic.data(), inputs, outputs());
    }
    bool shapes(std::vector<DimsExprs> const& in, DimsExprs& out, Builder& builder) const
    {
        return build()->getOutputShapes(in.data(), static_cast<int32_t>(in.size()), nullptr, 0, &out, 1, builder) == 0;
    }
    bool ready() const
    {
        return runtime()->attachToContext(nullptr) != nullptr;
    }
    std::string state() const
    {
        PluginFieldCollection const& fields = *runtime()->getFieldsToSerialize();
        std::string bytes;
        for (int32_t i = 0; i < fields.nbFields; ++i)
        {
            auto const* const data = static_cast<char const*>(fields.fields[i].data);
            bytes += std::string(fields.fields[i].name) + "=";
            bytes.append(data, static_cast<size_t>(fields.fields[i].length) * 4);
        }
        return bytes;
    }
    Plugin again(Creator& creator) const
    {
        return {creator.createPlugin("probe", runtime()->getFieldsToSerialize(), TensorRTPhase::kRUNTIME)};
    }
#endif
};

struct Value
{
    std::string name;
    std::vector<int32_t> ints;
    float number{0};
};

Value valueOf(std::string const& text)
{
    size_t const equals = text.find('=');
    Value value{text.substr(0, equals), {}, 0};
    char const* at = text.c_str() + equals + 3;
    if (text[equals + 1] == 'f')
    {
        value.number = std::strtof(at, nullptr);
        return value;
    }
    for (char* end = nullptr; *at != '\0'; at = *end == ',' ? end + 1 : end)
    {
        value.ints.push_back(static_cast<int32_t>(std::strtol(at, &end, 10)));
    }
    return value;
}

Plugin create(Creator& creator, std::vector<Value> const& values)
{
    std::vector<PluginField> fields;
    for (Value const& value : values)
    {
        bool const ints = !value.ints.empty();
        fields.emplace_back(value.name.c_str(), ints ? static_cast<void const*>(value.ints.data()) : &value.number,
            ints ? PluginFieldType::kINT32 : PluginFieldType::kFLOAT32,
            ints ? static_cast<int32_t>(value.ints.size()) : 1);
    }
    PluginFieldCollection const collection{static_cast<int32_t>(fields.size()), fields.data()};
#if NV_TENSORRT_MAJOR < 10
    return {static_cast<IPluginV2DynamicExt*>(creator.createPlugin("probe", &collection))};
#else
    return {creator.createPlugin("probe", &collection, TensorRTPhase::kBUILD)};
#endif
}

void printCreators(void* library)
{
    for (Creator* const creator : creatorsOf(library))
    {
        std::printf("%s %s %s", creator->getPluginName(), creator->getPluginVersion(), creator->getPluginNamespace());
        PluginFieldCollection const& fields = *creator->getFieldNames();
        for (int32_t i = 0; i < fields.nbFields; ++i)
        {
            PluginField const& field = fields.fields[i];
            std::printf(" %s:%s:%d", field.name, field.type == PluginFieldType::kFLOAT32 ? "float" : "int", field.length);
        }
        std::printf("\n");
    }
}

// Every combination of types of all tensors that the plugin takes, as DataType numbers.
void printTypes(Creator& creator, int32_t inputs, std::vector<Value> const& values)
{
    Plugin const plugin = create(creator, values);
    auto const tensors = static_cast<size_t>(inputs + plugin.outputs());
    int32_t const numbers[] = {0, 1, 2, 3, 7};
    std::vector<PluginTensorDesc> descs(tensors);
    size_t combinations = 1;
    for (size_t i = 0; i < tensors; ++i)
    {
        combinations *= 5;
    }
    for (size_t c = 0; c < combinations; ++c)
    {
        bool accepted = true;
        std::string line;
        size_t rest = c;
        for (size_t i = 0; i < tensors; ++i, rest /= 5)
        {
            descs[i].type = static_cast<DataType>(numbers[rest % 5]);
            descs[i].format = TensorFormat::kLINEAR;
            line += (i == 0 ? "" : " ") + std::to_string(numbers[rest % 5]);
        }
        for (size_t i = 0; i < tensors; ++i)
        {
            accepted = accepted && plugin.supports(static_cast<int32_t>(i), descs, inputs);
        }
        if (accepted)
        {
            std::printf("%s\n", line.c_str());
        }
    }
}

int printShapes(Creator& creator, std::vector<Value> const& values, std::vector<std::string> const& shapes)
{
    Plugin const plugin = create(creator, values);
    if (plugin.plugin == nullptr)
    {
        std::printf("refused attributes\n");
        return 0;
    }
    Plugin const again = plugin.again(creator);
    if (again.plugin == nullptr || again.state() != plugin.state())
    {
        std::printf("lost in serialization\n");
        return 1;
    }
    Builder builder;
    std::vector<DimsExprs> inputs;
    for (std::string const& text : shapes)
    {
        DimsExprs dims{};
        char const* at = text.c_str();
        for (char* end = nullptr; *at != '\0'; at = *end == 'x' ? end + 1 : end)
        {
            dims.d[dims.nbDims++] = builder.constant(static_cast<Size>(std::strtol(at, &end, 10)));
        }
        inputs.push_back(dims);
    }
    DimsExprs output{};
    if (!again.shapes(inputs, output, builder))
    {
        std::printf("refused shapes\n");
        return 0;
    }
    for (int32_t i = 0; i < output.nbDims; ++i)
    {
        std::printf("%s%lld", i == 0 ? "" : "x", static_cast<long long>(output.d[i]->getConstantValue()));
    }
    std::printf("\n");
    return 0;
}
} // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> const words(argv + 1, argv + argc);
    if (words.size() < 2)
    {
        std::fprintf(stderr, "usage: plugin_probe LIBRARY creators|types|ready|shapes ...\n");
        return 2;
    }
    void* const library = dlopen(words[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
    {
        std::fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    if (words[1] == "creators")
    {
        printCreators(library);
        return 0;
    }
    Creator& creator = creatorOf(library, words.at(2));
    if (words[1] == "ready")
    {
        std::printf(create(creator, {}).ready() ? "ready\n" : "not ready\n");
        return 0;
    }
    std::vector<Value> values;
    std::vector<std::string> shapes;
    bool behind = false;
    for (size_t i = words[1] == "types" ? 4 : 3; i < words.size(); ++i)
    {
        if (words[i] == "--")
        {
            behind = true;
        }
        else if (behind)
        {
            shapes.push_back(words[i]);
        }
        else
        {
            values.push_back(valueOf(words[i]));
        }
    }
    if (words[1] == "types")
    {
        printTypes(creator, std::atoi(words.at(3).c_str()), values);
        return 0;
    }
    return printShapes(creator, values, shapes);
}
