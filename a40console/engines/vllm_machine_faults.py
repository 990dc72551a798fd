"""What vLLM writes when the machine fails it: memory, disk, GPU, libraries. Data only."""

from __future__ import annotations

from a40console.engines.faults import Fault

_SMALLER = "Lower max_running, max_model_len or gpu_memory_utilization in the profile."

MEMORY_AND_DISK = (
    Fault(
        "gpu-memory-taken",
        "memory",
        r"Free memory on device .*?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less "
        r"than desired GPU memory utilization \((?P<share>[\d.]+), (?P<need>[\d.]+) GiB\)",
        "the GPU has {free} of {total} GiB free, and {need} were asked for",
        "End what holds its memory first, or lower gpu_memory_utilization below {share}.",
    ),
    Fault(
        "kv-cache-too-small",
        "memory",
        r"model's max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed, which "
        r"is larger than the available KV cache memory \((?P<have>[\d.]+) GiB\)\. Based on the "
        r"available memory, the estimated maximum model length is (?P<most>\d+)",
        "the KV cache has {have} GiB, and one request of {asked} tokens needs {need}",
        "Set max_model_len = {most}, which vLLM estimates to fit.{room}",
    ),
    Fault(
        "kv-cache-too-small",
        "memory",
        r"model's max seq len \((?P<asked>\d+)\), \((?P<need>[\d.]+) GiB KV cache is needed, which "
        r"is larger than the available KV cache memory \((?P<have>[\d.]+) GiB\)",
        "the KV cache has {have} GiB, and one request of {asked} tokens needs {need}",
        "Lower max_model_len.{room}",
    ),
    Fault(
        "kv-cache-none",
        "memory",
        r"No available memory for the cache blocks",
        "the weights leave no memory for the KV cache",
        "Raise gpu_memory_utilization, or take a smaller model or quantization.",
    ),
    Fault(
        "cuda-oom-sampler",
        "memory",
        r"CUDA out of memory occurred when warming up \w+ with (?P<rows>\d+) dummy requests",
        "the GPU ran out of memory while warming up with {rows} requests",
        "Lower max_running or gpu_memory_utilization in the profile.",
    ),
    Fault(
        "cuda-oom",
        "memory",
        r"CUDA out of memory\. Tried to allocate (?P<size>[\d.]+ [KMG]iB)",
        "the GPU ran out of memory: {size} more were asked for",
        _SMALLER,
        only_starting=False,
    ),
    Fault(
        "cuda-oom",
        "memory",
        r"CUDA error: out of memory|cudaErrorMemoryAllocation",
        "the GPU ran out of memory",
        _SMALLER,
        only_starting=False,
    ),
    Fault(
        "host-out-of-memory",
        "memory",
        r"Cannot allocate memory|std::bad_alloc|^MemoryError|DefaultCPUAllocator: can't allocate",
        "the machine ran out of memory",
        "Lower the KV cache or the context, or take a machine with more memory.",
        only_starting=False,
    ),
    Fault(
        "kv-cache-none",
        "memory",
        r"Cannot auto-fit max_model_len: not enough GPU memory",
        "the weights leave no memory for the KV cache",
        "Raise gpu_memory_utilization, or take a smaller model or quantization.",
    ),
    Fault(
        "shared-memory-full",
        "disk",
        r"insufficient shared memory \(shm\)|No space left on device:? '?/dev/shm"
        r"|unable to (?:mmap|allocate|resize) .*shared memory",
        "the container's shared memory (/dev/shm) is full",
        "Give it more (docker run --shm-size 16g, or --ipc=host), then start again.",
        only_starting=False,
    ),
    Fault(
        "disk-full",
        "disk",
        r"No space left on device",
        "a disk is full",
        "Free space where models and caches lie (HF_HOME, /dev/shm), then start again.",
        only_starting=False,
    ),
    Fault(
        "too-many-files",
        "disk",
        r"(?<!`OSError: \[Errno 24\] )Too many open files",
        "it may open no more files or connections",
        "Raise the limit before the service starts: ulimit -n 65535.",
        only_starting=False,
    ),
    Fault(
        "permission-denied",
        "disk",
        r"Permission denied: '(?P<path>[^']+)'",
        "it may not use {path}",
        "Give its user that file, or name another folder (HF_HOME, TMPDIR, XDG_CACHE_HOME).",
    ),
)

GPU_AND_LIBRARIES = (
    Fault(
        "driver-mismatch",
        "missing",
        r"driver on your system is too old \(found version (?P<found>\d+)\)",
        "the NVIDIA driver is too old for this vLLM's CUDA: it is of version {found}",
        "Rent a pod with a newer driver, or install a vLLM built for an older CUDA.",
    ),
    Fault(
        "driver-mismatch",
        "missing",
        r"CUDA driver version is insufficient for CUDA runtime version"
        r"|forward compatibility was attempted on non supported HW"
        r"|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|system has unsupported display driver",
        "the NVIDIA driver is too old for this vLLM's CUDA",
        "Rent a pod with a newer driver, or install a vLLM built for an older CUDA.",
    ),
    Fault(
        "driver-mismatch",
        "missing",
        r"Driver/library version mismatch",
        "the NVIDIA driver and its library are of two versions",
        "Restart the pod: the driver was updated under it.",
    ),
    Fault(
        "gpu-not-supported",
        "missing",
        r"no kernel image is available for execution on the device",
        "this vLLM was not built for a GPU of this kind",
        "Install a release that knows this GPU; a build of your own needs TORCH_CUDA_ARCH_LIST.",
    ),
    Fault(
        "gpu-kernel-failed",
        "crashed",
        r"an illegal memory access was encountered|unspecified launch failure"
        r"|device-side assert triggered|CUDA error: misaligned address",
        "a kernel on the GPU failed, which ends everything on it",
        "Start it again; if it happens again, try enforce_eager = true, then another release.",
        only_starting=False,
    ),
    Fault(
        "gpu-failed",
        "crashed",
        r"uncorrectable ECC error|ECC_UNCORRECTABLE|GPU is lost|fallen off the bus"
        r"|uncorrectable NVLink error",
        "the GPU itself failed",
        "Restart the pod; if it happens again, rent another.",
        only_starting=False,
    ),
    Fault(
        "gpu-unusable",
        "missing",
        r"all CUDA-capable devices are busy or unavailable|CUDA unknown error"
        r"|no CUDA-capable device is detected",
        "the GPU is there and cannot be used",
        "See nvidia-smi and what holds it; restart the pod if it stays.",
    ),
    Fault(
        "nccl-timeout",
        "crashed",
        r"Watchdog caught collective operation timeout",
        "NCCL waited in vain for another GPU of the engine",
        "See the other workers' lines; without peer-to-peer set NCCL_P2P_DISABLE=1.",
        only_starting=False,
    ),
    Fault(
        "workers-silent",
        "core",
        r"RPC call to (?P<call>\w+) timed out",
        "its workers did not answer {call} in time",
        "See the workers' lines and the GPU; start it again.",
        only_starting=False,
    ),
    Fault(
        "nccl-failed",
        "crashed",
        r"(?:NCCL error(?: in)?:|ncclUnhandledCudaError|ncclSystemError|ncclInternalError).*",
        "NCCL, with which its workers talk to each other, failed",
        "Set NCCL_DEBUG=INFO under [environment]; without peer-to-peer NCCL_P2P_DISABLE=1.",
        only_starting=False,
    ),
    Fault(
        "library-missing",
        "missing",
        r"(?P<library>lib[\w.+-]+\.so[\w.]*): cannot open shared object file",
        "the library {library} is missing",
        "Install the engine anew in an environment of its own, or the package with that library.",
    ),
    Fault(
        "libraries-do-not-fit",
        "missing",
        r"undefined symbol: |version `(?P<version>[\w.]+)' not found",
        "its compiled parts do not fit the libraries that are here",
        "Install the engine anew in an environment of its own: another PyTorch came between.",
    ),
    Fault(
        "model-code-needs-package",
        "missing",
        r"packages that were not found in your environment: (?P<names>[^.\n]+)\.",
        "the model's own code needs {names}",
        "Install them in the engine's environment.",
    ),
    Fault(
        "no-gpu",
        "missing",
        r"Failed to infer device type|No CUDA GPUs are available"
        r"|CUDA driver version is insufficient|Found no NVIDIA driver",
        "vLLM found no GPU that it can use",
        "Check nvidia-smi and the driver; without a GPU take a profile for the CPU.",
    ),
    Fault(
        "environment-incomplete",
        "missing",
        r"No package metadata was found for (?P<name>\S+)|No module named '(?P<module>[^']+)'"
        r"|cannot import name '(?P<part>\w+)' from",
        "the engine's environment is incomplete",
        "Install the missing package there, or install the engine anew.",
    ),
)
