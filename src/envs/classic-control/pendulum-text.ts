import type { TextInterface } from "../text-interface.js";
import { formatSigned } from "../text-parsing.js";
import { createForceAction } from "./force-action.js";

export const pendulumText: TextInterface<Float32Array, Float32Array> = {
  systemPrompt:
    "Swing a pendulum up and hold it upright, where its angle is 0. Your action: a torque from -2.0 to +2.0",
  formatObservation: ([cosine, sine, velocity]) =>
    `Angle: ${formatSigned(Math.atan2(sine, cosine), 2)} rad, angular velocity: ${formatSigned(velocity, 2)}`,
  ...createForceAction(2),
};
