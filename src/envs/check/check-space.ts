import { LlamaGymError } from "../../core/errors.js";
import { Box } from "../spaces/box.js";
import { Dict } from "../spaces/composite.js";
import { formatValue, Space } from "../spaces/space.js";
import { Tuple } from "../spaces/composite.js";
import { countElements } from "../../core/count-elements.js";

export type Warn = (message: string) => void;

/** Checks a space without drawing from it. @throws ENV_INVALID when it is unusable. */
export function checkSpace(space: unknown, role: "action" | "observation", warn: Warn): void {
  if (space === undefined || space === null) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `The environment has no ${role}Space. Set it as a field, before the first reset.`,
    );
  }
  if (!(space instanceof Space)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `The ${role}Space is not a Space, actual value: ${formatValue(space)}. Use one of llamagym's spaces, such as Discrete or Box.`,
    );
  }
  if (space instanceof Box) checkBox(space as Box<"float64">, role, warn);
  if (space instanceof Tuple || space instanceof Dict) {
    const parts = Object.values(space.spaces as { readonly [name: string]: Space });
    if (parts.length === 0) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `An empty ${space.constructor.name} ${role}Space is not allowed. Give it at least one part.`,
      );
    }
    for (const part of parts) checkSpace(part, role, warn);
  }
}

function checkBox(space: Box<"float64">, role: string, warn: Warn): void {
  for (const side of ["low", "high"] as const) {
    if (space[side].length !== countElements(space.shape)) {
      throw new LlamaGymError(
        "ENV_INVALID",
        `The Box ${role}Space has shape [${space.shape.join()}] but ${space[side].length} values in ${side}.`,
      );
    }
  }
  if (space.low.some((value, i) => value === space.high[i])) {
    warn(`A Box ${role}Space has an element whose low equals its high: it carries no information.`);
  }
  if (space.low.some((value, i) => value > space.high[i])) {
    warn(`A Box ${role}Space has an element whose low is above its high.`);
  }
}
