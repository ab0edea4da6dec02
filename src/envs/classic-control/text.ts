import type { TextInterface } from "../text-interface.js";
import { createChoiceText, formatSigned, parseLastNumber } from "../text-parsing.js";

type ForceText = TextInterface<Float32Array, Float32Array>;

/** Creates the text interface of a force in [-limit, limit], with two decimals and five choices. */
function createForceText(limit: number, text: Pick<ForceText, "systemPrompt" | "formatObservation">): ForceText {
  return {
    ...text,
    parseAction: (completion) => {
      const force = parseLastNumber(completion);
      return force === undefined ? undefined : Float32Array.of(Math.min(Math.max(force, -limit), limit));
    },
    formatAction: ([force]) => formatSigned(force, 2),
    choices: [-1, -0.5, 0, 0.5, 1].map((fraction) => formatSigned(fraction * limit, 2)),
  };
}

const cartPoleSystemPrompt = "Keep pole balanced on cart. You see the current state. Your action: LEFT or RIGHT";

/** ORLLLaM's CartPole prompt, with its constant part in the system prompt. */
export const cartPoleText = createChoiceText({
  systemPrompt: cartPoleSystemPrompt,
  formatObservation: ([position, velocity, angle, angularVelocity]: Float32Array) =>
    `Cart position: ${formatSigned(position, 3)}, velocity: ${formatSigned(velocity, 3)}\n` +
    `Pole angle: ${formatSigned(angle, 3)} rad, angular velocity: ${formatSigned(angularVelocity, 3)}`,
  names: ["LEFT", "RIGHT"],
});

const toDegrees = (radians: number) => (radians * 180) / Math.PI;

/** Formats a number rounded to a multiple of `step`. */
function formatRounded(value: number, step: number): string {
  return formatSigned(Math.round(value / step) * step, Number.isInteger(step) ? 0 : 1);
}

/**
 * CartPole with coarse numbers: some hundred different prompts instead of one per step, so their
 * frozen states are computed once. Linear control still reaches 500 of 500 steps.
 */
export const roundedCartPoleText = createChoiceText({
  systemPrompt: cartPoleSystemPrompt,
  formatObservation: ([position, velocity, angle, angularVelocity]: Float32Array) =>
    `Cart position: ${formatRounded(position, 0.5)}, velocity: ${formatRounded(velocity, 0.5)}\n` +
    `Pole angle: ${formatRounded(toDegrees(angle), 1)} degrees, angular velocity: ${formatRounded(toDegrees(angularVelocity), 15)}`,
  names: ["LEFT", "RIGHT"],
});

const formatCar = ([position, velocity]: Float32Array) =>
  `Car position: ${formatSigned(position, 3)}, velocity: ${formatSigned(velocity, 4)}`;

export const mountainCarText = createChoiceText({
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.5 on the right. Your action: LEFT, COAST or RIGHT",
  formatObservation: formatCar,
  names: ["LEFT", "COAST", "RIGHT"],
  synonyms: { none: 1 },
});

export const continuousMountainCarText = createForceText(1, {
  systemPrompt:
    "A weak car stands in a valley with its lowest point at -0.5. Swing it up to position +0.45 on the right with little force. Your action: a force from -1.0 (left) to +1.0 (right)",
  formatObservation: formatCar,
});

export const acrobotText = createChoiceText({
  systemPrompt:
    "Two links hang from a bar. Swing the tip of the second one above the bar. Your action is the torque in the joint between them: NEGATIVE, NONE or POSITIVE",
  formatObservation: ([cosine1, sine1, cosine2, sine2, velocity1, velocity2]: Float32Array) =>
    `First angle: ${formatSigned(Math.atan2(sine1, cosine1), 2)}, velocity: ${formatSigned(velocity1, 2)}\n` +
    `Second angle: ${formatSigned(Math.atan2(sine2, cosine2), 2)}, velocity: ${formatSigned(velocity2, 2)}`,
  names: ["NEGATIVE", "NONE", "POSITIVE"],
});

export const pendulumText = createForceText(2, {
  systemPrompt:
    "Swing a pendulum up and hold it upright, where its angle is 0. Your action: a torque from -2.0 to +2.0",
  formatObservation: ([cosine, sine, velocity]) =>
    `Angle: ${formatSigned(Math.atan2(sine, cosine), 2)} rad, angular velocity: ${formatSigned(velocity, 2)}`,
});
