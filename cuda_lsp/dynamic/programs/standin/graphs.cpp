// Graphs, and streams whose work is captured for one: part of `runtime.cpp`.
//
// A graph is a list of what is to be done, in the order in which it was asked for: an order that its dependencies
// allow, as a node is added behind those that it depends on. Launching it does all of it.

struct CUgraphNode_st {
    std::function<cudaError_t()> work;
    cudaGraphNodeType type;
    cudaGraph_t inside = nullptr;
};

struct CUgraph_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

namespace {

cudaGraph_t captured = nullptr;  // what is being captured, in whichever streams it forks to

bool is_captured(cudaStream_t stream) { return captured && stream; }

cudaGraphNode_t add(cudaGraph_t graph, cudaGraphNodeType type, std::function<cudaError_t()> work) {
    graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{work, type}));
    return graph->nodes.back().get();
}

cudaError_t added(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNodeType type,
                  std::function<cudaError_t()> work) {
    *node = add(graph, type, work);
    return cudaSuccess;
}

cudaError_t in_turn(cudaStream_t stream, cudaGraphNodeType type, std::function<cudaError_t()> work) {
    if (!is_captured(stream)) return work();
    add(captured, type, work);
    return cudaSuccess;
}

cudaError_t all_of(const std::vector<std::shared_ptr<CUgraphNode_st>>& nodes) {
    for (auto& node : nodes)
        if (cudaError_t error = node->inside ? all_of(node->inside->nodes) : node->work()) return error;
    return cudaSuccess;
}

// A launch with its arguments as they are now; null: the kernel is not known.
std::function<cudaError_t()> kept_launch(const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                                         Way way) {
    Kernel* kernel = kernel_of(f);
    if (!kernel) return nullptr;
    std::vector<std::string> values;
    for (size_t k = 0; k < kernel->sizes.size(); ++k) values.emplace_back((const char*)arguments[k], kernel->sizes[k]);
    return [=]() mutable {
        std::vector<void*> pointers;
        for (auto& value : values) pointers.push_back(&value[0]);
        return launched(f, grid, block, pointers.data(), shared, way);
    };
}

cudaError_t launched_in(cudaStream_t stream, const void* f, dim3 grid, dim3 block, void** arguments, size_t shared,
                        Way way) {
    if (!is_captured(stream)) return launched(f, grid, block, arguments, shared, way);
    auto work = kept_launch(f, grid, block, arguments, shared, way);
    if (!work) return said(cudaErrorInvalidDeviceFunction);
    add(captured, cudaGraphNodeTypeKernel, work);
    return cudaSuccess;
}

}  // namespace

API cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
    captured = new CUgraph_st();
    return cudaSuccess;
}
API cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
    *graph = captured;
    captured = nullptr;
    return said(*graph ? cudaSuccess : cudaErrorIllegalState);
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* out) {
    *out = is_captured(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
    *graph = new CUgraph_st();
    return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}
API cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) {
    *copy = new CUgraph_st(*graph);
    return cudaSuccess;
}
API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    for (size_t k = 0; nodes && k < *count && k < graph->nodes.size(); ++k) nodes[k] = graph->nodes[k].get();
    *count = graph->nodes.size();
    return cudaSuccess;
}
API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
    *type = node->type;
    return cudaSuccess;
}
API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                       const cudaKernelNodeParams* p) {
    auto work = kept_launch(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, Way());
    return work ? added(node, graph, cudaGraphNodeTypeKernel, work) : said(cudaErrorInvalidDeviceFunction);
}
API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                       const cudaMemcpy3DParms* given) {
    cudaMemcpy3DParms p = *given;
    return added(node, graph, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpy3D(&p); });
}
API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                         void* t, const void* s, size_t n, cudaMemcpyKind) {
    return added(node, graph, cudaGraphNodeTypeMemcpy, [=] { return copy(t, s, n); });
}
API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                       const cudaMemsetParams* given) {
    cudaMemsetParams p = *given;
    return added(node, graph, cudaGraphNodeTypeMemset, [=] {
        for (size_t row = 0; row < (p.height ? p.height : 1); ++row)
            for (size_t k = 0; k < p.width; ++k)
                memcpy((char*)p.dst + row * p.pitch + k * p.elementSize, &p.value, p.elementSize);
        return cudaSuccess;
    });
}
API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                     const cudaHostNodeParams* given) {
    cudaHostNodeParams p = *given;
    return added(node, graph, cudaGraphNodeTypeHost, [=] {
        p.fn(p.userData);
        return cudaSuccess;
    });
}
API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t) {
    return added(node, graph, cudaGraphNodeTypeEmpty, [] { return cudaSuccess; });
}
API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*, size_t,
                                           cudaGraph_t child) {
    *node = add(graph, cudaGraphNodeTypeGraph, [] { return cudaSuccess; });
    (*node)->inside = new CUgraph_st(*child);
    return cudaSuccess;
}
namespace {

size_t place_of(cudaGraph_t graph, cudaGraphNode_t node) {
    size_t k = 0;
    while (k < graph->nodes.size() && graph->nodes[k].get() != node) ++k;
    return k;
}

// Nodes are carried out as they were added: a dependency on a later one is more than that.
cudaError_t depends(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
    for (size_t k = 0; k < count; ++k)
        if (place_of(graph, from[k]) > place_of(graph, to[k])) {
            __cuda_lsp_missing("a graph's node that waits for one added later");
            return last;
        }
    return cudaSuccess;
}

}  // namespace

#if CUDART_VERSION >= 13000
API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                         const cudaGraphEdgeData*, size_t count) {
    return depends(graph, from, to, count);
}
#else
API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                         size_t count) {
    return depends(graph, from, to, count);
}
#endif

namespace {
cudaError_t ready(cudaGraphExec_t* out, cudaGraph_t graph) {
    *out = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
}
}  // namespace

API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
    return ready(out, graph);
}
#if CUDART_VERSION >= 12000
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
    return ready(out, graph);
}
API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* out, cudaGraph_t graph, cudaGraphInstantiateParams*) {
    return ready(out, graph);
}
API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* told) {
    exec->nodes = graph->nodes;
    if (told) memset(told, 0, sizeof *told);
    return cudaSuccess;
}
#else
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
    return ready(out, graph);
}
#endif
API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 const cudaKernelNodeParams* p) {
    auto work = kept_launch(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes, Way());
    if (!work) return said(cudaErrorInvalidDeviceFunction);
    for (auto& one : exec->nodes)
        if (one.get() == node) {
            auto changed = std::make_shared<CUgraphNode_st>(*one);
            changed->work = work;
            one = changed;
            return cudaSuccess;
        }
    return said(cudaErrorInvalidValue);
}
API cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}
API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    auto nodes = exec->nodes;
    return in_turn(stream, cudaGraphNodeTypeGraph, [=] { return all_of(nodes); });
}
