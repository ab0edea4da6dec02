export * from "./dim.js";
export { gradient } from "./gradient.js";
export type { Node, TensorType } from "./node.js";
export { compile, type CompiledGraph, type NamedTensorType, type WeightLocation } from "./compile.js";
export * from "./functions.js";
