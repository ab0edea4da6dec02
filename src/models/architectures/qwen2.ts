import { buildDecoderFields, buildRope, getRmsNormEpsilon, type GgufArchitecture } from "../files/gguf/gguf-config.js";
import { decoderTensors, llamaLayerTensors } from "./llama-gguf.js";
import { defineArchitecture } from "./architecture.js";
import { llamaNetwork } from "./llama-network.js";
import { QWEN_DIMENSIONS, readQwenWindows } from "./qwen-windows.js";

export const buildQwen2Config: GgufArchitecture["config"] = (source, sizes) => ({
  ...buildDecoderFields("qwen2", source, sizes),
  head_dim: sizes.headSize,
  hidden_act: "silu",
  rms_norm_eps: getRmsNormEpsilon(source),
  use_sliding_window: false,
  sliding_window: null,
  rope_parameters: buildRope(source, sizes),
});

/** Qwen 2 and 2.5 (Qwen2Config): Llama with biases on queries, keys and values. */
export const qwen2 = defineArchitecture({
  modelTypes: ["qwen2"],
  decoder: (config) =>
    llamaNetwork(config, {
      modelType: "qwen2",
      defaults: QWEN_DIMENSIONS,
      biases: { queryKeyValue: true, attentionOutput: false, feedForward: false },
      tieWordEmbeddings: false,
      layers: (count) => {
        const windows = readQwenWindows(config, count);
        return (layer) => ({ window: windows[layer] });
      },
    }),
  gguf: {
    name: "qwen2",
    modelClass: "Qwen2ForCausalLM",
    ...decoderTensors,
    layerTensors: llamaLayerTensors,
    config: buildQwen2Config,
  },
});
