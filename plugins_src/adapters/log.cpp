#include "adapters/log.h"

#include "adapters/exports.h"

#include <atomic>
#include <cstdio>

namespace
{
// The one piece of process state: the interface sets it once, when the library is loaded.
std::atomic<nvinfer1::ILoggerFinder*> gFinder{nullptr};
} // namespace

TRTCONV_EXPORT void setLoggerFinder(nvinfer1::ILoggerFinder* finder)
{
    gFinder.store(finder);
}

namespace trtconv
{
void logError(std::string const& message) noexcept
{
    nvinfer1::ILoggerFinder* const finder = gFinder.load();
    nvinfer1::ILogger* const logger = finder == nullptr ? nullptr : finder->findLogger();
    if (logger == nullptr)
    {
        std::fprintf(stderr, "[trtconv plugins] %s\n", message.c_str());
        return;
    }
    logger->log(nvinfer1::ILogger::Severity::kERROR, message.c_str());
}
} // namespace trtconv
