export * from "./dim.js";
export { gradient } from "./gradient.js";
export { apply, defineOperation, type Node, type Operation, type TensorType } from "./node.js";
export { compile, type CompiledGraph, type NamedTensorType, type WeightLocation } from "./compile.js";
export * from "./functions.js";
