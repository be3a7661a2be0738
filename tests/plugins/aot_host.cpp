// Stands in for libnvinfer and asks a quickly deployable plugin what TensorRT's builder asks: types, shapes, formats, launch
// parameters and the kernel, through the C++ interfaces of TensorRT's bindings. The plugin registry is the real one of
// the lean runtime, whose path LEAN_LIBRARY has. Expressions are kept as trees and evaluated at the shapes of the request.
//
// The request, one item a line:
//   plugin NAME
//   attribute NAME i|f|I VALUE...
//   input TYPE DIMS OPT MAX        with DIMS as 2x-1x4, and -1 where the size is dynamic
//   at DIMS...                     shapes of all inputs at which expressions are evaluated
#include <NvInferRuntime.h>
#include <impl/NvInferPythonPlugin.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace nvinfer1;

namespace
{
using Shape = std::vector<int64_t>;
using Shapes = std::vector<Shape>;

class Node final : public apiv::VDimensionExpr, public IDimensionExpr
{
public:
    Node(int64_t value)
        : kind(Kind::kConstant)
        , value(value)
    {
        mImpl = this;
    }
    Node(int32_t input, int32_t axis)
        : kind(Kind::kDim)
        , input(input)
        , axis(axis)
    {
        mImpl = this;
    }
    Node(DimensionOperation op, Node const* left, Node const* right)
        : kind(Kind::kOperation)
        , op(op)
        , left(left)
        , right(right)
    {
        mImpl = this;
    }
    bool isConstant() const override
    {
        return kind == Kind::kConstant;
    }
    int64_t getConstantValue() const override
    {
        return isConstant() ? value : -1;
    }
    bool isSizeTensor() const override
    {
        return false;
    }

    int64_t at(Shapes const& shapes) const
    {
        if (kind == Kind::kConstant)
        {
            return value;
        }
        if (kind == Kind::kDim)
        {
            return shapes[input][axis];
        }
        int64_t const a = left->at(shapes);
        int64_t const b = right->at(shapes);
        switch (op)
        {
        case DimensionOperation::kSUM: return a + b;
        case DimensionOperation::kPROD: return a * b;
        case DimensionOperation::kMAX: return std::max(a, b);
        case DimensionOperation::kMIN: return std::min(a, b);
        case DimensionOperation::kSUB: return a - b;
        case DimensionOperation::kEQUAL: return a == b ? 1 : 0;
        case DimensionOperation::kLESS: return a < b ? 1 : 0;
        case DimensionOperation::kFLOOR_DIV: return a / b;
        case DimensionOperation::kCEIL_DIV: return (a + b - 1) / b;
        default: return INT64_MIN;
        }
    }

private:
    enum class Kind
    {
        kConstant,
        kDim,
        kOperation,
    };
    Kind kind;
    int64_t value{0};
    int32_t input{0};
    int32_t axis{0};
    DimensionOperation op{};
    Node const* left{nullptr};
    Node const* right{nullptr};
};

class Builder final : public apiv::VExprBuilder, public IExprBuilder
{
public:
    Builder()
    {
        mImpl = this;
    }
    template <typename... Args>
    Node const* make(Args... args)
    {
        mMade.push_back(std::make_unique<Node>(args...));
        return mMade.back().get();
    }
    IDimensionExpr const* constant(int64_t value) override
    {
        return make(value);
    }
    IDimensionExpr const* operation(DimensionOperation op, IDimensionExpr const& a, IDimensionExpr const& b) override
    {
        auto const* const left = static_cast<Node const*>(&a);
        auto const* const right = static_cast<Node const*>(&b);
        return make(op, left, right);
    }
    IDimensionExpr const* declareSizeTensor(int32_t, IDimensionExpr const&, IDimensionExpr const&) override
    {
        return nullptr;
    }

private:
    std::vector<std::unique_ptr<Node>> mMade;
};

Node const& nodeOf(ISymExpr* expression)
{
    return *static_cast<Node const*>(static_cast<IDimensionExpr const*>(expression->getExpr()));
}

class Launch final : public IKernelLaunchParamsImpl, public IKernelLaunchParams
{
public:
    Launch()
    {
        mImpl = this;
    }
#define TRTCONV_FIELD(NAME, INDEX)                                                                                     \
    ISymExpr* get##NAME() noexcept override                                                                            \
    {                                                                                                                  \
        return values[INDEX];                                                                                          \
    }                                                                                                                  \
    bool set##NAME(ISymExpr* value) noexcept override                                                                  \
    {                                                                                                                  \
        values[INDEX] = value;                                                                                         \
        return true;                                                                                                   \
    }
    TRTCONV_FIELD(GridX, 0)
    TRTCONV_FIELD(GridY, 1)
    TRTCONV_FIELD(GridZ, 2)
    TRTCONV_FIELD(BlockX, 3)
    TRTCONV_FIELD(BlockY, 4)
    TRTCONV_FIELD(BlockZ, 5)
    TRTCONV_FIELD(SharedMem, 6)
#undef TRTCONV_FIELD
    ISymExpr* values[7]{};
};

class Arguments final : public ISymExprsImpl, public ISymExprs
{
public:
    Arguments()
    {
        mImpl = this;
    }
    ISymExpr* getSymExpr(int32_t index) const noexcept override
    {
        return values.at(index);
    }
    bool setSymExpr(int32_t index, ISymExpr* value) noexcept override
    {
        values.at(index) = value;
        return true;
    }
    int32_t getNbSymExprs() const noexcept override
    {
        return static_cast<int32_t>(values.size());
    }
    bool setNbSymExprs(int32_t count) noexcept override
    {
        values.resize(count);
        return true;
    }
    std::vector<ISymExpr*> values;
};

Shape shapeOf(std::string const& text)
{
    Shape shape;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, 'x');)
    {
        shape.push_back(std::stoll(word));
    }
    return shape;
}

Dims dimsOf(Shape const& shape)
{
    Dims dims{};
    dims.nbDims = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), dims.d);
    return dims;
}

struct Attribute
{
    std::string name;
    char kind;
    std::vector<int32_t> ints;
    float number;
};

struct Request
{
    std::string plugin;
    std::vector<Attribute> attributes;
    std::vector<DynamicPluginTensorDesc> tensors;
    Shapes dims;
    std::vector<Shapes> points;

    explicit Request(std::string const& text)
    {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
        {
            std::istringstream words(line);
            std::string what;
            words >> what;
            if (what == "plugin")
            {
                words >> plugin;
            }
            else if (what == "attribute")
            {
                Attribute a{};
                words >> a.name >> a.kind;
                if (a.kind == 'f')
                {
                    words >> a.number;
                }
                for (int32_t value = 0; a.kind != 'f' && words >> value;)
                {
                    a.ints.push_back(value);
                }
                attributes.push_back(a);
            }
            else if (what == "input")
            {
                int32_t type = 0;
                std::string dim, opt, max;
                words >> type >> dim >> opt >> max;
                DynamicPluginTensorDesc desc{};
                desc.desc.type = static_cast<DataType>(type);
                desc.desc.format = TensorFormat::kLINEAR;
                dims.push_back(shapeOf(dim));
                desc.desc.dims = dimsOf(dims.back());
                desc.min = dimsOf(shapeOf(opt));
                desc.opt = desc.min;
                desc.max = dimsOf(shapeOf(max));
                tensors.push_back(desc);
            }
            else if (what == "at")
            {
                Shapes shapes;
                for (std::string word; words >> word;)
                {
                    shapes.push_back(shapeOf(word));
                }
                points.push_back(shapes);
            }
        }
    }
};

void* leanFunction(char const* name)
{
    static void* const library = dlopen(std::getenv("LEAN_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    return library != nullptr ? dlsym(library, name) : nullptr;
}

IPluginRegistry& registry()
{
    return *reinterpret_cast<IPluginRegistry* (*) ()>(leanFunction("getPluginRegistry"))();
}

IPluginV3* create(Request const& r)
{
    auto* const creator = static_cast<IPluginCreatorV3Quick*>(registry().getCreator(r.plugin.c_str(), "1", "trtconv"));
    if (creator == nullptr || std::strcmp(creator->getInterfaceInfo().kind, "PLUGIN CREATOR_V3QUICK") != 0)
    {
        return nullptr;
    }
    std::vector<PluginField> fields;
    for (Attribute const& a : r.attributes)
    {
        // The types that the ONNX parser gives.
        fields.push_back(a.kind == 'f' ? PluginField(a.name.c_str(), &a.number, PluginFieldType::kFLOAT32, 1)
                                       : PluginField(a.name.c_str(), a.ints.data(), PluginFieldType::kINT32,
                                             static_cast<int32_t>(a.ints.size())));
    }
    PluginFieldCollection const collection{static_cast<int32_t>(fields.size()), fields.data()};
    return creator->createPlugin(
        r.plugin.c_str(), "trtconv", &collection, TensorRTPhase::kBUILD, QuickPluginCreationRequest::kUNKNOWN);
}

// What was found, or "failed at ..."; `kernel` takes the PTX.
std::string answer(Request r, std::string& kernel)
{
    IPluginV3* const plugin = create(r);
    if (plugin == nullptr)
    {
        return "failed at createPlugin";
    }
    auto* const build
        = static_cast<IPluginV3QuickAOTBuild*>(plugin->getCapabilityInterface(PluginCapabilityType::kBUILD));
    if (std::strcmp(build->getInterfaceInfo().kind, "PLUGIN_V3QUICKAOT_BUILD") != 0)
    {
        return "failed: it is not built ahead of time";
    }
    int32_t const inputs = static_cast<int32_t>(r.tensors.size());
    int32_t const outputs = build->getNbOutputs();
    Builder builder;
    std::vector<DataType> types(inputs), outputTypes(outputs);
    std::vector<int32_t> ranks(inputs);
    std::vector<DimsExprs> dims(inputs), outputDims(outputs);
    for (int32_t i = 0; i < inputs; ++i)
    {
        types[i] = r.tensors[i].desc.type;
        ranks[i] = dims[i].nbDims = r.tensors[i].desc.dims.nbDims;
        for (int32_t a = 0; a < ranks[i]; ++a)
        {
            int64_t const size = r.dims[i][a];
            dims[i].d[a] = size < 0 ? builder.make(i, a) : builder.make(size);
        }
    }
    if (build->getOutputDataTypes(outputTypes.data(), outputs, types.data(), ranks.data(), inputs) != 0)
    {
        return "failed at getOutputDataTypes";
    }
    if (build->getOutputShapes(dims.data(), inputs, nullptr, 0, outputDims.data(), outputs, builder) != 0)
    {
        return "failed at getOutputShapes";
    }
    for (int32_t i = 0; i < outputs; ++i)
    {
        DynamicPluginTensorDesc desc{};
        desc.desc.type = outputTypes[i];
        desc.desc.format = TensorFormat::kLINEAR;
        desc.desc.dims.nbDims = outputDims[i].nbDims;
        std::fill_n(desc.desc.dims.d, outputDims[i].nbDims, -1);
        r.tensors.push_back(desc);
    }
    DynamicPluginTensorDesc const* const all = r.tensors.data();
    int32_t const formats = build->getNbSupportedFormatCombinations(all, inputs, outputs);
    std::vector<PluginTensorDesc> plain(r.tensors.size());
    if (formats != 1 || build->getSupportedFormatCombinations(all, inputs, outputs, plain.data(), formats) != 0
        || build->configurePlugin(all, inputs, all + inputs, outputs) != 0 || build->setTactic(0) != 0)
    {
        return "failed at configurePlugin";
    }
    Launch launch;
    Arguments arguments;
    if (build->getLaunchParams(dims.data(), all, inputs, outputs, &launch, &arguments, builder) != 0
        || launch.values[0] == nullptr)
    {
        return "failed at getLaunchParams";
    }
    char const* name = nullptr;
    char* compiled = nullptr;
    int32_t size = 0;
    if (build->getKernel(plain.data(), inputs, plain.data() + inputs, outputs, &name, &compiled, &size) != 0)
    {
        return "failed at getKernel";
    }
    kernel.assign(compiled, size);

    std::ostringstream out;
    out << "kernel " << name << "\ntypes";
    for (PluginTensorDesc const& desc : plain)
    {
        out << ' ' << static_cast<int32_t>(desc.type);
    }
    for (Shapes const& shapes : r.points)
    {
        out << "\nat";
        for (DimsExprs const& expressions : outputDims)
        {
            for (int32_t a = 0; a < expressions.nbDims; ++a)
            {
                out << (a == 0 ? ' ' : 'x') << static_cast<Node const*>(expressions.d[a])->at(shapes);
            }
        }
        out << " launch";
        for (ISymExpr* const value : launch.values)
        {
            out << ' ' << nodeOf(value).at(shapes);
        }
        out << " arguments";
        for (ISymExpr* const value : arguments.values)
        {
            bool const wide = value->getType() != PluginArgType::kINT || value->getDataType() != PluginArgDataType::kINT32;
            out << ' ' << (wide ? INT64_MIN : nodeOf(value).at(shapes));
        }
    }
    return out.str();
}
} // namespace

extern "C"
{
IPluginRegistry* getPluginRegistry() noexcept
{
    return &registry();
}
void* createInferBuilder_INTERNAL(void*, int32_t) noexcept
{
    return nullptr;
}
void* createInferRuntime_INTERNAL(void*, int32_t) noexcept
{
    return nullptr;
}
void* createInferRefitter_INTERNAL(void*, void*, int32_t) noexcept
{
    return nullptr;
}
IPluginRegistry* getBuilderPluginRegistry(EngineCapability) noexcept
{
    return nullptr;
}

// Both texts stay valid until the next call.
char const* aot_ask(char const* request, char const** ptx)
{
    static std::string text;
    static std::string kernel;
    kernel.clear();
    text = answer(Request(request), kernel);
    *ptx = kernel.c_str();
    return text.c_str();
}
}
