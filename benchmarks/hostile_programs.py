"""Whole programs that hang, crash, flood, fork and hide, and what a check has to say of each; our own code.

None of them signals or writes to what it did not start itself, except the process that runs it and files
below its working folder.
"""

from __future__ import annotations

from hostile_kernels import ENDLESS, Case

OVERDUE = "did not end before its deadline"
_HEAD = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdexcept>
#include <thread>
#include <vector>
#define NOINLINE __attribute__((noinline))
__global__ void k(int* o) { o[threadIdx.x] = threadIdx.x; }
__global__ void hangs(volatile int* o) { while (o[0] < 1000) { } }
__global__ void faults(int* o) { o[(1ll << 36) + threadIdx.x] = 1; }
static int* some() { int* p = nullptr; cudaMalloc(&p, 4096); cudaMemset(p, 0, 4096); return p; }
static void launch() { k<<<1, 64>>>(some()); cudaDeviceSynchronize(); }
// No more than so many forks, should nobody stop them: then they sleep.
static int* born = (int*)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
static pid_t bounded(int most) {
    if (__atomic_add_fetch(born, 1, __ATOMIC_RELAXED) > most) for (;;) sleep(100);
    return fork();
}
static void eat(size_t most) {
    for (size_t n = 0; n < most; n += 64 << 20) {
        char* p = (char*)malloc(64 << 20);
        if (!p) { puts("no more"); fflush(stdout); sleep(100); }
        for (size_t i = 0; i < 64u << 20; i += 4096) p[i] = 1;
    }
}
"""
_ENOUGH = "6ull << 30"  # bytes: more than the run grants, less than the machine has


def _program(
    name: str,
    main: str,
    said: str = OVERDUE,
    gpu: str = "",
    *,
    before: str = "",
    quick: bool = False,
    emulator: bool = True,
    card: bool = True,
) -> Case:
    source = f"{_HEAD}{before}\nint main(int argc, char** argv) {{\n    {main}\n    return 0;\n}}\n"
    return Case(f"program: {name}", source, said, gpu, True, quick, emulator, card)


_MEMORY = r"more than \d+ MiB of memory"
_GPU_MEMORY = r"more than \d+ MiB of the GPU's memory|memory"
_PROCESSES = "processes"
_FLOOD = "more than 256 MiB of output"
_STATUS = r"exit status "

_FORKING = (
    _program("forks without end", "for (;;) if (bounded(3000) < 0) usleep(1000);", f"{_PROCESSES}|{OVERDUE}"),
    _program("forks without end into sessions", "for (;;) { if (bounded(3000) == 0) setsid(); }", f"{_PROCESSES}|{OVERDUE}"),
    _program("a chain of forks, each the last", "for (;;) { if (bounded(20000)) _exit(0); usleep(100); }", f"{_STATUS}|{OVERDUE}"),
    _program("daemons", "for (int i = 0; i < 8; ++i) if (fork() == 0) { setsid(); if (fork() == 0) { chdir(\"/\"); for (;;) sleep(100); } _exit(0); } usleep(200000); launch();", _STATUS, quick=True),
    _program("daemons that ignore signals", "for (int s = 1; s < 64; ++s) signal(s, SIG_IGN); for (int i = 0; i < 4; ++i) if (fork() == 0) { setsid(); if (fork() == 0) for (;;) pause(); _exit(0); } launch();", _STATUS),
    _program("a daemon that holds its pipes", "if (fork() == 0) { setsid(); for (;;) sleep(100); } launch();", _STATUS),
    _program("a daemon that floods", "if (fork() == 0) { setsid(); for (;;) puts(\"and on, and on, and on, and on, and on, and on\"); } launch(); sleep(60);", f"{_FLOOD}|{OVERDUE}"),
    _program("a daemon with no environment", "if (fork() == 0) { setsid(); char* none[] = {nullptr}; char* args[] = {(char*)\"sleep\", (char*)\"1000\", nullptr}; execve(\"/bin/sleep\", args, none); } launch();", _STATUS),
    _program("a daemon that hides its name", "if (fork() == 0) { setsid(); prctl(PR_SET_NAME, \") R 1 (\"); memset(argv[0], 0, strlen(argv[0])); prctl(PR_SET_DUMPABLE, 0); for (;;) sleep(100); } launch();", _STATUS),
    _program("adopts orphans itself", "prctl(PR_SET_CHILD_SUBREAPER, 1); for (int i = 0; i < 20; ++i) if (fork() == 0) { if (fork() == 0) for (;;) sleep(100); _exit(0); } usleep(200000); launch();", _STATUS),
    _program("a thousand zombies", "for (int i = 0; i < 300; ++i) if (fork() == 0) _exit(0); launch();", _STATUS),
    _program("vfork and sleep", "if (vfork() == 0) { execl(\"/bin/sleep\", \"sleep\", \"1000\", (char*)0); _exit(1); } launch(); wait(nullptr);", OVERDUE),
    _program("becomes something else", "execl(\"/bin/sleep\", \"sleep\", \"1000\", (char*)0);", OVERDUE),
    _program("becomes a flood", "execl(\"/bin/sh\", \"sh\", \"-c\", \"yes\", (char*)0);", _FLOOD),
    _program("ten thousand threads", "std::vector<std::thread> all; for (int i = 0; i < 10000; ++i) all.emplace_back([] { for (;;) sleep(100); }); for (auto& t : all) t.join();", f"{OVERDUE}|{_PROCESSES}|threads|crashed"),
    _program("forks and launches in both", "int* p = some(); fork(); k<<<1, 64>>>(p); cudaDeviceSynchronize(); usleep(300000);", f"{_STATUS}|{OVERDUE}"),
)  # fmt: skip

_SIGNALS = (
    _program("ignores every signal", "for (int s = 1; s < 64; ++s) signal(s, SIG_IGN); for (;;) pause();", quick=True),
    _program("blocks every signal", "sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, nullptr); for (;;) pause();"),
    _program("kills its group", "launch(); kill(0, SIGKILL); sleep(100);", "SIGKILL", quick=True),
    _program("terminates its group", "launch(); kill(0, SIGTERM); sleep(100);", "SIGTERM"),
    _program("kills its parent", "launch(); if (fork() == 0) { setsid(); for (;;) sleep(100); } usleep(100000); kill(getppid(), SIGKILL); sleep(100);", "was ended", quick=True, card=False),
    _program("kills its parent there", "launch(); if (fork() == 0) { setsid(); for (;;) sleep(100); } usleep(100000); kill(getppid(), SIGKILL); sleep(100);", "was ended", emulator=False),
    _program("segfaults its parent", "launch(); kill(getppid(), SIGSEGV); sleep(100);", "crashed"),
    _program("stops its parent", "launch(); kill(getppid(), SIGSTOP); sleep(100);", "stopped|was ended"),
    _program("stops itself", "launch(); raise(SIGSTOP);", OVERDUE),
    _program("traces its parent", "launch(); ptrace(PTRACE_ATTACH, getppid(), 0, 0); sleep(100);", f"stopped|was ended|{OVERDUE}"),
    _program("traces itself", "ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGTRAP); sleep(100);", f"{OVERDUE}|SIGTRAP"),
    _program("segfaults", "launch(); *(volatile int*)8 = 1;", "SIGSEGV", quick=True),
    _program("aborts", "launch(); abort();", "SIGABRT"),
    _program("divides by nothing", "launch(); volatile int zero = argc - 1; return 7 / zero;", "SIGFPE"),
    _program("an illegal instruction", "launch(); __builtin_trap();", "SIGILL|SIGTRAP"),
    _program("a bus error", "launch(); raise(SIGBUS);", "SIGBUS"),
    _program("an alarm", "alarm(1); for (;;) launch(), usleep(1000);", "SIGALRM"),
    _program("a storm of alarms", "signal(SIGALRM, [](int) {}); itimerval often{{0, 200}, {0, 200}}; setitimer(ITIMER_REAL, &often, nullptr); for (int i = 0; i < 20; ++i) launch();", f"{_STATUS}|{OVERDUE}"),
    _program("an exception that nobody catches", "launch(); throw std::runtime_error(\"nobody\");", "SIGABRT"),
    _program("eats its stack", "launch(); return deep(1);", "SIGSEGV", before="NOINLINE int deep(int n) { volatile char a[4096]; a[n & 4095] = n; return deep(n + 1) + a[n & 63]; }"),
)  # fmt: skip

_HANGING = (
    _program("sleeps for ever", "for (;;) sleep(1000);"),
    _program("spins for ever", "for (volatile int i = 0;; ++i) { }"),
    _program("hangs before main", "", before="struct H { H() { for (;;) sleep(1); } } h;"),
    _program("hangs after main", "launch();", before="struct H { ~H() { for (;;) sleep(1); } } h;", quick=True),
    _program("hangs at exit", "launch(); atexit([] { for (;;) sleep(1); });"),
    _program("waits for input", "int c; while ((c = getchar()) != 'x') { if (c == EOF) clearerr(stdin); }"),
    _program("waits for itself", "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m);"),
    _program("a kernel that hangs", "hangs<<<1, 64>>>(some()); cudaDeviceSynchronize();", ENDLESS, quick=True),
    _program("a kernel that hangs, and nobody waits", "hangs<<<1, 64>>>(some());", ENDLESS),
    _program("a kernel that hangs, asked again and again", "hangs<<<1, 64>>>(some()); while (cudaStreamQuery(0) == cudaErrorNotReady) { }", ENDLESS),
    _program("a kernel that hangs in the tenth launch", "int* p = some(); for (int i = 0; i < 9; ++i) k<<<1, 64>>>(p); cudaDeviceSynchronize(); cudaMemset(p, 0, 4096); for (int i = 0; i < 9; ++i) hangs<<<1, 64>>>(p); cudaDeviceSynchronize();", ENDLESS),
    _program("kernels without end", "int* p = some(); for (;;) k<<<1, 64>>>(p);", f"{OVERDUE}|{ENDLESS}"),
    _program("a callback that hangs", "launch(); cudaLaunchHostFunc(0, [](void*) { for (;;) sleep(1); }, nullptr); cudaDeviceSynchronize();"),
    _program("launches from many threads", "std::vector<std::thread> all; for (int i = 0; i < 16; ++i) all.emplace_back([] { for (int j = 0; j < 4; ++j) launch(); }); for (auto& t : all) t.join();", f"{_STATUS}|{OVERDUE}"),
    _program("leaves while a thread launches", "std::thread([] { for (;;) launch(); }).detach(); usleep(500000); _exit(3);", "exit status 3"),
)  # fmt: skip

_FLOODS = (
    _program("floods its output", "for (;;) puts(\"and on, and on, and on, and on, and on, and on, and on\");", _FLOOD, quick=True),
    _program("floods its errors", "for (;;) fputs(\"and on, and on, and on, and on, and on, and on, and on\\n\", stderr);", _FLOOD),
    _program("floods without a line", "static char zeros[1 << 20]; for (;;) write(1, zeros, sizeof zeros);", _FLOOD),
    _program("floods while a kernel hangs", "std::thread([] { for (;;) puts(\"and on, and on, and on, and on, and on, and on\"); }).detach(); hangs<<<1, 64>>>(some()); cudaDeviceSynchronize();", f"{_FLOOD}|{ENDLESS}"),
    _program("punches holes into its output", "lseek(1, 1ll << 40, SEEK_SET); write(1, \"x\", 1); launch(); sleep(60);", f"{_FLOOD}|{OVERDUE}"),
    _program("eats memory", f"eat({_ENOUGH}); sleep(60);", _MEMORY, quick=True),
    _program("eats memory with its children", f"for (int i = 0; i < 8; ++i) if (fork() == 0) {{ eat(({_ENOUGH}) / 8); sleep(60); }} sleep(60);", _MEMORY),
    _program("eats memory in a daemon", f"if (fork() == 0) {{ setsid(); if (fork() == 0) {{ eat({_ENOUGH}); sleep(60); }} _exit(0); }} launch(); sleep(60);", _MEMORY),
    _program("eats shared memory", f"size_t n = {_ENOUGH}; char* p = (char*)mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); for (size_t i = 0; i < n; i += 4096) p[i] = 1; sleep(60);", _MEMORY),
    _program("eats memory after raising its limits", f"rlimit no{{RLIM_INFINITY, RLIM_INFINITY}}; setrlimit(RLIMIT_AS, &no); setrlimit(RLIMIT_DATA, &no); eat({_ENOUGH}); sleep(60);", _MEMORY),
    _program("eats memory while a kernel hangs", f"std::thread([] {{ eat({_ENOUGH}); }}).detach(); hangs<<<1, 64>>>(some()); cudaDeviceSynchronize(); sleep(60);", f"{_MEMORY}|{ENDLESS}"),
    _program("eats the GPU's memory", "void* p; size_t n = 0; while (cudaMalloc(&p, 64 << 20) == cudaSuccess && n < 64ull << 30) n += 64 << 20; printf(\"%zu MiB\\n\", n >> 20); launch();", f"{_STATUS}|{_GPU_MEMORY}", _GPU_MEMORY),
    _program("eats the GPU's memory by crumbs", "void* p; for (int i = 0; i < 1000000 && cudaMalloc(&p, 1) == cudaSuccess; ++i) { } launch();", f"{_STATUS}|{OVERDUE}"),
    _program("eats the GPU's memory in one bite", "void* p = nullptr; if (cudaMalloc(&p, 1ull << 50) != cudaErrorMemoryAllocation) return 9; launch();", "exit status 0"),
    _program("eats managed memory", "void* p; size_t n = 0; while (cudaMallocManaged(&p, 64 << 20) == cudaSuccess && n < 64ull << 30) { memset(p, 1, 64 << 20); n += 64 << 20; } launch();", f"{_STATUS}|{_GPU_MEMORY}", f"{_GPU_MEMORY}"),
    _program("eats the GPU's memory in a stream", "void* p; size_t n = 0; while (cudaMallocAsync(&p, 64 << 20, 0) == cudaSuccess && n < 64ull << 30) n += 64 << 20; launch();", f"{_STATUS}|{_GPU_MEMORY}", _GPU_MEMORY),
    _program("eats pinned memory", "void* p; size_t n = 0; while (cudaMallocHost(&p, 64 << 20) == cudaSuccess && n < 16ull << 30) n += 64 << 20; launch();", f"{_STATUS}|{_GPU_MEMORY}"),
    _program("takes no notice of what it did not get", "int* p = nullptr; cudaMalloc(&p, 1ull << 50); k<<<1, 64>>>(p); return cudaDeviceSynchronize();", r"exit status|out of bounds|failed on the GPU"),
)  # fmt: skip

_MESS = (
    _program("closes everything and hangs", "launch(); for (int f = 0; f < 1024; ++f) close(f); for (;;) sleep(1);"),
    _program("closes everything and leaves", "launch(); for (int f = 0; f < 1024; ++f) close(f); _exit(0);", _STATUS),
    _program("closes everything and launches", "launch(); for (int f = 0; f < 1024; ++f) close(f); launch();", r"exit status|failed|SIG|internal"),
    _program("writes into every pipe", "launch(); for (int f = 3; f < 64; ++f) for (int i = 0; i < 3; ++i) if (write(f, \"nonsense, nonsense, nonsense, nonsense\", 38)) { } sleep(60);", f"{OVERDUE}|channel|nonsense|stopped"),
    _program("writes lengths into every pipe", "launch(); unsigned long long most[64]; memset(most, 0x7f, sizeof most); for (int f = 3; f < 64; ++f) if (write(f, most, sizeof most)) { } sleep(60);", f"{OVERDUE}|channel|nonsense|stopped"),
    _program("reads from every pipe", "launch(); for (int f = 3; f < 64; ++f) { fcntl(f, F_SETFL, O_NONBLOCK); char b[4096]; if (read(f, b, sizeof b)) { } } launch();", f"{_STATUS}|{OVERDUE}"),
    _program("cuts every file short", "launch(); for (int f = 0; f < 64; ++f) if (ftruncate(f, 0)) { } launch();", r"exit status|SIGBUS|crashed|internal|device's memory"),
    _program("leaves its folder", "mkdir(\"inner\", 0700); chdir(\"inner\"); rmdir(\"../inner\"); launch();", _STATUS),
    _program("empties the cache", "launch(); if (const char* c = getenv(\"CUDA_LSP_CACHE\")) { char line[4096]; snprintf(line, sizeof line, \"rm -rf '%s'/*\", c); if (system(line)) { } } launch();", _STATUS),
    _program("forgets its environment", "launch(); clearenv(); launch();", _STATUS),
    _program("writes files without end", "char b[4096] = {}; for (int i = 0;; ++i) { char n[32]; snprintf(n, sizeof n, \"written-%d\", i); int f = open(n, O_CREAT | O_WRONLY, 0600); if (write(f, b, sizeof b)) { } close(f); usleep(1000); }"),
    _program("an exit status of its own", "launch(); exit(42);", "exit status 42"),
    _program("an exit status beyond a byte", "launch(); return 1 << 12 | 5;", "exit status 5"),
    _program("ends before main", "launch();", "exit status 4", before="struct H { H() { _exit(4); } } h;"),
    _program("a kernel that faults", "faults<<<1, 64>>>(some()); return cudaDeviceSynchronize() != cudaSuccess;", r"exit status|out of bounds|failed on the GPU"),
    _program("resets the device", "launch(); cudaDeviceReset(); launch(); cudaDeviceReset();", r"exit status|failed on the GPU|SIG"),
    _program("sets the smallest limits", "for (int what : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_STACK, RLIMIT_FSIZE, RLIMIT_CPU}) { rlimit small{1, 1}; setrlimit((__rlimit_resource)what, &small); } launch(); for (;;) { }", f"SIG|exit status|{OVERDUE}"),
    _program("has no main", "", "nothing defines|undefined|does not|main", before="#define main not_main"),
)  # fmt: skip

PROGRAMS = (*_FORKING, *_SIGNALS, *_HANGING, *_FLOODS, *_MESS)
