import type { TextForm } from "../text-form.js";
import { signed } from "../text-parsing.js";
import { forceAction } from "./force-text.js";

export const pendulumText: TextForm<Float32Array, Float32Array> = {
  systemPrompt:
    "Swing a pendulum up and hold it upright, where its angle is 0. Your action: a torque from -2.0 to +2.0",
  formatObservation: ([cosine, sine, velocity]) =>
    `Angle: ${signed(Math.atan2(sine, cosine), 2)} rad, angular velocity: ${signed(velocity, 2)}`,
  ...forceAction(2),
};
