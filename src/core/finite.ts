/** Whether all numbers are finite. */
export function isAllFinite(values: Float32Array): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return false;
  return true;
}

/**
 * Describes the first number in a value for JSON that is not finite, such as "learner.klCoef is Infinity"; undefined if there is none.
 * JSON.stringify would write null for it.
 */
export function describeNonFinite(value: unknown, path = ""): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path || "it"} is ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found: unknown = value[i];
      // Most lists hold thousands of token ids.
      if (typeof found === "string" || (typeof found === "number" && Number.isFinite(found))) continue;
      const problem = describeNonFinite(found, `${path}[${i}]`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if ("toJSON" in value) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const problem = describeNonFinite(member, path === "" ? name : `${path}.${name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
