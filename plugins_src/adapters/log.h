// Messages to the logger of whoever loaded the library.
#pragma once

#include <NvInferRuntime.h>

#include <string>

namespace trtconv
{
// Says `message` as an error. Before a logger is known it goes to stderr, since a plugin that fails silently is worse.
void logError(std::string const& message) noexcept;
} // namespace trtconv
