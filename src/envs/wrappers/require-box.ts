import { invalidArgument } from "../../core/errors.js";
import { Box } from "../spaces/box.js";
import type { Space } from "../spaces/space.js";

/** Returns the space as a Box. @throws INVALID_ARGUMENT for other spaces. */
export function requireBox(space: Space, wrapper: string, role: "action" | "observation"): Box<"float32"> {
  if (space instanceof Box) return space as Box;
  throw invalidArgument(`${wrapper} needs a Box ${role} space, got ${space.toString()}.`);
}
