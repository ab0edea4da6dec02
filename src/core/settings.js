import { invalidArgument } from "./errors.js";
import { describeValue } from "./format.js";
import { suggestNames } from "./suggest.js";
/**
 * Declares a table of settings. A comment on a setting is the documentation of its property in types that are derived from the
 * table, such as `Settings<typeof table>`.
 */
export function defineSettings(table, shared = {}) {
    const entries = Object.entries(table).map(([name, setting]) => [name, { ...shared, ...setting }]);
    return Object.fromEntries(entries);
}
/** Declares a number; without a default it is off unless given. */
export function number(setting) {
    return { default: undefined, ...setting, type: "number" };
}
/** Declares an integer; without a default it is off unless given. */
export function integer(setting) {
    return number({ ...setting, integer: true });
}
/** Declares a choice between strings; without a default it is off unless given. */
export function choice(setting) {
    return { default: undefined, ...setting, type: "choice" };
}
/** Declares a boolean, by default false. */
export function boolean(setting) {
    return { default: false, ...setting, type: "boolean" };
}
/** Declares a non-empty string; without a default it is off unless given. */
export function text(setting) {
    return { default: undefined, ...setting, type: "text" };
}
/** Declares a list of strings without a default. */
export function list(setting) {
    return { default: undefined, ...setting, type: "list" };
}
/**
 * Validates given values and fills in defaults; `owner` names the table in messages.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one, and for an invalid value.
 */
export function resolveSettings(owner, table, given) {
    const named = resolveAliases(table, given);
    const unknown = Object.keys(named).find((name) => !Object.hasOwn(table, name));
    if (unknown !== undefined)
        throw unknownSetting(owner, Object.keys(table), unknown);
    checkSettings(table, named);
    const values = Object.entries(table).map(([name, setting]) => [name, named[name] ?? setting.default]);
    return Object.fromEntries(values);
}
/**
 * Replaces aliases by the settings' names.
 * @throws INVALID_ARGUMENT when a setting is given under two names, and for a switch that is not true or false.
 */
export function resolveAliases(table, given, formatName = quoteName) {
    const values = { ...given };
    for (const [name, { aliases = [] }] of Object.entries(table)) {
        for (const alias of aliases) {
            const aliasName = typeof alias === "string" ? alias : alias.name;
            const { [aliasName]: aliasValue } = values;
            delete values[aliasName];
            if (typeof alias !== "string" && aliasValue !== undefined && typeof aliasValue !== "boolean")
                throw invalidArgument(`${formatName(aliasName)} must be true or false, got ${describeValue(aliasValue)}. Set ${formatName(name)} to choose the value.`);
            const value = typeof alias === "string"
                ? aliasValue
                : aliasValue === undefined
                    ? undefined
                    : aliasValue === true
                        ? alias.value
                        : alias.off;
            if (value === undefined)
                continue;
            if (values[name] !== undefined && values[name] !== value)
                throw invalidArgument(`${formatName(aliasName)} sets ${formatName(name)}, which is also given. Remove one of them.`);
            values[name] = value;
        }
    }
    return values;
}
/**
 * Validates the values of a table that are given and ignores other properties; `prefix` precedes names in messages.
 * @throws INVALID_ARGUMENT
 */
export function checkSettings(table, given, prefix = "") {
    const values = given;
    for (const [name, setting] of Object.entries(table))
        if (values[name] !== undefined)
            checkSetting(quoteName(`${prefix}${name}`), values[name], setting);
}
const quoteName = (name) => `\`${name}\``;
/** @throws INVALID_ARGUMENT for an invalid value; `label` names the setting in the message. */
export function checkSetting(label, value, setting) {
    if (!isValidValue(value, setting))
        throw invalidArgument(`${label} must be ${describeExpected(setting)}, got ${describeValue(value)}.`);
}
/** Whether a setting accepts a value. */
export function isValidValue(value, setting) {
    if (setting.type === "number")
        return isInRange(value, setting);
    if (setting.type === "choice")
        return setting.choices.includes(value);
    if (setting.type === "boolean")
        return typeof value === "boolean";
    const isText = (item) => typeof item === "string" && item !== "";
    if (setting.type === "list")
        return Array.isArray(value) && value.every(isText);
    return isText(value) || (setting.allowsEmpty === true && value === "");
}
function isInRange(value, range) {
    const { integer: isInteger = false, min = -Infinity, above = -Infinity, max = Infinity } = range;
    if (range.allowsZero === true && value === 0)
        return true;
    if (range.allowsInfinity === true && value === Infinity)
        return true;
    const isNumber = isInteger ? Number.isSafeInteger(value) : Number.isFinite(value);
    return isNumber && value >= min && value > above && value <= max;
}
/** Describes valid values: "an integer >= 1", "a number > 0 and <= 1", "true or false", "cpu or webgpu". */
export function describeExpected(setting, formatChoice = JSON.stringify) {
    if (setting.type === "choice")
        return joinAlternatives(setting.choices.map((value) => formatChoice(value)));
    if (setting.type === "text")
        return setting.allowsEmpty === true ? "a string" : "a non-empty string";
    if (setting.type !== "number")
        return setting.type === "boolean" ? "true or false" : "a list of non-empty strings";
    const { integer: isInteger = false, min, above, max, allowsZero = false, allowsInfinity = false } = setting;
    const bounds = Object.entries({ ">=": min, ">": above, "<=": max }).filter(([, bound]) => bound !== undefined);
    const range = bounds.map(([operator, bound]) => ` ${operator} ${bound}`).join(" and");
    return `${allowsZero ? "0 or " : ""}${isInteger ? "an integer" : "a number"}${range}${allowsInfinity ? " or Infinity" : ""}`;
}
/** Joins alternatives as "a, b or c". */
function joinAlternatives(items) {
    return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} or ${items[items.length - 1]}`;
}
/** Creates the error for an unknown name, which suggests the nearest known one. */
export function unknownSetting(owner, names, name) {
    return invalidArgument(`${owner} has no setting "${name}". ${suggestNames(name, names)}`);
}
/**
 * Splits given values into those of one table and the others, without undefined ones.
 * @throws INVALID_ARGUMENT for a name that is not in `all`, suggesting the nearest one.
 */
export function splitSettings(owner, own, all, given) {
    const present = Object.entries(resolveAliases(all, given)).filter(([, value]) => value !== undefined);
    const unknown = present.find(([name]) => !Object.hasOwn(all, name));
    if (unknown !== undefined)
        throw unknownSetting(owner, Object.keys(all), unknown[0]);
    const isOwn = ([name]) => Object.hasOwn(own, name);
    return [Object.fromEntries(present.filter(isOwn)), Object.fromEntries(present.filter((entry) => !isOwn(entry)))];
}
/**
 * Checks that options are settings of a table or have another known name.
 * @throws INVALID_ARGUMENT for an unknown name, suggesting the nearest one.
 */
export function checkOptionNames(owner, given, ...known) {
    const names = known.flatMap((table) => Object.keys(table));
    const unknown = Object.keys(given).find((name) => !names.includes(name));
    if (unknown !== undefined)
        throw unknownSetting(owner, names, unknown);
}
/** Returns the values that are settings of a table, without those that are undefined. */
export function selectSettings(table, values) {
    const entries = Object.entries(values).filter(([name, value]) => Object.hasOwn(table, name) && value !== undefined);
    return Object.fromEntries(entries);
}
/** Returns the settings of a table that belong to these parts of a program. */
export function selectScope(table, ...scopes) {
    return filterSettings(table, ({ scope }) => scope !== undefined && scopes.includes(scope));
}
/** Returns the settings of a table that meet a condition. */
export function filterSettings(table, condition) {
    return Object.fromEntries(Object.entries(table).filter(([name, setting]) => condition(setting, name)));
}
