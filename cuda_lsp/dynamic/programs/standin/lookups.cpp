// How packages find NVRTC, nvJitLink and the driver: by `dlsym` (and `cuGetProcAddress`); that is where ours come in.
// Code that is linked with them finds ours first, because the library is preloaded.

namespace {

// Supplied by the file behind: what a caller gets for a function of the driver, if that is not always the driver's.
bool is_replaced(const char* name);
void* replacement(const char* name, void* theirs, const void* caller);

struct Ours {
    const char* name;
    void* function;
};
const Ours COMPILERS[] = {
    {"nvrtcCreateProgram", (void*)nvrtcCreateProgram},
    {"nvrtcAddNameExpression", (void*)nvrtcAddNameExpression},
    {"nvrtcCompileProgram", (void*)nvrtcCompileProgram},
    {"nvrtcGetPTX", (void*)nvrtcGetPTX},
    {"nvrtcGetCUBIN", (void*)nvrtcGetCUBIN},
    {"nvrtcDestroyProgram", (void*)nvrtcDestroyProgram},
    {"nvJitLinkCreate", (void*)nvJitLinkCreate},
    {"nvJitLinkAddData", (void*)nvJitLinkAddData},
    {"nvJitLinkAddFile", (void*)nvJitLinkAddFile},
    {"nvJitLinkGetLinkedCubin", (void*)nvJitLinkGetLinkedCubin},
    {"nvJitLinkDestroy", (void*)nvJitLinkDestroy},
};

bool is_a_compilers(const char* name) { return !strncmp(name, "nvrtc", 5) || !strncmp(name, "nvJitLink", 9); }

// A function of a compiler or the driver, which `theirs` is, or ours in its place. Of a second NVRTC in one process
// nothing is replaced: its programs must come back to itself. While there is none, ours are not found either.
void* chosen(const char* name, void* theirs, const void* caller) {
    if (!is_a_compilers(name)) return replacement(name, theirs, caller);
    std::lock_guard<std::recursive_mutex> guard(noting);
    for (auto& one : COMPILERS)
        if (!strcmp(one.name, name)) {
            if (theirs == one.function) return original(name) ? theirs : nullptr;
            void*& known = originals()[name];
            if (!known) known = theirs;
            return known == theirs ? one.function : theirs;
        }
    return theirs;
}

}  // namespace

// What is not ours is looked up by a jump, so that RTLD_NEXT still means who called.
API void* dlsym(void* handle, const char* name) {
    if (handle != RTLD_NEXT && (is_replaced(name) || is_a_compilers(name))) {
        void* theirs = real_lookup()(handle, name);
        return theirs ? chosen(name, theirs, __builtin_return_address(0)) : nullptr;
    }
    return real_lookup()(handle, name);
}
