// What a Python program links at run time, noted as it passes: the PTX that an image was made of. nvJitLink's
// functions are here; those of the driver (`cuLinkCreate` …) are where its others are, and use what stands first.
//
// What is optimised as it is linked (`-lto`, Numba's default) has no PTX before: nvJitLink is asked for it again.
// Part of a library that is preloaded into the interpreter.

namespace {

struct Input {
    int type;  // NVJITLINK_INPUT_…; A_FILE: a file of that name
    std::string data, name;
};
struct Link {
    std::vector<std::string> options;
    std::vector<Input> inputs;
};
const int OTHER = 0, PTX = 2, A_FILE = 256;  // what the driver links with PTX is of no kind that counts

std::map<const void*, Link>& links() {
    static std::map<const void*, Link> all;
    return all;
}

void link_begins(const void* link, unsigned count = 0, const char** options = nullptr) {
    std::lock_guard<std::recursive_mutex> guard(noting);
    links()[link] = Link{std::vector<std::string>(options, options + count), {}};
}

void link_gets(const void* link, const Input& input) {
    std::lock_guard<std::recursive_mutex> guard(noting);
    auto found = links().find(link);
    if (found != links().end()) found->second.inputs.push_back(input);
}

// Like std::string's own, but null for what there is not.
std::string text(const char* name) { return name ? name : ""; }

typedef void* Linker;  // nvJitLinkHandle

// The PTX that nvJitLink makes of the same, with line tables; empty: it makes none.
std::string optimised(const Link& link) {
    std::vector<const char*> options;
    bool optimising = false;
    for (auto& one : link.options) options.push_back(one.c_str()), optimising |= one == "-lto" || one == "-flto";
    if (!optimising) return "";
    for (const char* further : {"-ptx", "-lineinfo"}) options.push_back(further);
    Linker again = nullptr;
    if (passed("nvJitLinkCreate", &again, (unsigned)options.size(), options.data())) return "";
    int error = 0;
    for (auto& one : link.inputs)
        error |= one.type >= A_FILE
                     ? passed("nvJitLinkAddFile", again, one.type - A_FILE, one.name.c_str())
                     : passed("nvJitLinkAddData", again, one.type, (const void*)one.data.data(), one.data.size(),
                              one.name.c_str());
    std::string made;
    size_t size = 0;
    if (!error && !passed("nvJitLinkComplete", again) && !passed("nvJitLinkGetLinkedPtxSize", again, &size)) {
        made.resize(size);
        if (passed("nvJitLinkGetLinkedPtx", again, &made[0])) made.clear();
    }
    passed("nvJitLinkDestroy", &again);
    return made;
}

// The text, if it is PTX and nothing is linked with it, or what optimising makes of all.
void link_made(const void* state, const char* image, size_t size) {
    Link link;
    {
        std::lock_guard<std::recursive_mutex> guard(noting);
        auto found = links().find(state);
        if (found == links().end()) return;
        link = found->second;
    }
    bool alone = link.inputs.size() == 1 && link.inputs[0].type == PTX;
    std::string message, ptx = alone ? link.inputs[0].data : optimised(link);
    if (ptx.empty()) return;
    field(message, "ptx", 3);
    field(message, image, size);
    field(message, ptx.data(), ptx.size());
    compiled(message);
}

void link_ends(const void* link) {
    std::lock_guard<std::recursive_mutex> guard(noting);
    links().erase(link);
}

}  // namespace

API int nvJitLinkCreate(Linker* out, unsigned count, const char** options) {
    int error = passed("nvJitLinkCreate", out, count, options);
    if (!error) link_begins(*out, count, options);
    return error;
}
API int nvJitLinkAddData(Linker linker, int type, const void* data, size_t size, const char* name) {
    link_gets(linker, Input{type, std::string((const char*)data, size), text(name)});
    return passed("nvJitLinkAddData", linker, type, data, size, name);
}
API int nvJitLinkAddFile(Linker linker, int type, const char* name) {
    link_gets(linker, Input{A_FILE + type, "", text(name)});
    return passed("nvJitLinkAddFile", linker, type, name);
}
API int nvJitLinkGetLinkedCubin(Linker linker, void* target) {
    int error = passed("nvJitLinkGetLinkedCubin", linker, target);
    size_t size = 0;
    if (!error && !passed("nvJitLinkGetLinkedCubinSize", linker, &size)) link_made(linker, (const char*)target, size);
    return error;
}
API int nvJitLinkDestroy(Linker* linker) {
    if (linker) link_ends(*linker);
    return passed("nvJitLinkDestroy", linker);
}
