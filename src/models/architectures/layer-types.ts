import type { JsonFields } from "../../core/files/json-fields.js";

export type LayerType = "full_attention" | "sliding_attention";

/** Layer types in config.json, including older names. */
const layerTypesByName: Readonly<Record<string, LayerType>> = {
  full_attention: "full_attention",
  attention: "full_attention",
  sliding_attention: "sliding_attention",
};

/** Reads `layer_types`, or applies `fallback` to each layer where absent. */
export function readLayerTypes(
  config: JsonFields,
  layerCount: number,
  fallback: (layer: number) => LayerType,
): readonly LayerType[] {
  const names = config.texts("layer_types");
  if (names === undefined) return Array.from({ length: layerCount }, (_, layer) => fallback(layer));
  if (names.length !== layerCount)
    throw config.invalidFieldError("layer_types", `as many names as num_hidden_layers (${layerCount})`);
  return names.map((name) => {
    if (Object.hasOwn(layerTypesByName, name)) return layerTypesByName[name];
    throw config.unsupportedFieldError("layer_types", `Supported: ${Object.keys(layerTypesByName).join(", ")}.`);
  });
}

/**
 * Returns `sliding_window` for sliding layers. @throws FILE_CORRUPT when a layer slides and no
 * window is given.
 */
export function getLayerWindows(
  config: JsonFields,
  types: readonly LayerType[],
  window: number | undefined,
): readonly (number | undefined)[] {
  return types.map((type) => {
    if (type === "full_attention") return undefined;
    if (window !== undefined) return window;
    throw config.invalidFieldError("sliding_window", `a window for the "sliding_attention" layers`);
  });
}
