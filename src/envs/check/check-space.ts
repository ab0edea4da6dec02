import { invalidEnv } from "../../core/errors.js";
import type { Env } from "../env.js";
import { Box, Dict, Space, Tuple, formatValue } from "../spaces/index.js";
import { countElements } from "../../core/numbers.js";
import { ActionWrapper, ObservationWrapper, Wrapper } from "../wrapper.js";

/** Receives a warning; `kind` is equal for warnings that differ in a value alone. */
export type Warn = (message: string, kind?: string) => void;

/**
 * Checks the spaces of an environment and its wrappers without drawing from them. @throws
 * ENV_INVALID when they are unusable.
 */
export function checkSpaces(env: Env, warn: Warn): void {
  checkSpace(env.actionSpace, "action", warn);
  checkSpace(env.observationSpace, "observation", warn);
  for (let outer = env; outer instanceof Wrapper; outer = outer.env) checkWrapper(outer);
}

/**
 * Wrappers of observations or actions have a text interface only where they set one; others inherit
 * it. @throws ENV_INVALID for an inherited one of other observations or actions.
 */
function checkWrapper(wrapper: Wrapper): void {
  if (wrapper instanceof ObservationWrapper || wrapper instanceof ActionWrapper) return;
  const { env } = wrapper;
  const changed = (["observationSpace", "actionSpace"] as const).find((name) => !wrapper[name].equals(env[name]));
  if (changed === undefined || wrapper.text === undefined || wrapper.text !== env.text) return;
  throw invalidEnv(
    `${wrapper.constructor.name} has another ${changed} than the environment in it, and that environment's text. ` +
      "Set `text` to an interface for it, or to undefined.",
  );
}

/** Checks a space without drawing from it. @throws ENV_INVALID when it is unusable. */
function checkSpace(space: unknown, role: "action" | "observation", warn: Warn): void {
  if (space === undefined || space === null)
    throw invalidEnv(`The environment has no ${role}Space. Set it as a field, before the first reset.`);
  if (!(space instanceof Space))
    throw invalidEnv(
      `The ${role}Space is not a Space, actual value: ${formatValue(space)}. Use one of llamagym's spaces, such as Discrete or Box.`,
    );
  if (space instanceof Box) checkBox(space as Box<"float64">, role, warn);
  if (space instanceof Tuple || space instanceof Dict) {
    const parts = Object.values(space.spaces as { readonly [name: string]: Space });
    if (parts.length === 0)
      throw invalidEnv(`An empty ${space.constructor.name} ${role}Space is not allowed. Give it at least one part.`);
    for (const part of parts) checkSpace(part, role, warn);
  }
}

function checkBox(space: Box<"float64">, role: string, warn: Warn): void {
  for (const side of ["low", "high"] as const) {
    if (space[side].length !== countElements(space.shape))
      throw invalidEnv(
        `The Box ${role}Space has shape [${space.shape.join()}] but ${space[side].length} values in ${side}.`,
      );
  }
  if (space.low.some((value, i) => value === space.high[i]))
    warn(`A Box ${role}Space has an element whose low equals its high: it carries no information.`);
  if (space.low.some((value, i) => value > space.high[i]))
    warn(`A Box ${role}Space has an element whose low is above its high.`);
}

/**
 * Returns the largest difference between the numbers of two values; Infinity where they differ in
 * anything else.
 */
export function maxDifference(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number")
    return Object.is(a, b) || a === b ? 0 : Number.isFinite(a - b) ? Math.abs(a - b) : Infinity;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b ? 0 : Infinity;
  if (a.constructor !== b.constructor) return Infinity;
  const [left, right] = [Object.entries(a), Object.entries(b)];
  if (left.length !== right.length) return Infinity;
  const other = new Map(right);
  return left.reduce((largest, [name, value]) => {
    return other.has(name) ? Math.max(largest, maxDifference(value, other.get(name))) : Infinity;
  }, 0);
}

/** Returns whether two values share a mutable object or memory. */
export function sharesMemory(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (ArrayBuffer.isView(a) || ArrayBuffer.isView(b))
    return ArrayBuffer.isView(a) && ArrayBuffer.isView(b) && a.buffer === b.buffer && overlaps(a, b);
  // Frozen objects are immutable, but their values may not be.
  if (a === b && !Object.isFrozen(a)) return true;
  return Object.entries(a).some(([name, value]) => sharesMemory(value, (b as Record<string, unknown>)[name]));
}

function overlaps(a: ArrayBufferView, b: ArrayBufferView): boolean {
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}
