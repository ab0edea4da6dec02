import type { HuggingFaceConfig } from "./hugging-face-config.js";

export type LayerType = "full_attention" | "sliding_attention";

/** Names that config.json may give a layer, older ones too. */
const known: Readonly<Record<string, LayerType>> = {
  full_attention: "full_attention",
  attention: "full_attention",
  sliding_attention: "sliding_attention",
};

/** `layer_types`, a name for each layer, or what `absent` says of each when the field is not there. */
export function readLayerTypes(
  config: HuggingFaceConfig,
  layerCount: number,
  absent: (layer: number) => LayerType,
): readonly LayerType[] {
  const names = config.texts("layer_types");
  if (names === undefined) return Array.from({ length: layerCount }, (_, layer) => absent(layer));
  if (names.length !== layerCount) {
    throw config.invalid("layer_types", `as many names as num_hidden_layers (${layerCount})`);
  }
  return names.map((name) => {
    if (Object.hasOwn(known, name)) return known[name];
    throw config.unsupported("layer_types", `Supported: ${Object.keys(known).join(", ")}.`);
  });
}

/** Windows of the layers: `sliding_window` where a layer slides. Throws FILE_CORRUPT when one slides and none is given. */
export function layerWindows(
  config: HuggingFaceConfig,
  types: readonly LayerType[],
  window: number | undefined,
): readonly (number | undefined)[] {
  return types.map((type) => {
    if (type === "full_attention") return undefined;
    if (window !== undefined) return window;
    throw config.invalid("sliding_window", `the window of the layers that are "sliding_attention"`);
  });
}
