// The way from a program under check to the emulator's process: a socket, and the device's memory.
//
// Protocol (see `channel.py`): request u32 kind, u32 length, body; answer the same. One at a time.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum Kind : unsigned {
    ALLOCATE = 1, RELEASE, VARIABLE, PARAMETERS, LAUNCH, EXTENT, DEVICE,
    SOURCE, MODULE, FUNCTION, GLOBAL, NAMES, LIBRARY,  // of Python programs (`driver.cpp`, `opened.cpp`)
};

std::recursive_mutex turn;
int channel = -1;
char* low = nullptr;
char* high = nullptr;

[[noreturn]] void lost(const char* what) {
    fprintf(stderr, "cuda-lsp: %s\n", what);
    _exit(70);
}

void transfer(void* data, size_t size, bool out) {
    char* at = static_cast<char*>(data);
    while (size) {
        ssize_t done = out ? send(channel, at, size, MSG_NOSIGNAL) : recv(channel, at, size, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) lost("the emulator is gone");
        at += done;
        size -= done;
    }
}

void connect() {
    if (channel >= 0) return;
    const char* given = getenv("CUDA_LSP_PROGRAM");  // socket,memory,start,bytes
    int memory = -1;
    unsigned long start = 0, bytes = 0;
    int socket = -1;
    if (!given || sscanf(given, "%d,%d,%lu,%lu", &socket, &memory, &start, &bytes) != 4)
        lost("this program was built for a check without a GPU: run it with `cuda-lsp run --program`");
    void* wanted = reinterpret_cast<void*>(start);
    void* got = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, memory, start);
    if (got != wanted) lost("the program's own memory lies where the device's should: link it with -pie");
    low = static_cast<char*>(got);
    high = low + bytes;
    channel = socket;
}

std::string asked(unsigned kind, const void* body, unsigned length) {
    std::lock_guard<std::recursive_mutex> guard(turn);
    connect();
    unsigned head[2] = {kind, length};
    transfer(head, sizeof head, true);
    transfer(const_cast<void*>(body), length, true);
    transfer(head, sizeof head, false);
    std::string answer(head[1], '\0');
    transfer(&answer[0], answer.size(), false);
    return answer;
}

}  // namespace
