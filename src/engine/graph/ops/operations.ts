import type { Operation } from "../node.js";
import * as dropout from "./dropout.js";
import * as elementwise from "./elementwise.js";
import * as indexing from "./indexing.js";
import * as int8 from "./int8.js";
import * as layout from "./layout.js";
import * as leaves from "./leaves.js";
import * as matmul from "./matmul.js";
import * as norm from "./norm.js";
import * as quantized from "./quantized.js";
import * as reduce from "./reduce.js";
import * as rotary from "./rotary.js";
import * as tokenLogProbs from "./token-log-probs.js";

const exported = {
  ...leaves,
  ...elementwise,
  ...reduce,
  ...layout,
  ...matmul,
  ...indexing,
  ...norm,
  ...rotary,
  ...tokenLogProbs,
  ...quantized,
  ...int8,
  ...dropout,
};

type Exported = typeof exported;

export type OperationName = {
  [Key in keyof Exported]: Key extends `${infer Name}Operation`
    ? Name
    : Exported[Key] extends { readonly operation: object }
      ? Key
      : never;
}[keyof Exported];

const SUFFIX = "Operation";

/**
 * Every operation by name. Tests provide cases for all names, so an operation without cases does
 * not compile.
 */
export const operations = Object.fromEntries(
  Object.entries(exported).flatMap(([key, value]) => {
    if (key.endsWith(SUFFIX)) return [[key.slice(0, -SUFFIX.length), value]];
    return typeof value === "function" && "operation" in value ? [[key, value.operation]] : [];
  }),
) as { readonly [Name in OperationName]: Operation<never> };
