import { add, compile, dim, input, mul } from "../../src/engine/graph/index.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import type { Session } from "../../src/engine/runtime/session.js";
import type { Tensor } from "../../src/engine/tensor/tensor.js";

const rows = dim("rows");

/** Inputs of the session's graph: [rows, 2] each. */
export const x = input("x", "float32", [rows, 2]);
export const y = input("y", "float32", [rows, 2]);

/** Opens a runtime on one thread with a session of sum = x + y and product = x y. */
export async function openSumProductSession(): Promise<{ runtime: Runtime; session: Session }> {
  const runtime = new Runtime({ device: "cpu", threads: 1 });
  return { runtime, session: await runtime.createSession(compile({ sum: add(x, y), product: mul(x, y) })) };
}

/** Returns a tensor's values as plain numbers. */
export const tensorValues = ({ data }: Tensor): number[] => Array.from(data as ArrayLike<number>);
