import { invalidArgument } from "../core/errors.js";
import { formatValue } from "./spaces/space.js";
/**
 * Merges options over the defaults. @throws INVALID_ARGUMENT for a name that is not among the defaults and for a value
 * of another type than the default's.
 */
export function applyDefaults(owner, options, defaults) {
    const result = { ...defaults };
    for (const [name, value] of Object.entries(options)) {
        if (value === undefined)
            continue;
        if (!Object.hasOwn(defaults, name))
            throw invalidArgument(`${owner} has no option "${name}". Its options: ${Object.keys(defaults).join(", ") || "none"}.`);
        const expected = typeof defaults[name];
        if (typeof value !== expected || Number.isNaN(value))
            throw invalidArgument(`${owner}: option ${name} must be a ${expected}, got ${formatValue(value)}.`);
        result[name] = value;
    }
    return result;
}
/** @throws INVALID_ARGUMENT unless an option lies in [0, 1]. */
export function checkProbability(owner, name, value) {
    if (value >= 0 && value <= 1)
        return;
    throw invalidArgument(`${owner}: option ${name} must be between 0 and 1, got ${value}.`);
}
/** Merges integer options over their defaults. @throws INVALID_ARGUMENT like `applyDefaults`, and out of their ranges. */
export function readCounts(owner, options, ranges) {
    const entries = Object.entries(ranges);
    const defaults = Object.fromEntries(entries.map(([name, [value]]) => [name, value]));
    const counts = applyDefaults(owner, options, defaults);
    for (const [name, [, min, max]] of entries) {
        const value = counts[name];
        if (Number.isInteger(value) && value >= min && value <= max)
            continue;
        throw invalidArgument(`${owner}: option ${name} must be an integer from ${min} to ${max}, got ${value}.`);
    }
    return counts;
}
