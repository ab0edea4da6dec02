import type { TextForm } from "../text-form.js";
import { lastNumber, signed } from "../text-parsing.js";

/** An action of one number between -limit and limit, written with two decimals; five of them as choices. */
export function forceAction(
  limit: number,
): Pick<TextForm<Float32Array, Float32Array>, "parseAction" | "formatAction" | "choices"> {
  return {
    parseAction: (reply) => {
      const force = lastNumber(reply);
      return force === undefined ? undefined : Float32Array.of(Math.min(Math.max(force, -limit), limit));
    },
    formatAction: ([force]) => signed(force, 2),
    choices: [-1, -0.5, 0, 0.5, 1].map((part) => signed(part * limit, 2)),
  };
}
