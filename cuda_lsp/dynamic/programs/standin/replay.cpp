// Graphs of a program on a GPU, whose kernels are checked like others: part of `hooks.cpp`.
//
// A graph runs as a whole, and nobody can step in. So a copy of each graph that can be launched is kept, and its
// first launches are made node by node, each after those that it depends on: kernels as any launch (ours if we
// want it), all else as a graph of that one node. What this cannot carry out is launched as it is, and told.

extern "C" cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
extern "C" cudaError_t __real_cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t, unsigned long long);
extern "C" cudaError_t __real_cudaGraphExecDestroy(cudaGraphExec_t);

namespace {

enum { REPLAYED = 40 };  // launches of a graph; later ones of its kernels are no longer in the sample

struct Replay {
    cudaGraph_t copy;
    unsigned launches = 0;
};

std::map<cudaGraphExec_t, Replay>& replays() {
    static std::map<cudaGraphExec_t, Replay> all;
    return all;
}

typedef std::vector<cudaGraphNode_t> Nodes;

Nodes nodes_of(cudaGraph_t graph) {
    size_t count = 0;
    cudaGraphGetNodes(graph, nullptr, &count);
    Nodes nodes(count);
    if (count) cudaGraphGetNodes(graph, nodes.data(), &count);
    return nodes;
}

Nodes before(cudaGraphNode_t node) {
    size_t count = 0;
#if CUDART_VERSION >= 13000
    cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count);
    Nodes nodes(count);
    std::vector<cudaGraphEdgeData> edges(count);
    if (count) cudaGraphNodeGetDependencies(node, nodes.data(), edges.data(), &count);
#else
    cudaGraphNodeGetDependencies(node, nullptr, &count);
    Nodes nodes(count);
    if (count) cudaGraphNodeGetDependencies(node, nodes.data(), &count);
#endif
    return nodes;
}

// All nodes, each behind those that it depends on.
Nodes in_order(cudaGraph_t graph) {
    Nodes waiting = nodes_of(graph), ordered;
    std::map<cudaGraphNode_t, bool> done;
    while (!waiting.empty()) {
        Nodes later;
        for (auto node : waiting) {
            bool ready = true;
            for (auto other : before(node)) ready = ready && done[other];
            if (ready)
                done[node] = true, ordered.push_back(node);
            else
                later.push_back(node);
        }
        if (later.size() == waiting.size()) break;
        waiting = later;
    }
    return ordered;
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
    cudaGraphNodeType type = cudaGraphNodeTypeCount;
    cudaGraphNodeGetType(node, &type);
    return type;
}

cudaGraph_t inside(cudaGraphNode_t node) {
    cudaGraph_t graph = nullptr;
    cudaGraphChildGraphNodeGetGraph(node, &graph);
    return graph;
}

bool can_be_replayed(cudaGraph_t graph) {
    Nodes nodes = nodes_of(graph);
    if (in_order(graph).size() != nodes.size()) return false;
    for (auto node : nodes) switch (type_of(node)) {
            case cudaGraphNodeTypeKernel:
            case cudaGraphNodeTypeMemcpy:
            case cudaGraphNodeTypeMemset:
            case cudaGraphNodeTypeHost:
            case cudaGraphNodeTypeEmpty: break;
            case cudaGraphNodeTypeGraph:
                if (!can_be_replayed(inside(node))) return false;
                break;
            default: return false;
        }
    return true;
}

#if CUDART_VERSION >= 11080
cudaKernelNodeAttrValue attribute_of(cudaGraphNode_t node, cudaLaunchAttributeID which) {
    cudaKernelNodeAttrValue value;
    memset(&value, 0, sizeof value);
    if (cudaGraphKernelNodeGetAttribute(node, which, &value)) {
        cudaGetLastError();
        memset(&value, 0, sizeof value);
    }
    return value;
}
#endif

Way way_of(cudaGraphNode_t node) {
    Way way;
#if CUDART_VERSION >= 11080
    auto cluster = attribute_of(node, cudaLaunchAttributeClusterDimension).clusterDim;
    if (cluster.x) way.cluster = dim3(cluster.x, cluster.y, cluster.z);
    way.together = attribute_of(node, cudaLaunchAttributeCooperative).cooperative;
#endif
    return way;
}

bool asked_of(cudaGraphNode_t node, Reason reason) {
    cudaKernelNodeParams kernel;
    if (cudaGraphKernelNodeGetParams(node, &kernel) || !kernel.kernelParams) return false;
    return asked(kernel.func, kernel.gridDim, kernel.blockDim, kernel.kernelParams, kernel.sharedMemBytes, reason,
                 way_of(node));
}

void count_all(cudaGraph_t graph) {
    for (auto node : nodes_of(graph)) {
        if (type_of(node) == cudaGraphNodeTypeKernel) asked_of(node, IN_A_GRAPH);
        if (type_of(node) == cudaGraphNodeTypeGraph) count_all(inside(node));
    }
}

cudaError_t add_alone(cudaGraph_t graph, cudaGraphNode_t node) {
    cudaGraphNode_t added;
    cudaError_t error;
    cudaKernelNodeParams kernel;
    cudaMemcpy3DParms copy;
    cudaMemsetParams set;
    cudaHostNodeParams host;
    switch (type_of(node)) {
        case cudaGraphNodeTypeKernel:
            if ((error = cudaGraphKernelNodeGetParams(node, &kernel))) return error;
            if ((error = cudaGraphAddKernelNode(&added, graph, nullptr, 0, &kernel))) return error;
            return cudaGraphKernelNodeCopyAttributes(node, added);
        case cudaGraphNodeTypeMemcpy:
            error = cudaGraphMemcpyNodeGetParams(node, &copy);
            return error ? error : cudaGraphAddMemcpyNode(&added, graph, nullptr, 0, &copy);
        case cudaGraphNodeTypeMemset:
            error = cudaGraphMemsetNodeGetParams(node, &set);
            return error ? error : cudaGraphAddMemsetNode(&added, graph, nullptr, 0, &set);
        case cudaGraphNodeTypeHost:
            error = cudaGraphHostNodeGetParams(node, &host);
            return error ? error : cudaGraphAddHostNode(&added, graph, nullptr, 0, &host);
        default: return cudaSuccess;
    }
}

cudaError_t launched_alone(cudaGraphNode_t node, cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t ready = nullptr;
    cudaError_t error = cudaGraphCreate(&graph, 0);
    if (error) return error;
    error = add_alone(graph, node);
    if (!error) error = __real_cudaGraphInstantiateWithFlags(&ready, graph, 0);
    if (!error) error = __real_cudaGraphLaunch(ready, stream);
    if (!error) error = cudaStreamSynchronize(stream);
    if (ready) __real_cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    return error;
}

cudaError_t replayed(cudaGraph_t graph, cudaStream_t stream) {
    for (auto node : in_order(graph)) {
        cudaGraphNodeType type = type_of(node);
        cudaError_t error = cudaSuccess;
        if (type == cudaGraphNodeTypeGraph)
            error = replayed(inside(node), stream);
        else if (type == cudaGraphNodeTypeKernel && asked_of(node, NONE))
            continue;
        else if (type != cudaGraphNodeTypeEmpty)
            error = launched_alone(node, stream);
        if (error) return error;
    }
    return cudaSuccess;
}

void keep(cudaGraphExec_t ready, cudaGraph_t graph) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    Replay made{nullptr};
    if (!callback || cudaGraphClone(&made.copy, graph)) {
        cudaGetLastError();
        return;
    }
    auto known = replays().find(ready);
    if (known != replays().end()) cudaGraphDestroy(known->second.copy);
    replays()[ready] = made;
}

cudaError_t kept(cudaError_t error, cudaGraphExec_t* ready, cudaGraph_t graph) {
    if (error == cudaSuccess) keep(*ready, graph);
    return error;
}

// What was changed in a graph that is ready we do not follow: it runs as a whole from now on.
cudaError_t changed(cudaError_t error, cudaGraphExec_t ready) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = replays().find(ready);
    if (found != replays().end()) found->second.launches = REPLAYED;
    return error;
}

}  // namespace

#if CUDART_VERSION >= 12000
WRAP(cudaError_t, cudaGraphInstantiate, (cudaGraphExec_t * ready, cudaGraph_t graph, unsigned long long flags)) {
    return kept(__real_cudaGraphInstantiate(ready, graph, flags), ready, graph);
}
WRAP(cudaError_t, cudaGraphInstantiateWithParams,
     (cudaGraphExec_t * ready, cudaGraph_t graph, cudaGraphInstantiateParams* parameters)) {
    return kept(__real_cudaGraphInstantiateWithParams(ready, graph, parameters), ready, graph);
}
WRAP(cudaError_t, cudaGraphInstantiateWithParams_ptsz,
     (cudaGraphExec_t * ready, cudaGraph_t graph, cudaGraphInstantiateParams* parameters)) {
    return kept(__real_cudaGraphInstantiateWithParams_ptsz(ready, graph, parameters), ready, graph);
}
WRAP(cudaError_t, cudaGraphExecUpdate,
     (cudaGraphExec_t ready, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result)) {
    cudaError_t error = __real_cudaGraphExecUpdate(ready, graph, result);
    if (error == cudaSuccess) keep(ready, graph);
    return error;
}
#else
WRAP(cudaError_t, cudaGraphInstantiate,
     (cudaGraphExec_t * ready, cudaGraph_t graph, cudaGraphNode_t* wrong, char* log, size_t size)) {
    return kept(__real_cudaGraphInstantiate(ready, graph, wrong, log, size), ready, graph);
}
#endif
WRAP(cudaError_t, cudaGraphInstantiateWithFlags,
     (cudaGraphExec_t * ready, cudaGraph_t graph, unsigned long long flags)) {
    return kept(__real_cudaGraphInstantiateWithFlags(ready, graph, flags), ready, graph);
}
WRAP(cudaError_t, cudaGraphExecKernelNodeSetParams,
     (cudaGraphExec_t ready, cudaGraphNode_t node, const cudaKernelNodeParams* kernel)) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    cudaError_t error = __real_cudaGraphExecKernelNodeSetParams(ready, node, kernel);
    auto found = replays().find(ready);
    cudaGraphNode_t ours;
    if (error || found == replays().end()) return error;
    if (!cudaGraphNodeFindInClone(&ours, node, found->second.copy) && !cudaGraphKernelNodeSetParams(ours, kernel))
        return error;
    cudaGetLastError();
    return changed(error, ready);
}
WRAP(cudaError_t, cudaGraphExecMemcpyNodeSetParams,
     (cudaGraphExec_t ready, cudaGraphNode_t node, const cudaMemcpy3DParms* copy)) {
    return changed(__real_cudaGraphExecMemcpyNodeSetParams(ready, node, copy), ready);
}
WRAP(cudaError_t, cudaGraphExecMemcpyNodeSetParams1D,
     (cudaGraphExec_t ready, cudaGraphNode_t node, void* to, const void* from, size_t size, cudaMemcpyKind kind)) {
    return changed(__real_cudaGraphExecMemcpyNodeSetParams1D(ready, node, to, from, size, kind), ready);
}
WRAP(cudaError_t, cudaGraphExecMemsetNodeSetParams,
     (cudaGraphExec_t ready, cudaGraphNode_t node, const cudaMemsetParams* set)) {
    return changed(__real_cudaGraphExecMemsetNodeSetParams(ready, node, set), ready);
}
WRAP(cudaError_t, cudaGraphExecHostNodeSetParams,
     (cudaGraphExec_t ready, cudaGraphNode_t node, const cudaHostNodeParams* host)) {
    return changed(__real_cudaGraphExecHostNodeSetParams(ready, node, host), ready);
}
WRAP(cudaError_t, cudaGraphExecChildGraphNodeSetParams,
     (cudaGraphExec_t ready, cudaGraphNode_t node, cudaGraph_t child)) {
    return changed(__real_cudaGraphExecChildGraphNodeSetParams(ready, node, child), ready);
}
WRAP(cudaError_t, cudaGraphNodeSetEnabled, (cudaGraphExec_t ready, cudaGraphNode_t node, unsigned enabled)) {
    return changed(__real_cudaGraphNodeSetEnabled(ready, node, enabled), ready);
}
WRAP(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t ready)) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = replays().find(ready);
    if (found != replays().end()) {
        cudaGraphDestroy(found->second.copy);
        replays().erase(found);
    }
    return __real_cudaGraphExecDestroy(ready);
}
namespace {
// Whether the graph's nodes were launched here, one by one, and with which error.
bool launched_by_nodes(cudaGraphExec_t ready, cudaStream_t stream, cudaError_t* error) {
    auto found = replays().find(ready);
    if (found == replays().end() || is_captured(stream)) return false;
    Replay& replay = found->second;
    if (replay.launches >= REPLAYED || !can_be_replayed(replay.copy)) {
        count_all(replay.copy);
        return false;
    }
    replay.launches += 1;
    *error = replayed(replay.copy, stream);
    return true;
}
}  // namespace
WRAP(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t ready, cudaStream_t stream)) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    cudaError_t error = cudaSuccess;
    if (launched_by_nodes(ready, stream, &error)) return error;
    return __real_cudaGraphLaunch(ready, stream);
}
WRAP(cudaError_t, cudaGraphLaunch_ptsz, (cudaGraphExec_t ready, cudaStream_t stream)) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    cudaError_t error = cudaSuccess;
    if (launched_by_nodes(ready, of_thread(stream), &error)) return error;
    return __real_cudaGraphLaunch_ptsz(ready, stream);
}
