import type { CallArguments, Value } from "./values.js";

/**
 * Assigns arguments to parameters as Python does. @throws for missing, unknown and too many
 * arguments.
 */
export function bindArguments(
  parameters: readonly string[],
  required: number,
  { positional, named }: CallArguments,
): readonly (Value | undefined)[] {
  if (positional.length > parameters.length)
    throw new Error(`takes ${parameters.length} arguments but ${positional.length} were given`);
  const bound: (Value | undefined)[] = [...positional];
  named.forEach((value, name) => {
    const index = parameters.indexOf(name);
    if (index < 0) throw new Error(`got an unexpected keyword argument '${name}'`);
    if (bound[index] !== undefined) throw new Error(`got multiple values for argument '${name}'`);
    bound[index] = value;
  });
  for (let i = 0; i < required; i++)
    if (bound[i] === undefined) throw new Error(`missing a required argument: '${parameters[i]}'`);
  return bound;
}
