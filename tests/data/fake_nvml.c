/* A stand-in for libnvidia-ml.so.1. What it answers is read at every call from the file named by
 * FAKE_NVML_CONTROL, one "key value" a line: a figure's name sets the figure, a function's name
 * makes that function return the given error, "all" makes every device function return it, and
 * "after" lets that many device calls succeed first; "processes" lists that many pids from
 * "first_pid" on. An initialised library holds its control file open, as the real one holds the
 * device, and appends every init and shutdown to the file that FAKE_NVML_JOURNAL names.
 * -DOLD_DRIVER leaves out newer symbols. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int Return;
typedef void *Device;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu, compute; } Process;

#define MOST_INITS 64
static int held[MOST_INITS];
static int initialised;
static long device_calls;
static long asked_reasons;

int fake_nvml_initialised(void) { return initialised; }
long fake_nvml_device_calls(void) { return device_calls; }
long fake_nvml_asked_reasons(void) { return asked_reasons; }

static long long control(const char *key, long long fallback) {
    const char *path = getenv("FAKE_NVML_CONTROL");
    FILE *file = path ? fopen(path, "r") : NULL;
    char name[128];
    char value[64];
    long long found = fallback;
    if (!file) return fallback;
    while (fscanf(file, "%127s %63s", name, value) == 2)
        if (!strcmp(name, key)) found = strtoll(value, NULL, 0);
    fclose(file);
    return found;
}

static Return device_call(const char *name) {
    device_calls++;
    if (!initialised) return 1;
    Return own = (Return)control(name, 0);
    if (own) return own;
    return device_calls > control("after", 0) ? (Return)control("all", 0) : 0;
}

#define ENTER do { Return failed = device_call(__func__); if (failed) return failed; } while (0)

static void note(const char *what) {
    const char *path = getenv("FAKE_NVML_JOURNAL");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", what);
    fclose(file);
}

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    Return failed = (Return)control(__func__, 0);
    const char *path = getenv("FAKE_NVML_CONTROL");
    note(failed ? "refused" : "init");
    if (failed) return failed;
    if (initialised < MOST_INITS) held[initialised] = path ? open(path, O_RDONLY) : -1;
    initialised++;
    return 0;
}
Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Return nvmlShutdown(void) {
    note("shutdown");
    if (initialised) initialised--;
    if (initialised < MOST_INITS && held[initialised] > 0) close(held[initialised]);
    return (Return)control(__func__, 0);
}
const char *nvmlErrorString(Return code) { (void)code; return "a newer error"; }
Return nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER;
    *count = (unsigned)control("devices", 1);
    return 0;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    ENTER;
    *device = (Device)(size_t)(index + 1);
    return 0;
}
Return nvmlDeviceGetName(Device device, char *name, unsigned length) {
    (void)device;
    ENTER;
    strncpy(name, control("unlisted", 0) ? "NVIDIA B999" : "NVIDIA A40", length);
    return 0;
}
Return nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) {
    (void)device;
    ENTER;
    rates->gpu = (unsigned)control("utilization", 73);
    rates->memory = 41;
    return 0;
}
Return nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    (void)device;
    ENTER;
    memory->total = 48305799168ULL;
    memory->used = (unsigned long long)control("used", 43000000000LL);
    memory->free = memory->total - memory->used;
    return 0;
}
Return nvmlDeviceGetPowerUsage(Device device, unsigned *power_mw) {
    (void)device;
    ENTER;
    *power_mw = (unsigned)control("power_mw", 254321);
    return 0;
}
Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *limit_mw) {
    (void)device;
    ENTER;
    *limit_mw = 300000;
    return 0;
}
Return nvmlDeviceGetTemperature(Device device, int sensor, unsigned *celsius) {
    (void)device;
    (void)sensor;
    ENTER;
    *celsius = 67;
    return 0;
}
Return nvmlDeviceGetClockInfo(Device device, int clock, unsigned *mhz) {
    (void)device;
    ENTER;
    *mhz = clock == 1 ? 1740 : 7251;
    return 0;
}
static Return reasons(unsigned long long *bits) {
    asked_reasons++;
    *bits = (unsigned long long)control("reasons", 0);
    return 0;
}
#ifndef OLD_DRIVER
Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *bits) {
    (void)device;
    ENTER;
    return reasons(bits);
}
#endif
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *bits) {
    (void)device;
    ENTER;
    return reasons(bits);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned *count, Process *list) {
    unsigned listed = (unsigned)control("processes", 0);
    (void)device;
    ENTER;
    if (!list || *count < listed) {
        *count = listed;
        return listed ? 7 : 0;
    }
    for (unsigned i = 0; i < listed; i++) {
        list[i].pid = (unsigned)control("first_pid", 4000000) + i;
        list[i].memory = ~0ULL;
        list[i].gpu = list[i].compute = ~0U;
    }
    *count = listed;
    return 0;
}
Return nvmlSystemGetDriverVersion(char *version, unsigned length) {
    Return failed = (Return)control(__func__, 0);
    if (failed) return failed;
    snprintf(version, length, "%lld.90.07", control("driver", 550));
    return 0;
}
Return nvmlSystemGetCudaDriverVersion(int *code) {
    *code = (int)control("cuda", 12040);
    return (Return)control(__func__, 0);
}
#ifndef OLD_DRIVER
Return nvmlSystemGetCudaDriverVersion_v2(int *code) { return nvmlSystemGetCudaDriverVersion(code); }
#endif
