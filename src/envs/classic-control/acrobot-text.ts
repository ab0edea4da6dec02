import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction, formatSigned } from "../text-parsing.js";

const CHOICES = ["NEGATIVE", "NONE", "POSITIVE"];

export const acrobotText: TextInterface<Float32Array, number> = {
  systemPrompt:
    "Two links hang from a bar. Swing the tip of the second one above the bar. Your action is the torque in the joint between them: NEGATIVE, NONE or POSITIVE",
  formatObservation: ([cosine1, sine1, cosine2, sine2, velocity1, velocity2]) =>
    `First angle: ${formatSigned(Math.atan2(sine1, cosine1), 2)}, velocity: ${formatSigned(velocity1, 2)}\n` +
    `Second angle: ${formatSigned(Math.atan2(sine2, cosine2), 2)}, velocity: ${formatSigned(velocity2, 2)}`,
  parseAction: (completion) => findLastNamedAction(completion, CHOICES),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};
