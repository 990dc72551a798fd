"""What vLLM refuses of a start's settings, in its words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.sim.settings import Settings
from a40console.sim.starting import Line, cache_tokens

TOOL_PARSERS = (
    "apertus,cohere_command3,cohere_command4,deepseek_v3,deepseek_v31,deepseek_v32,"
    "deepseek_v4,deepseek_v41,dots,ernie45,functiongemma,gemma4,gigachat3,glm45,glm47,"
    "granite,granite-20b-fc,granite4,hermes,hf,hunyuan_a13b,hy_v3,hy_v4,inkling,"
    "internlm,jamba,k2_horizon,kimi_k2,kimi_k3,lfm2,ling3,llama3_json,llama4_json,"
    "llama4_pythonic,longcat,mimo,minicpm5,minimax_m2,minimax_m3,mistral,muse_glimmer,"
    "olmo3,openai,phi4_mini_json,plamo3,poolside_v1,pythonic,qwen3_coder,qwen3_json,"
    "qwen3_xml,seed_oss,step3,step3p5,xlam"
)
"""Of vLLM 0.32, as it lists them."""

ALLOW_LONG = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"


def refusal(settings: Settings, after: Line, environment: Mapping[str, str]) -> str | None:
    """What ends the start after one of its lines; None where it goes on.

    Args:
        settings: As it was started.
        after: The line that is written already.
        environment: Of the process.
    """
    if after.text.startswith("non-default args:"):
        return _unknown_parser(settings)
    if after.text.startswith("Resolved architecture:"):
        return _beyond_the_model(settings, environment)
    return None


def _unknown_parser(settings: Settings) -> str | None:
    asked = settings.words.tool_call_parser
    if not settings.words.enable_auto_tool_choice or asked is None:
        return None
    if asked in TOOL_PARSERS.split(","):
        return None
    return f"KeyError: 'invalid tool call parser: {asked} (chose from {{ {TOOL_PARSERS} }})'"


def _beyond_the_model(settings: Settings, environment: Mapping[str, str]) -> str | None:
    asked, most = settings.options.max_model_len, settings.sheet.max_model_len
    if asked <= most or environment.get(ALLOW_LONG) == "1":
        return None
    return (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        f"  Value error, User-specified max_model_len ({asked}) is greater than the derived "
        f"max_model_len (max_position_embeddings={most}.0 or model_max_length=None in model's "
        f"config.json). To allow overriding this maximum, set the env var {ALLOW_LONG}=1. "
        f"{ALLOW_LONG} must be used with extreme caution. [type=value_error, "
        "input_value=ArgsKwargs(()), input_type=ArgsKwargs]"
    )


def cache_too_small(settings: Settings) -> str | None:
    """The refusal of a context that the KV cache cannot hold; None where it can."""
    tokens, asked = cache_tokens(settings), settings.options.max_model_len
    if asked <= tokens:
        return None
    each = settings.sheet.kv_bytes / 2**30
    return (
        f"ValueError: To serve at least one request with the model's max seq len ({asked}), "
        f"({asked * each:.2f} GiB KV cache is needed, which is larger than the available KV cache "
        f"memory ({tokens * each:.2f} GiB). Based on the available memory, the estimated maximum "
        f"model length is {tokens}. Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine."
    )
