export * from "./dim.js";
export { gradient } from "./gradient.js";
export type { Node, TensorType } from "./node.js";
export { compile, type CompiledGraph, type NamedType, type WeightLocation } from "./writer.js";
export * from "./functions.js";
