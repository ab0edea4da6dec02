/**
 * Functions that declare the settings of an algorithm:
 * `settings.number({ min: 0, default: 1, description: "..." })`.
 */
export { boolean, choice, integer, list, number, text } from "./settings.js";
