import type { DecoderConfig } from "../../engine/nn/index.js";
import type { JsonFields } from "../../core/files/json-fields.js";

type Activation = DecoderConfig["activation"];

/** Names in Transformers' ACT2FN. */
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

/** Reads the feed-forward activation. @throws MODEL_UNSUPPORTED for an unsupported one. */
export function readActivation(config: JsonFields, field: string, fallback: Activation): Activation {
  const name = config.text(field);
  if (name === undefined) return fallback;
  const activation = Object.hasOwn(activations, name) ? activations[name] : undefined;
  if (activation !== undefined) return activation;
  throw config.unsupportedFieldError(field, `Supported: ${Object.keys(activations).join(", ")}.`);
}
