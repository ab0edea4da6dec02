import { hasTensor } from "../files/gguf/gguf-config.js";
import { decoderTensors, headNormTensors, llamaLayerTensors } from "./llama-gguf.js";
import { buildQwen2Config, QWEN_DIMENSIONS, readQwenWindows } from "./qwen2.js";
import { defineArchitecture } from "./architecture.js";
import { headNormNames, llamaLayerNames, llamaNetwork, readAttentionBiases } from "./llama-network.js";

/** Qwen 3, dense (Qwen3Config): Llama with a norm on each head's query and key. */
export const qwen3 = defineArchitecture({
  modelTypes: ["qwen3"],
  decoder: (config) =>
    llamaNetwork(config, {
      modelType: "qwen3",
      defaults: { ...QWEN_DIMENSIONS, headDim: 128 },
      biases: readAttentionBiases(config),
      tieWordEmbeddings: false,
      layers: (count) => {
        const windows = readQwenWindows(config, count);
        return (layer) => ({ window: windows[layer], names: { ...llamaLayerNames(layer), ...headNormNames(layer) } });
      },
    }),
  gguf: {
    name: "qwen3",
    modelClass: "Qwen3ForCausalLM",
    ...decoderTensors,
    layerTensors: { ...llamaLayerTensors, ...headNormTensors },
    config: (source, sizes) => ({
      ...buildQwen2Config(source, sizes),
      model_type: "qwen3",
      attention_bias: hasTensor(source, "blk.0.attn_q.bias"),
    }),
  },
});
