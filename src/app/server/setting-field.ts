import * as z from "zod";
import { describeValue } from "../../core/format.js";
import { describeExpected, isValidValue, type Setting } from "../../core/settings.js";

/** Returns the schema of a number with the limits of a setting. */
export function settingField(setting: Extract<Setting, { readonly type: "number" }>): z.ZodType<number> {
  return z.custom<number>((value) => isValidValue(value, setting), {
    error: ({ input }) => `must be ${describeExpected(setting)}, got ${describeValue(input)}`,
  });
}
