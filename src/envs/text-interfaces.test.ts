import { describe, expect, it } from "vitest";
import { make } from "./registry/make.js";

/** The text of an observation; the info plays no part in these. */
const formatObservation = (id: string, observation: unknown, options = {}) =>
  make(id, options).text?.formatObservation(observation, {});

describe("formatObservation", () => {
  it.each<[string, unknown, string]>([
    [
      "Blackjack-v1",
      [16, 10, 0],
      "Your current total is 16. The dealer shows 10. You have no usable ace. hit or stay?",
    ],
    ["Blackjack-v1", [18, 1, 1], "Your current total is 18. The dealer shows ace. You have a usable ace. hit or stay?"],
    ["FrozenLake-v1", 4, "You are at row 1, column 0. Left edge, down ice, right hole, up ice."],
    ["FrozenLake-v1", 14, "You are at row 3, column 2. Left ice, down edge, right goal, up ice."],
    ["CliffWalking-v1", 36, "You are at row 3, column 0. Up ground, right cliff, down edge, left edge."],
    ["CliffWalking-v1", 35, "You are at row 2, column 11. Up ground, right edge, down goal, left ground."],
    [
      "Taxi-v4",
      314,
      "Taxi at row 3, column 0. Passenger at row 4, column 3. Destination row 4, column 0. Open: south north.",
    ],
    ["Taxi-v4", 317, "Taxi at row 3, column 0. Passenger in taxi. Destination row 0, column 4. Open: south north."],
    [
      "CartPole-v1",
      Float32Array.of(0.042, -0.123, 0.087, -0.234),
      "Cart position: +0.042, velocity: -0.123\nPole angle: +0.087 rad, angular velocity: -0.234",
    ],
    ["MountainCar-v0", Float32Array.of(-0.5231, 0.0123), "Car position: -0.523, velocity: +0.0123"],
    ["Pendulum-v1", Float32Array.of(0, -1, 2.5), "Angle: -1.57 rad, angular velocity: +2.50"],
    [
      "Acrobot-v1",
      Float32Array.of(1, 0, 0, 1, 0.5, -0.25),
      "First angle: +0.00, velocity: +0.50\nSecond angle: +1.57, velocity: -0.25",
    ],
  ])("in %s, %j", (id, observation, text) => {
    expect(formatObservation(id, observation)).toBe(text);
  });

  it("rounds CartPole's numbers with `roundedText`", () => {
    const text = (...state: number[]) =>
      formatObservation("CartPole-v1", Float32Array.from(state), { roundedText: true });
    expect(text(0.042, -0.26, 0.087, -0.234)).toBe(
      "Cart position: +0.0, velocity: -0.5\nPole angle: +5 degrees, angular velocity: -15",
    );
    expect(text(-0.1, 1.3, -0.004, 0.1)).toBe(
      "Cart position: +0.0, velocity: +1.5\nPole angle: +0 degrees, angular velocity: +0",
    );
  });

  it("mentions slippery ice in the system prompt", () => {
    expect(make("FrozenLake-v1").text?.systemPrompt).toContain("slippery");
    expect(make("FrozenLake-v1", { isSlippery: false }).text?.systemPrompt).not.toContain("slippery");
  });
});

describe("parseAction", () => {
  it.each<[string, string, unknown]>([
    ["Blackjack-v1", "I'll stay", 0],
    ["Blackjack-v1", "Stick.", 0],
    ["Blackjack-v1", "HIT", 1],
    ["Blackjack-v1", "Perhaps", undefined],
    ["CartPole-v1", "Not LEFT but RIGHT", 1],
    ["CartPole-v1", "The pole leans right, so push RIGHT, no: LEFT", 0],
    ["Taxi-v4", "Pick up the passenger", 4],
    ["Taxi-v4", "dropoff", 5],
    ["FrozenLake-v1", "I go down", 1],
    ["MountainCar-v0", "coast", 1],
    ["Pendulum-v1", "torque -1.25", Float32Array.of(-1.25)],
    ["Pendulum-v1", "+7", Float32Array.of(2)],
    ["MountainCarContinuous-v0", "none", undefined],
  ])("in %s, %j", (id, completion, action) => {
    expect(make(id).text?.parseAction(completion)).toEqual(action);
  });
});
