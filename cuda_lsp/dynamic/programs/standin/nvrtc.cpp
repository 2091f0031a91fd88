// What a Python program compiles at run time, noted as it passes: source, headers, options, and the image that
// comes of them. Part of a library that is preloaded into the interpreter.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#ifndef API
#define API extern "C" __attribute__((visibility("default")))
#endif

namespace {

// Supplied by a file behind: takes what an image was made of.
void compiled(const std::string& message);

typedef void* Program;  // nvrtcProgram

struct Source {
    std::string text, name;
    std::vector<std::string> headers;  // name, text, name, text, …
    std::vector<std::string> options;
    std::vector<std::string> expressions;
};

std::recursive_mutex noting;
std::map<Program, Source>& sources() {
    static std::map<Program, Source> all;
    return all;
}

void field(std::string& message, const char* text, size_t size) {
    unsigned length = size;
    message.append((const char*)&length, sizeof length);
    message.append(text, size);
}

void fields(std::string& message, const std::vector<std::string>& all) {
    unsigned count = all.size();
    message.append((const char*)&count, sizeof count);
    for (auto& one : all) field(message, one.data(), one.size());
}

// Bytes of an image: a text, an ELF file, or a fat binary, perhaps in the wrapper that compilers make.
size_t size_of(const char*& image) {
    unsigned magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == 0x466243b1) {
        image = ((const char* const*)image)[1];
        memcpy(&magic, image, sizeof magic);
    }
    if (magic == 0xba55ed50) {
        unsigned short head;
        unsigned long long size;
        memcpy(&head, image + 6, sizeof head);
        memcpy(&size, image + 8, sizeof size);
        return head + size;
    }
    if (magic != 0x464c457f) return strlen(image);
    unsigned long long sections, programs;
    unsigned short size, count, program_size, program_count;
    memcpy(&programs, image + 32, 8), memcpy(&sections, image + 40, 8);
    memcpy(&program_size, image + 54, 2), memcpy(&program_count, image + 56, 2);
    memcpy(&size, image + 58, 2), memcpy(&count, image + 60, 2);
    unsigned long long last = sections + (unsigned long long)size * count;
    unsigned long long other = programs + (unsigned long long)program_size * program_count;
    return last > other ? last : other;
}

// What this process starts is not under check; only compilers write down what they are asked (`recorder.c`).
void followed() {
    const char* recorder = getenv("CUDA_LSP_RECORDER");
    recorder ? setenv("LD_PRELOAD", recorder, 1) : unsetenv("LD_PRELOAD");
}

typedef void* (*Lookup)(void*, const char*);

Lookup real_lookup() {
    static Lookup real = nullptr;
    if (!real)
        for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.17"})
            if ((real = (Lookup)dlvsym(RTLD_NEXT, "dlsym", version))) break;
    return real;
}

// NVRTC's or nvJitLink's own function, from the library that was asked for first, or one that is loaded.
std::map<std::string, void*>& originals() {
    static std::map<std::string, void*> all;
    return all;
}

void* original(const char* name) {
    std::lock_guard<std::recursive_mutex> guard(noting);
    void*& found = originals()[name];
    if (found) return found;
    for (auto& one : originals()) {
        Dl_info info;
        if (!one.second || !dladdr(one.second, &info)) continue;
        void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && (found = real_lookup()(handle, name))) return found;
    }
    if ((found = real_lookup()(RTLD_NEXT, name))) return found;
    for (const char* library : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"}) {
        void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && (found = real_lookup()(handle, name))) return found;
    }
    return nullptr;
}

const int FAILED = 11;  // NVRTC_ERROR_INTERNAL_ERROR; nvJitLink has none of that number

template <class... Types>
int passed(const char* name, Types... values) {
    void* f = original(name);
    return f ? ((int (*)(Types...))f)(values...) : FAILED;
}

void note(Program program, const char* image, size_t size) {
    Source source;
    {
        std::lock_guard<std::recursive_mutex> guard(noting);
        auto found = sources().find(program);
        if (found == sources().end()) return;
        source = found->second;
    }
    std::string message;
    field(message, "source", 6);
    field(message, image, size);
    field(message, source.text.data(), source.text.size());
    field(message, source.name.data(), source.name.size());
    fields(message, source.headers);
    fields(message, source.options);
    fields(message, source.expressions);
    compiled(message);
}

int image(Program program, char* target, const char* size_of, const char* get) {
    int error = passed(get, program, target);
    size_t size = 0;
    if (!error && !passed(size_of, program, &size)) note(program, target, size);
    return error;
}

}  // namespace

API int nvrtcCreateProgram(Program* out, const char* text, const char* name, int count, const char* const* headers,
                           const char* const* names) {
    int error = passed("nvrtcCreateProgram", out, text, name, count, headers, names);
    if (error) return error;
    std::lock_guard<std::recursive_mutex> guard(noting);
    Source& source = sources()[*out];
    source = Source{text ? text : "", name ? name : "", {}, {}, {}};
    for (int k = 0; k < count; ++k) {
        source.headers.push_back(names && names[k] ? names[k] : "");
        source.headers.push_back(headers[k]);
    }
    return error;
}
API int nvrtcAddNameExpression(Program program, const char* text) {
    int error = passed("nvrtcAddNameExpression", program, text);
    std::lock_guard<std::recursive_mutex> guard(noting);
    auto found = sources().find(program);
    if (!error && found != sources().end()) found->second.expressions.push_back(text);
    return error;
}
API int nvrtcCompileProgram(Program program, int count, const char* const* options) {
    {
        std::lock_guard<std::recursive_mutex> guard(noting);
        auto found = sources().find(program);
        if (found != sources().end()) found->second.options.assign(options, options + count);
    }
    return passed("nvrtcCompileProgram", program, count, options);
}
API int nvrtcGetPTX(Program program, char* target) { return image(program, target, "nvrtcGetPTXSize", "nvrtcGetPTX"); }
API int nvrtcGetCUBIN(Program program, char* target) {
    return image(program, target, "nvrtcGetCUBINSize", "nvrtcGetCUBIN");
}
API int nvrtcDestroyProgram(Program* program) {
    {
        std::lock_guard<std::recursive_mutex> guard(noting);
        if (program) sources().erase(*program);
    }
    return passed("nvrtcDestroyProgram", program);
}
