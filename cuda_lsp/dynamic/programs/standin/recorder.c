/* Preloaded into every process of a build: compilers write their command line to a file, and programs
 * that the build made write how they were started and do not run. See recorder.py for the format. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t used, room;

static void put(const void *bytes, size_t count) {
    if (used + count > room) {
        size_t larger = (used + count) * 2;
        char *moved = realloc(text, larger);
        if (!moved) return;
        text = moved;
        room = larger;
    }
    memcpy(text + used, bytes, count);
    used += count;
}

static void put_text(const char *word) { put(word ? word : "", strlen(word ? word : "") + 1); }

/* A list of words that the kernel keeps, each with its NUL, after its length. */
static void put_list(const char *path) {
    size_t start = used;
    uint32_t length = 0;
    put(&length, sizeof length);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char part[4096];
    ssize_t count;
    while (file >= 0 && (count = read(file, part, sizeof part)) > 0) put(part, count);
    if (file >= 0) close(file);
    length = used - start - sizeof length;
    memcpy(text + start, &length, sizeof length);
}

static int is_compiler(const char *name) {
    static const char *const parts[] = {"g++", "gcc", "clang", "c++", 0};
    size_t length = strlen(name);
    if (!strcmp(name, "nvcc") || !strcmp(name, "cc") || !strcmp(name, "ar")) return 1;
    if (length > 3 && !strcmp(name + length - 3, "-ar")) return 1;
    for (int k = 0; parts[k]; ++k)
        if (strstr(name, parts[k])) return 1;
    return 0;
}

static int is_listed(const char *path, const char *list) {
    size_t length = strlen(path);
    for (const char *at = list; at && *at; at = strchr(at, ':'), at = at ? at + 1 : 0)
        if (!strncmp(at, path, length) && (at[length] == ':' || !at[length])) return 1;
    return 0;
}

__attribute__((constructor)) static void record(void) {
    const char *log = getenv("CUDA_LSP_RECORD");
    char exe[PATH_MAX], folder[PATH_MAX], input[PATH_MAX];
    ssize_t size = log ? readlink("/proc/self/exe", exe, sizeof exe - 1) : -1;
    if (size < 0) return;
    exe[size] = 0;
    const char *slash = strrchr(exe, '/');
    int stopped = is_listed(exe, getenv("CUDA_LSP_PROGRAMS"));
    if (!stopped && !is_compiler(slash ? slash + 1 : exe)) return;
    size = readlink("/proc/self/fd/0", input, sizeof input - 1);
    input[size < 0 ? 0 : size] = 0;
    uint32_t total = 0;
    put(&total, sizeof total);
    put_text(stopped ? "program" : "compiler");
    put_text(exe);
    put_text(getcwd(folder, sizeof folder));
    put_text(input);
    put_list("/proc/self/cmdline");
    put_list("/proc/self/environ");
    total = used - sizeof total;
    if (text) memcpy(text, &total, sizeof total);
    int file = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0 && text && write(file, text, used) < 0) perror("cuda-lsp");
    if (file >= 0) close(file);
    if (stopped) _exit(0);
    unsetenv("CUDA_LSP_RECORD"); /* what a compiler starts is its own affair */
    free(text);
    text = 0;
    used = room = 0;
}
