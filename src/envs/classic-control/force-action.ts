import type { TextInterface } from "../text-interface.js";
import { parseLastNumber, formatSigned } from "../text-parsing.js";

/** Creates the text interface of a force in [-limit, limit], with two decimals and five choices. */
export function createForceAction(
  limit: number,
): Pick<TextInterface<Float32Array, Float32Array>, "parseAction" | "formatAction" | "choices"> {
  return {
    parseAction: (completion) => {
      const force = parseLastNumber(completion);
      return force === undefined ? undefined : Float32Array.of(Math.min(Math.max(force, -limit), limit));
    },
    formatAction: ([force]) => formatSigned(force, 2),
    choices: [-1, -0.5, 0, 0.5, 1].map((fraction) => formatSigned(fraction * limit, 2)),
  };
}
