#pragma once

namespace cooperative_groups
{
struct Cluster
{
    void sync() const {}
};

inline Cluster this_cluster()
{
    return {};
}
} // namespace cooperative_groups
