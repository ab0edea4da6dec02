import { bindArguments } from "../bind-arguments.js";
import type { CallArguments, Value } from "../values.js";

/** What filters need of the interpreter. */
export interface FilterContext {
  readonly autoescape: boolean;
  applyFilter(name: string, value: Value, args: CallArguments): Value;
  applyTest(name: string, value: Value, args: CallArguments): boolean;
}

export type FilterFunction = (value: Value, args: CallArguments, context: FilterContext) => Value;

/**
 * Creates a filter with the parameters of its Python function; those that end with "=" are
 * optional.
 */
export function defineFilter(
  parameters: readonly string[],
  run: (value: Value, args: readonly (Value | undefined)[], context: FilterContext) => Value,
): FilterFunction {
  const names = parameters.map((parameter) => parameter.replace("=", ""));
  const required = parameters.filter((parameter) => !parameter.endsWith("=")).length;
  return (value, args, context) => run(value, bindArguments(names, required, args), context);
}
