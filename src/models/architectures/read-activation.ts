import type { DecoderConfig } from "../../engine/nn/decoder-config.js";
import type { HuggingFaceConfig } from "./hugging-face-config.js";

type Activation = DecoderConfig["activation"];

/** Transformers' names (ACT2FN); several stand for one function written in different ways. */
const activations: Readonly<Record<string, Activation>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_python: "gelu",
  gelu_new: "geluTanh",
  gelu_fast: "geluTanh",
  gelu_accurate: "geluTanh",
  gelu_pytorch_tanh: "geluTanh",
  gelu_python_tanh: "geluTanh",
  relu: "relu",
};

/** The feed-forward part's activation, `absent` when the field is not there. Throws MODEL_UNSUPPORTED for another one. */
export function readActivation(config: HuggingFaceConfig, field: string, fallback: Activation): Activation {
  const name = config.text(field);
  if (name === undefined) return fallback;
  const activation = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (activation !== undefined) return activation;
  throw config.unsupportedFieldError(field, `Supported: ${Object.keys(activations).join(", ")}.`);
}
